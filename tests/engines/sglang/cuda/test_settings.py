"""Each flag and variable that a plan may set is one of the pinned engine's."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from appliance.engines.sglang.cuda.settings import TURIN, arguments, environment
from appliance.engines.sglang.recon.options import options
from tests.helpers.gpu_machines import v4_flash

V4 = v4_flash()


def every_argument() -> list:
    return [
        setting
        for role in ("prefill", "decode", "aggregated")
        for setting in arguments(role, context=65536, model=V4, draft_tokens=3, fraction=0.4)
    ]


def every_variable() -> list:
    return [
        setting
        for role in ("prefill", "decode", "aggregated")
        for setting in environment(role, 4, "12.0", V4, "NODE", False, TURIN)
    ]


def test_flags_are_options_of_the_pinned_engine(tmp_path, monkeypatch):
    known = {option.flag for option in options(120)}
    assert {setting.name for setting in every_argument()} <= known


def test_variables_are_read_by_the_pinned_engine():
    environ = (Path(find_spec("sglang").origin).parent / "srt" / "environ.py").read_text()
    own = {setting.name for setting in every_variable() if setting.name.startswith("SGLANG_")}
    declared = {name for name in own if f"{name} = Env" in environ}
    assert own - declared == {"SGLANG_HOST_IP"}  # read with os.getenv, in srt/utils/network.py


def test_each_has_a_reason():
    assert all(setting.why for setting in every_argument() + every_variable())


@pytest.mark.parametrize("name", ["SGLANG_OPT_SM120_DIRECT_SWA_KV", "SGLANG_HOST_IP", "NCCL_P2P_LEVEL"])
def test_both_roles_of_a_pair_get_the_same(name):
    by_role = [
        {s.name: s.value for s in environment(role, 4, "12.0", V4, "NODE", False, TURIN)}
        for role in ("prefill", "decode")
    ]
    assert by_role[0][name] == by_role[1][name]


def test_what_a_machine_does_not_need_is_not_set():
    names = {setting.name for setting in environment("aggregated", 8, "9.0", V4, None, True, (None, None))}
    assert names == {"HF_HUB_OFFLINE", "SGLANG_AUTO_NUMA_BIND"}
    whole = {setting.name for setting in arguments("aggregated", V4.context_length, V4, None, None)}
    assert whole == {"--enable-metrics"}


def test_the_protocol_is_forced_on_zen_5_servers_alone():
    def nccl(vendor, family):
        return "NCCL_PROTO" in {s.name for s in environment("decode", 4, "12.0", V4, "NODE", False, (vendor, family))}

    assert nccl("AuthenticAMD", 26)
    assert not nccl("AuthenticAMD", 25) and not nccl("GenuineIntel", 6) and not nccl(None, None)
