"""The arch gates, found once for each state of the source: parsing takes seconds."""

import hashlib
import json
import sys
from pathlib import Path

from appliance.documents import ArchGate
from appliance.engines.sglang.recon import capability, gates
from appliance.engines.sglang.recon.source import SourceTree, Unknown
from appliance.recon.children import run
from appliance.recon.engine.arch import Arch
from appliance.recon.engine.notes import note, remember, remembered

CHILD = "appliance.engines.sglang.recon.gates_child"


def gates_here(arch: Arch, limit_s: float) -> list[ArchGate]:
    """The gates of the installed source. Raises Unknown, OSError or TimeoutError."""
    file = note("arch-gates", f"{fingerprint(SourceTree.installed('sglang'))}-{arch.name}")
    found = remembered(file, list[ArchGate])
    if found is None:
        found = searched(arch, limit_s)
        remember(file, found)
    return found


def searched(arch: Arch, limit_s: float) -> list[ArchGate]:
    """The gates as the child prints them."""
    code, out, err = run([sys.executable, "-W", "ignore", "-m", CHILD, arch.name], limit_s)
    if code != 0:
        said = err.strip().splitlines()
        raise Unknown(f"the source could not be searched: {said[-1] if said else f'exit code {code}'}")
    return [ArchGate.model_validate(gate) for gate in json.loads(out)]


def fingerprint(tree: SourceTree) -> str:
    """What tells one state of the source from another: path, size and time of each file, and this finder's own text."""
    digest = hashlib.sha256()
    for module in (capability, gates):
        digest.update(Path(module.__file__).read_bytes())
    for folder in gates.FOLDERS:
        for path in sorted((tree.root / folder).rglob("*.py")):
            stat = path.stat()
            digest.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]
