"""Wrong configurations fail at evaluation, in words that say what, where and what was expected."""

import pytest

from tests.helpers.nix_module import STANDIN, NixError, evaluate, example

PREFIX = "services.sglang-appliance: "


def refusals(changes: str, of: str = "pd-8-gpus", lib: str | None = None) -> list[str]:
    """What an example with changes is refused for."""
    found = evaluate(example(of, changes), "refused", lib=lib)
    assert all(line.startswith(PREFIX) and "\n" not in line for line in found)
    return [line.removeprefix(PREFIX) for line in found]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # GPUs
        (
            "workers.decode.gpus = lib.mkForce [ 3 4 5 6 ];",
            "GPU 3 is given to workers.decode and to workers.prefill; expected each GPU in one worker",
        ),
        (
            "workers.decode.gpus = lib.mkForce [ 4 5 5 6 ];",
            "GPU 5 stands 2 times in workers.decode.gpus; expected each GPU once",
        ),
        (
            "workers.decode = { gpus = lib.mkForce [ ]; tpSize = 4; };",
            'workers.decode.gpus is empty; engine.device "cuda" needs a GPU for each worker',
        ),
        # ports
        (
            "workers.decode.port = 30000;",
            "port 30000 is given to workers.decode.port and to router.port; expected each port once",
        ),
        (
            "workers.decode.bootstrapPort = 30031;",
            "port 30031 is given to workers.decode.bootstrapPort and to workers.prefill.ncclPort; "
            "expected each port once",
        ),
        # prefill and decode unlike
        (
            "workers.decode = { gpus = lib.mkForce [ 4 5 ]; };",
            "workers.prefill.tpSize is 4, workers.decode.tpSize is 2; expected the same: window and "
            "index state has no "
            "place on unlike ranks (llm-d#2427)",
        ),
        (
            'workers.decode.settings.kv-cache-dtype = lib.mkForce "fp8_e5m2";',
            'workers.prefill.settings.kv-cache-dtype is "fp8_e4m3", '
            'workers.decode.settings.kv-cache-dtype is "fp8_e5m2"; '
            "expected the same: the handshake refuses unlike types",
        ),
        (
            "workers.prefill.settings.page-size = lib.mkForce null;",
            "workers.prefill.settings.page-size is not set, workers.decode.settings.page-size is "
            "256; expected the same: "
            "the handshake refuses unlike pages (llm-d#2500)",
        ),
        (
            'workers.decode.settings.attention-backend = lib.mkForce "triton";',
            'workers.prefill.settings.attention-backend is "dsv4", '
            'workers.decode.settings.attention-backend is "triton"; '
            "expected the same: the layout of a token's cache differs between backends (sgl#37838)",
        ),
        (
            'workers.prefill.settings.disaggregation-transfer-backend = "mooncake";',
            'workers.prefill.settings.disaggregation-transfer-backend is "mooncake", '
            'workers.decode.settings.disaggregation-transfer-backend is "nixl"; '
            "expected the same: both ends speak one protocol",
        ),
        (
            'workers.prefill.settings.speculative-algorithm = "EAGLE";',
            "settings.speculative-algorithm is set for workers.prefill and not for workers.decode; "
            "expected it on decode, "
            "or on both: NIXL refuses a decode worker with fewer KV regions than prefill",
        ),
        (
            'workers.decode.environment.SGLANG_OPT_SM120_DIRECT_SWA_KV = "1";',
            "workers.prefill.environment.SGLANG_OPT_SM120_DIRECT_SWA_KV is not set, "
            'workers.decode.environment.SGLANG_OPT_SM120_DIRECT_SWA_KV is "1"; expected the same',
        ),
        # parallelism
        (
            "workers.decode.settings.ep-size = 8;",
            "workers.decode.settings.ep-size is 8, tpSize 4; expected ep-size at most tpSize",
        ),
        (
            "workers.decode.settings.pp-size = 2;",
            "workers.decode: tpSize 4, pp-size 2 and dp-size 1 make 8 ranks; gpus has 4",
        ),
        (
            "workers.decode.settings.enable-dp-attention = true;",
            "workers.decode.settings.enable-dp-attention without dp-size builds no group; expected "
            "dp-size of at least 2",
        ),
        # arguments
        (
            "workers.decode.settings.mem-fraction = 0.8;",
            "workers.decode.settings.mem-fraction: not an argument of SGLang 0.5.23",
        ),
        (
            "workers.decode.settings.mem_fraction_static = 0.8;",
            "workers.decode.settings.mem_fraction_static: not an argument of SGLang 0.5.23; "
            "did you mean mem-fraction-static?",
        ),
        (
            "workers.decode.settings.data-parallel-size = 2;",
            "workers.decode.settings.data-parallel-size: expected its first spelling, dp-size",
        ),
        (
            "workers.decode.settings.port = 1;",
            "workers.decode.settings.port: has an option of its own: set port",
        ),
        (
            "workers.decode.settings.tensor-parallel-size = 4;",
            "workers.decode.settings.tensor-parallel-size: has an option of its own: set tpSize",
        ),
        (
            'workers.decode.settings.max-running-requests = "many";',
            'workers.decode.settings.max-running-requests: is "many"; expected a whole number',
        ),
        (
            "workers.decode.settings.enable-mixed-chunk = 1;",
            "workers.decode.settings.enable-mixed-chunk: is 1; expected true or false",
        ),
        (
            "workers.decode.settings.max-running-requests = [ 1 2 ];",
            "workers.decode.settings.max-running-requests: is a list; expected one value, a whole number",
        ),
        (
            'workers.decode.settings.schedule-policy = "best";',
            'workers.decode.settings.schedule-policy: is "best"; expected one of lpm, random, fcfs, dfs-weight, lof',
        ),
        # secrets
        (
            'credentials.hf-token = "token";',
            'credentials.hf-token is "token"; expected an absolute path of a file on the host, '
            "such as /run/secrets/hf-token",
        ),
        (
            'workers.decode.settings.api-key = "geheim";',
            "workers.decode.settings.api-key would be readable by everybody in the store and in "
            "`ps`; it has no place here",
        ),
        (
            'router.environment.HF_TOKEN = "geheim";',
            "router.environment.HF_TOKEN would be readable by everybody in the store; "
            "expected credentials.hf-token or another credential",
        ),
        # topology and names
        (
            'topology = lib.mkForce "replicas";',
            'topology "replicas" needs aggregated workers only, and the router; '
            "found 1 prefill, 1 decode, 0 aggregated, and router.enable true",
        ),
        (
            "router.enable = false;",
            'topology "pd" needs at least one prefill and one decode worker, no other, and the router; '
            "found 1 prefill, 1 decode, 0 aggregated, and router.enable false",
        ),
        (
            'workers.router = { role = "decode"; gpus = [ 8 9 10 11 ]; };',
            "workers.router: sglang-router is the name of another unit of the appliance; expected another name",
        ),
        (
            'workers."Decode 2" = { role = "decode"; gpus = [ 8 9 10 11 ]; };',
            'workers."Decode 2": expected a name of lower-case letters, digits and dashes that starts with a letter, '
            "32 characters at most",
        ),
        (
            "workers.decode.bootstrapPort = null;",
            "workers.decode.bootstrapPort is null; a decode worker needs one",
        ),
        (
            'host = "0.0.0.0";',
            'host is "0.0.0.0"; expected a loopback address: workers ask nobody for a password '
            "(router.host is for clients)",
        ),
        (
            'router.host = "gpu-box";',
            'router.host is "gpu-box"; expected an address, such as 0.0.0.0 or 192.0.2.7',
        ),
        # model
        (
            'model.repo = "deepseek-ai/DeepSeek-V4-Flash"; model.revision = "main";',
            'model.revision is "main"; expected the full commit of deepseek-ai/DeepSeek-V4-Flash '
            "(40 hexadecimal digits): "
            "a branch or tag would be another model tomorrow",
        ),
        (
            'model.path = lib.mkForce "/home/ann/model";',
            "model.path is /home/ann/model; the units do not see /home: expected another folder, "
            "such as one in /var/lib or /srv",
        ),
        (
            'model.path = lib.mkForce "models/x";',
            'model.path is "models/x"; expected an absolute path of letters, digits and ._/+=@-',
        ),
    ],
)
def test_it_is_refused_in_words(changes, words):
    found = refusals(changes)
    assert any(words in line for line in found), found


def test_a_secret_beside_a_configuration_in_the_store_is_seen():
    """As a flake's own files are: `./token` in it is a path in the store."""
    found = refusals('credentials.hf-token = "${builtins.storeDir}/abc-source/token";')
    assert found == [
        "credentials.hf-token is /nix/store/abc-source/token: a secret in the Nix store is readable by everybody; "
        "expected a file outside, such as /run/secrets/hf-token"
    ]


def test_it_is_refused_alike_with_the_real_library(real_lib):
    wrong = 'workers.decode = { gpus = lib.mkForce [ 3 3 ]; settings.port = 1; settings.x = 2; }; host = "::";'
    assert refusals(wrong, lib=real_lib) == refusals(wrong, lib=STANDIN) != []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ('topology = lib.mkForce "tp8";', "topology' is not of type"),
        ("workers.decode.port = 70000;", "workers.decode.port' is not of type"),
        ("workers.decode.gpu = [ 1 ];", "workers.decode.gpu' does not exist"),
        ('model.servedName = lib.mkForce "";', "model.servedName' is not of type"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_option(changes, words):
    with pytest.raises(NixError, match=words.replace("'", ".")):
        evaluate(example("pd-8-gpus", changes))


@pytest.mark.parametrize("of", ["pd-8-gpus", "replicas", "one-gpu"])
def test_examples_are_not_refused(of):
    assert refusals("", of=of) == []


def test_a_port_that_is_opened_for_nobody_is_warned_of():
    warnings = evaluate(example("pd-8-gpus", "openFirewall = true;"), "warnings")
    assert warnings == [
        "services.sglang-appliance.openFirewall opens port 30000, but router.host is 127.0.0.1, "
        "which nobody elsewhere "
        "reaches; set router.host"
    ]


def test_nothing_is_opened_by_default():
    assert evaluate(example("pd-8-gpus"), "ports") == []
    assert evaluate(example("replicas"), "ports") == [30000]
