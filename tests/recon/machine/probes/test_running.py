import json

from appliance.recon.machine.probes import running
from appliance.recon.machine.remote.frame import FrameSource
from appliance.recon.machine.source import LocalSource, Output
from tests.helpers.machine_files import write

PYTHON = "/opt/venv/bin/python"
COMMAND = [PYTHON, "-m", "sglang.launch_server", "--model-path", "/models/a", "--port=31000", "--api-key", "sk-1"]


def process(root, pid: int, comm: str, words: list[str], environ: str = "") -> None:
    write(root, {f"proc/{pid}/comm": comm, f"proc/{pid}/status": "Cpus_allowed_list:\t0-31"})
    (root / f"proc/{pid}/cmdline").write_text("\0".join(words) + "\0")
    (root / f"proc/{pid}/environ").write_text(environ)


def test_an_engine_with_its_arguments_environment_and_packages(tmp_path):
    process(tmp_path, 7, "python", COMMAND, "NCCL_PROTO=LL\0HF_TOKEN=secret\0CUDA_VISIBLE_DEVICES=0,1\0HOME=/root\0")
    process(tmp_path, 8, "python", [PYTHON, "-m", "http.server"])
    process(tmp_path, 9, "bash", ["bash", "sglang.launch_server"])
    for name in ("torch-2.13.0+cu130", "sglang-0.5.23", "requests-2.32.0"):
        (tmp_path / f"opt/venv/lib/python3.12/site-packages/{name}.dist-info").mkdir(parents=True)
    (engine,) = running.engines(LocalSource(tmp_path)).facts["engines"]
    assert (engine.name, engine.pid, engine.port, engine.model) == ("sglang", 7, 31000, "/models/a")
    assert engine.command[-2:] == ["--api-key", "***"]
    assert engine.environment == {"NCCL_PROTO": "LL", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert engine.packages == {"torch": "2.13.0+cu130", "sglang": "0.5.23"}
    assert (engine.version, engine.identity, engine.cpus_allowed) == ("0.5.23", None, "0-31")


class Answering(LocalSource):
    """Files below a root, and one server that answers."""

    def answer(self, port, path):
        if path != "/get_server_info":
            return Output(problem="404")
        return Output(text=json.dumps({"version": "0.5.20", "tp_size": 4, "api_key": "sk-1", "internal_states": [{}]}))


def test_the_identity_is_what_the_server_says_without_keys_and_nested_values(tmp_path):
    process(tmp_path, 7, "python", COMMAND)
    (engine,) = running.engines(Answering(tmp_path)).facts["engines"]
    assert engine.identity == {"version": "0.5.20", "tp_size": 4}
    assert engine.version == "0.5.20"


def test_secrets_are_left_out_of_command_lines():
    words = ["x", "--api-key=1", "--hf-token", "2", "--port", "3", "--tokenizer-path", "a"]
    assert running.without_secrets(words)[:6] == ["x", "--api-key=***", "--hf-token", "***", "--port", "3"]


def test_listeners_of_ss_and_of_the_kernels_table():
    text = (
        'LISTEN 0 128 127.0.0.1:30000 0.0.0.0:* users:(("python",pid=7,fd=3))\n'
        "LISTEN 0 128 [::]:22 [::]:*\nLISTEN 0 1 *:9000 *:*\n"
    )
    assert [(entry.address, entry.port, entry.pid, entry.process) for entry in running.from_ss(text)] == [
        ("::", 22, None, None),
        ("*", 9000, None, None),
        ("127.0.0.1", 30000, 7, "python"),
    ]
    table = "  sl  local_address\n   0: 0100007F:7530 00000000:0000 0A 0\n   1: 00000000:0016 00000000:0000 01 0\n"
    assert [(entry.address, entry.port) for entry in running.from_kernel(table)] == [("127.0.0.1", 30000)]
    six = "h\n 0: 00000000000000000000000001000000:0050 0:0 0A\n"
    assert [(entry.address, entry.port) for entry in running.from_kernel(six)] == [("::1", 80)]


def test_services_that_matter():
    text = (
        "sglang-decode.service loaded active running SGLang decode worker\n"
        "● nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager\n"
        "cron.service loaded active running Regular background program\n"
    )
    source = FrameSource(outputs={"services": Output(text=text)})
    assert [(s.name, s.active, s.sub) for s in running.services(source).facts["services"]] == [
        ("sglang-decode.service", "active", "running"),
        ("nvidia-fabricmanager.service", "failed", "failed"),
    ]


def surroundings(root, environ: str):
    write(root, {"proc/self/x": ""})
    (root / "proc/self/environ").write_text(environ)
    return running.surroundings(LocalSource(root))


def test_the_environment_that_workers_inherit_without_secrets(tmp_path):
    found = surroundings(tmp_path, "CUDA_VISIBLE_DEVICES=0\0HF_TOKEN=hf_1\0PATH=/bin\0LD_LIBRARY_PATH=/cuda/compat\0")
    assert found.facts["environment"] == {"CUDA_VISIBLE_DEVICES": "0", "LD_LIBRARY_PATH": "/cuda/compat"}
    assert found.facts["named_files"] == {}


def test_files_that_nccl_is_told_to_read_are_looked_for(tmp_path):
    write(tmp_path, {"etc/nccl/graph.xml": "<graphs/>"})
    variables = "NCCL_GRAPH_FILE=/etc/nccl/graph.xml\0NCCL_TOPO_FILE=/etc/nccl/topo.xml\0NCCL_CONF_FILE=/gone/conf\0"
    found = surroundings(tmp_path, variables)
    assert found.facts["named_files"] == {"/etc/nccl/graph.xml": True, "/etc/nccl/topo.xml": False, "/gone/conf": False}


def test_far_away_files_that_were_not_listed_are_not_known(tmp_path):
    found = running.surroundings(FrameSource(files={"/proc/self/environ": b"NCCL_GRAPH_FILE=/etc/graph.xml"}))
    assert found.facts["environment"] == {"NCCL_GRAPH_FILE": "/etc/graph.xml"}
    assert "named_files" not in found.facts
    assert found.sources["named_files"] == "absent: not looked at from here"


def test_what_units_set_with_their_drop_ins():
    shown = (
        'Id=sglang-prefill.service\nEnvironment=CUDA_VISIBLE_DEVICES=0 "NCCL_DEBUG=a b" HF_TOKEN=x HOME=/root\n\n'
        "Id=sglang-decode.service\nEnvironment=\n\nId=sglang-odd.service\nEnvironment='half\n"
    )
    assert running.unit_environments(shown) == {
        "sglang-prefill.service": {"CUDA_VISIBLE_DEVICES": "0", "NCCL_DEBUG": "a b"},
        "sglang-decode.service": {},
    }
    assert running.unit_environments("") == {}
