"""The table of arguments that configurations are checked against is that of the installed engine."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sglang", reason="the engine whose arguments the table lists is not installed")

TOOL = Path(__file__).parents[3] / "tools/engine-arguments"


def test_the_table_is_that_of_the_installed_server():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", TOOL, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
