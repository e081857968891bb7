import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import psutil
import pytest

from appliance.recon.machine.manifest import COMMANDS
from appliance.recon.machine.report import report_of
from appliance.recon.machine.source import LocalSource, run_limited
from tests.helpers.cli import wait_for


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Put a program in front of PATH that the manifest names."""

    def make(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return make


def test_a_command_that_fails_hangs_or_is_not_there(commands):
    commands("nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    assert LocalSource().run("smi_query").problem == (
        "nvidia-smi failed: Failed to initialize NVML: Driver/library version mismatch"
    )
    mark = f"600.{os.getpid()}"  # other runs of this test have sleeps of their own
    commands("nvidia-smi", f"sleep {mark} & sleep {mark}")
    start = time.monotonic()
    assert LocalSource(limit_s=0.3).run("smi_query").problem == "nvidia-smi gave no answer within 0.3 s"
    assert time.monotonic() - start < 2
    wait_for(lambda: not running(["sleep", mark]), 5, "the command and its child are gone")
    assert run_limited(["/no/such/program"], 1).problem == "/no/such/program cannot be run (No such file or directory)"


def running(words: list[str]) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == words]


def test_every_slow_command_at_once_takes_no_longer_than_the_slowest_probe(commands):
    for program in {words[0] for words in COMMANDS.values()} - {"uname", "getconf"}:
        if not program.startswith("/"):
            commands(program, "sleep 0.7; exit 1")
    seconds = {}
    start = time.monotonic()
    report_of(LocalSource(), [], done=lambda name, outcome: seconds.setdefault(name, outcome.seconds))
    total = time.monotonic() - start
    # NVML's child process comes before nvidia-smi, which is asked only where that gave nothing
    assert 0.7 < max(seconds.values()) < 1.4
    assert total < 1.15 * max(seconds.values())


def test_a_root_of_files_asks_no_command_and_no_server_of_this_machine(tmp_path):
    source = LocalSource(tmp_path)
    assert source.run("architecture").text is None
    assert source.answer(1, "/").text is None
    assert source.variable("HOME") is None


def test_files_links_and_sizes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_bytes(b"one\0two\n")
    (tmp_path / "a/folder").mkdir()
    (tmp_path / "a/lost").symlink_to("/nowhere")
    (tmp_path / "a/link").symlink_to(tmp_path / "a/folder")
    source = LocalSource(tmp_path)
    assert source.text("/a/file") == "one\ntwo"
    assert source.sizes("/a") == {"file": 8, "folder": -1, "lost": None, "link": -1}
    assert source.link("/a/link") == "/a/folder"
    assert (source.link("/a/lost"), source.sizes("/b"), source.names("/b"), source.text("/b")) == (None, None, [], None)


def test_a_server_on_loopback_is_asked_without_any_proxy(monkeypatch):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/version" else 401)
            self.end_headers()
            self.wfile.write(b'{"version": "1"}')

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    source = LocalSource()
    assert source.answer(server.server_port, "/version").text == '{"version": "1"}'
    assert source.answer(server.server_port, "/x").problem == f"port {server.server_port} answers 401 to /x"
    server.shutdown()
    server.server_close()
    assert "does not answer" in source.answer(server.server_port, "/version").problem


def test_a_pipe_where_a_file_should_be_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert LocalSource(tmp_path).text("/pipe") is None
