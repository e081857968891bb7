"""Run the command line as a user does: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

APPLIANCE = [sys.executable, "-m", "appliance"]


def appliance(
    *words: object, timeout: float = 240, env: dict | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess:
    """Run `appliance WORDS` to its end and return it, with its output as text."""
    return subprocess.run(
        [*APPLIANCE, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | (env or {}),
        cwd=cwd,
        check=False,
    )


def refused(*words: object, env: dict | None = None) -> str:
    """Run `appliance WORDS`, which must be refused as bad input: exit code 2 and one line. Returns the line."""
    done = appliance(*words, env=env, timeout=60)
    assert done.returncode == 2, done
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert errors[0] == done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    return errors[0].removeprefix("error: ")


@contextmanager
def running(*words: object) -> Iterator[subprocess.Popen]:
    """Run `appliance WORDS` beside the test; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [*APPLIANCE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


def status(state_dir: Path) -> dict:
    """`appliance status --json`, parsed."""
    return json.loads(appliance("status", "--json", "--state-dir", state_dir).stdout)


def state(state_dir: Path) -> dict:
    """The state file as it is now; empty before there is one."""
    try:
        return json.loads((state_dir / "state.json").read_text())
    except FileNotFoundError:
        return {}


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until `condition` holds; fail, saying `what` was waited for, after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)
