"""How evenly experts were loaded, from a dump of SGLang's recorder; read in a child process."""

import json
import subprocess
import sys
from pathlib import Path

from appliance.documents import ExpertLoad
from appliance.errors import InputError

TIMEOUT_S = 300.0


def expert_load(path: Path, ranks: list[int], counted_by: int = 1) -> ExpertLoad:
    """The load in the dump at `path`, placed on each number of `ranks` (empty: 2, 4 and 8 as they divide the experts).

    counted_by: ranks that each counted every token. Raises InputError where it is no such dump.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected expert_distribution_recorder_*.pt of SGLang")
    words = [sys.executable, "-m", "appliance.bench.profile.experts_child", str(path), str(counted_by)]
    words += [str(count) for count in ranks]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"{path}: not read within {TIMEOUT_S:.0f} s; expected fewer passes") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"the reader ended with {done.returncode}"])[-1]
        raise InputError(f"{path}: {last}")
    return ExpertLoad.model_validate(json.loads(done.stdout.splitlines()[-1]))
