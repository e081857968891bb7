"""Each flag and variable that a plan may set is one of the pinned engine's."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from appliance.documents.model import Attention, Mtp
from appliance.engines.settings import variables, words
from appliance.engines.sglang import cpu
from appliance.engines.sglang.cuda.settings import TURIN, arguments, environment
from appliance.engines.sglang.recon.options import options
from tests.helpers.gpu_machines import v4_flash

V4 = v4_flash()
DENSE = V4.model_copy(update={"attention": Attention(kind="GQA", layers={"full": 80}), "model_type": "llama"})
DSPARK = V4.model_copy(update={"mtp": Mtp(count=3, basis="tensor names")})


def lines() -> list[list]:
    """The settings of workers of each role, with all that can be asked for."""
    return [
        arguments(role, 65536, model, draft_tokens=3, fraction=0.4, across=(0, 0, 1, 1))
        for role in ("prefill", "decode", "aggregated")
        for model in (V4, DENSE, DSPARK)
    ]


def every_argument() -> list:
    return [setting for line in lines() for setting in line]


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


PARSE = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
for words in json.load(sys.stdin):
    parser.parse_args(["--model-path", "/models/x", *words])
print("all taken")
"""


def test_the_pinned_engines_own_parser_takes_every_line():
    given = json.dumps([words(line) for line in lines()])
    command = [sys.executable, "-W", "ignore", "-c", PARSE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("all taken"), done.stderr[-600:]


def test_decode_keeps_a_prefix_cache_where_the_engine_lets_it():
    def kept(model) -> bool:
        given = arguments("decode", 65536, model, None, None)
        return "--disaggregation-decode-enable-radix-cache" in words(given)

    windowed = Attention(kind="GQA", layers={"full": 9, "sliding": 39}, sliding_window=128)
    assert kept(DENSE)
    assert not kept(V4)  # validate_decode_radix_cache raises: decode would not start
    assert not kept(DENSE.model_copy(update={"attention": windowed}))


REFUSED = """
from types import SimpleNamespace
from sglang.srt.mem_cache.kv_cache_builder import validate_decode_radix_cache
facts = dict(token_to_kv_pool=SimpleNamespace(_unified_kv=False), enable_hierarchical_cache=False)
validate_decode_radix_cache(model_config=SimpleNamespace(), is_hybrid_swa=False, **facts)
try:
    validate_decode_radix_cache(model_config=SimpleNamespace(is_deepseek_v4_arch=True), is_hybrid_swa=True, **facts)
except ValueError as error:
    print(error)
"""


def test_the_pinned_engine_itself_refuses_that_for_v4():
    command = [sys.executable, "-W", "ignore", "-c", REFUSED]
    done = subprocess.run(command, env=os.environ | cpu.environment(), capture_output=True, text=True, check=False)
    assert "with DeepSeek-V4 requires the unified KV layout" in done.stdout, done.stderr[-600:]


@pytest.mark.parametrize("farthest, level", [("PIX", "PIX"), ("PHB", "PHB"), ("NODE", "PHB"), ("SYS", "SYS")])
def test_levels_are_names_that_nccl_has(farthest, level):
    env = variables(environment("decode", 4, "12.0", V4, farthest, False, TURIN))
    assert env["NCCL_P2P_LEVEL"] == level


def test_a_worker_across_nodes_binds_each_rank_to_its_own():
    given = words(arguments("aggregated", V4.context_length, V4, None, None, across=(0, 0, 1, 1)))
    assert given == ["--enable-metrics", "--numa-node", "0", "0", "1", "1"]


def test_stages_of_dspark_are_no_mtp_layer():
    for role in ("prefill", "decode"):
        given = words(arguments(role, V4.context_length, DSPARK, 3, None))
        assert given[given.index("--speculative-algorithm") + 1] == "DSPARK"
    assert "EAGLE" in words(arguments("decode", V4.context_length, V4, 3, None))


def test_prefill_and_decode_stay_on_the_host():
    for role, set_ in (("prefill", True), ("decode", True), ("aggregated", False)):
        assert ("UCX_NET_DEVICES" in variables(environment(role, 4, "12.0", V4, "NODE", False, TURIN))) == set_
