import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.recon.model.patterns import NamePatterns


@pytest.mark.parametrize(
    "pattern, module, matches",
    [
        ("lm_head", "lm_head", True),
        ("lm_head", "language_model.lm_head", True),
        ("gate", "model.layers.0.mlp.gate", True),
        ("gate", "model.layers.0.mlp.gate_proj", False),
        ("model.layers.1", "model.layers.1.mlp.up_proj", True),
        ("model.layers.1", "model.layers.10.mlp.up_proj", False),
        ("model.layers.0*", "model.layers.0.mlp.up_proj", True),
        ("model.layers.1.*", "model.layers.10.mlp.up_proj", False),
        ("model.layers.1*", "model.layers.10.mlp.up_proj", True),
        ("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj", True),
        ("*.attn.*", "layers.0.attn.wq_a", True),
        ("mtp*", "mtp.layers.0.self_attn.q_proj", True),
        ("mtp*", "model.mtp_layers.0.up_proj", True),
        (r"re:.*mlp\.(gate|up|down)_proj.*", "model.layers.0.mlp.up_proj", True),
        (r"re:.*mlp\.(gate|up|down)_proj.*", "model.layers.1.mlp.experts.0.up_proj", False),
        (r"re:.*experts\.\d+\.w1$", "layers.0.ffn.experts.17.w1", True),
        ("re:(", "model", False),
    ],
)
def test_meanings(pattern, module, matches):
    assert NamePatterns([pattern]).match(module) is matches


def test_what_cannot_be_read_is_kept_and_matches_nothing():
    patterns = NamePatterns(["re:(", 3, None, "lm_head"])
    assert patterns.unreadable == ["("]
    assert patterns.match("lm_head")


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:(a*b?)*c", "re:(a{1,9}){9}", "re:" + "a*" * 9, "*a" * 9])
def test_patterns_that_could_take_for_ever_are_not_tried(pattern):
    start = time.process_time()
    assert not NamePatterns([pattern]).match("a" * 60 + "!")
    assert time.process_time() - start < 0.5


lists = st.lists(st.text(max_size=20) | st.integers() | st.none(), max_size=5)


@given(lists | st.text() | st.none(), st.text(max_size=30))
def test_any_list_matches_or_does_not(patterns, module):
    assert NamePatterns(patterns).match(module) in (True, False)
