import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import InputError
from appliance.plan.nix_text import expression, key, nix_text, settings, string
from tests.helpers.gpu_machines import FIXTURES, machine, rtx_machine
from tests.plan.test_gpu import plan
from tests.plan.test_memory import dense

GOLDEN = FIXTURES / "8x-rtx-pro-6000.nix"


def reference() -> str:
    found = plan(rtx_machine(), model_path="/var/lib/sglang-models/DeepSeek-V4-Flash", served_name="deepseek-v4-flash")
    return nix_text(found)


def test_the_reference_case_as_the_module_takes_it():
    assert reference() == GOLDEN.read_text()


def test_each_reason_is_a_comment_above_what_it_is_for():
    text = reference()
    prefill = text[: text.index("workers.prefill = {")]
    assert "    # GPUs 0, 1, 2, 3: NUMA node 0" in prefill
    assert "# UCX_NET_DEVICES lo:" in text[text.index("workers.prefill = {") :]


def test_arguments_become_attributes():
    words = [
        "--enable-metrics",
        "--page-size",
        "256",
        "--bs",
        "1",
        "2",
        "--name=x",
        "--share",
        "0.4",
        "--version",
        "007",
    ]
    assert settings(words) == {
        "enable-metrics": True,
        "page-size": 256,
        "bs": [1, 2],
        "name": "x",
        "share": 0.4,
        "version": "007",
    }
    with pytest.raises(InputError, match="'x' belongs to no flag"):
        settings(["x"])


def test_values():
    assert expression([-1, "a b", 2.5]) == '[ (-1) "a b" 2.5 ]'
    assert [expression(value) for value in (True, None, 30.0, [])] == ["true", "null", "30", "[ ]"]
    assert string('a"b\\${x}\n') == '"a\\"b\\\\\\${x}\\n"'
    assert [key(name) for name in ("page-size", "NCCL_PROTO", "in", "1x")] == [
        "page-size",
        "NCCL_PROTO",
        '"in"',
        '"1x"',
    ]


def test_workers_that_share_a_gpu_have_no_option():
    with pytest.raises(InputError, match="two workers share a GPU"):
        nix_text(plan(machine([0]), model=dense(10), topology="pd"))


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_string_is_read_back_as_it_was(text):
    """By Nix's own rules (manual, "String literals"): a backslash takes the next character's meaning away, ${ opens."""
    written = string(text)
    assert written[0] == written[-1] == '"'
    plain = re.sub(
        r"\\(.)", lambda found: {"n": "\n", "r": "\r", "t": "\t"}.get(found[1], found[1]), written[1:-1], flags=re.S
    )
    assert plain == text
    assert not re.search(r'(?<!\\)(?:\\\\)*(?:"|\$\{)', written[1:-1])
