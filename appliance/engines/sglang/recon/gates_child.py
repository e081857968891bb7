"""`python -m appliance.engines.sglang.recon.gates_child ARCH` prints the arch gates as one line of JSON.

A process of its own, for it parses hundreds of modules.
"""

import gc
import json
import sys

from appliance.engines.sglang.recon.gates import gates
from appliance.engines.sglang.recon.source import SourceTree, Unknown
from appliance.recon.engine.arch import Arch


def main(arch: str) -> None:
    """[{"where": ..., ...}, ...]; where the source is not what was expected, why, on stderr."""
    gc.disable()  # millions of syntax nodes that all stay: looking for garbage among them took half of the time
    try:
        found = gates(SourceTree.installed("sglang"), Arch.parse(arch))
    except Unknown as problem:
        sys.exit(str(problem))
    print(json.dumps([gate.model_dump(mode="json") for gate in found]))


if __name__ == "__main__":
    main(sys.argv[1])
