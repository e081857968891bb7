"""A Python module run beside this process, plainly or in a transient unit, that is asked by lines of JSON.

No D-Bus is needed: `systemd-run --pipe` and `--wait` need the system bus, which small machines do not have, so the unit
reads and writes named pipes. systemd opens them before it drops privileges.
"""

import json
import os
import select
import subprocess
import sys
import time
import uuid
from pathlib import Path

LOOK_EVERY_S = 0.3
LAST_WORDS = 300


class PlainProcess:
    """A child of this process."""

    def __init__(self, words: list[str], environment: dict[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, *words],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, told: dict) -> dict:
        """Tell a line, and return the answer. Raises RuntimeError with its last words where it gives none."""
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            words = " ".join(self._process.stderr.read().split())[-LAST_WORDS:]
            raise RuntimeError(f"ended without an answer: {words or 'no word'}")
        return json.loads(line)

    def end(self) -> None:
        """Let it go: it ends when its standard input does."""
        self._process.stdin.close()
        self._process.wait(2)


class UnitProcess:
    """A transient unit of the system's manager, with settings of its own. For root."""

    def __init__(
        self, words: list[str], environment: dict[str, str], settings: list[str], folder: Path, limit_s: float
    ):
        self._unit = f"appliance-probe-{uuid.uuid4().hex[:12]}.service"
        self._limit_s = limit_s
        folder.mkdir(parents=True)
        pipes = folder / "in", folder / "out"
        for pipe in pipes:
            os.mkfifo(pipe)
        # open both ways: neither side then waits for the other to come, and a unit that fails does not hold this up
        self._in, self._out = (os.open(pipe, os.O_RDWR | os.O_CLOEXEC) for pipe in pipes)
        properties = [*settings, f"StandardInput=file:{pipes[0]}", f"StandardOutput=file:{pipes[1]}"]
        properties += [f"RuntimeMaxSec={limit_s:.0f}"]
        head = ["systemd-run", "--quiet", f"--unit={self._unit}"]
        head += [f"--property={line}" for line in properties]
        head += [f"--setenv={name}={value}" for name, value in environment.items() if "\n" not in value]
        begun = subprocess.run([*head, sys.executable, *words], capture_output=True, text=True, check=False)
        if begun.returncode != 0:
            raise RuntimeError(f"systemd-run: {' '.join(begun.stderr.split())[-LAST_WORDS:]}")

    def ask(self, told: dict) -> dict:
        """Tell a line, and return the answer. Raises RuntimeError where the unit ends or says nothing in time."""
        os.write(self._in, json.dumps(told).encode() + b"\n")
        deadline, data = time.monotonic() + self._limit_s, b""
        while not data.endswith(b"\n"):
            if select.select([self._out], [], [], LOOK_EVERY_S)[0]:
                data += os.read(self._out, 65536)
            elif time.monotonic() > deadline or not self._is_active():
                raise RuntimeError(f"the unit ended without an answer ({self._state('Result,ExecMainStatus')})")
        return json.loads(data)

    def _is_active(self) -> bool:
        return self._state("ActiveState") in ("ActiveState=active", "ActiveState=activating")

    def _state(self, properties: str) -> str:
        words = ["systemctl", "show", f"--property={properties}", self._unit]
        return " ".join(subprocess.run(words, capture_output=True, text=True, check=False).stdout.split())

    def end(self) -> None:
        """Stop the unit, and let the manager forget it where it failed."""
        os.close(self._in), os.close(self._out)
        for verb in ("stop", "reset-failed"):
            subprocess.run(["systemctl", verb, self._unit], capture_output=True, check=False, timeout=3)
