"""`python -m appliance.bench.profile.experts_child FILE COUNTED_BY RANKS...` prints an ExpertLoad as JSON.

A process of its own, for it imports torch and the engine: EPLB is SGLang's own (srt/eplb/eplb_algorithms/deepseek.py).
"""

import json
import pickle
import sys
from pathlib import Path

from appliance.bench.profile.eplb import LIMITS, batches, layers, placements


def counts_of(path: Path):
    """The recorded counts as int64 of (passes, layers, experts), empty passes left out. Exits with one line."""
    import torch

    try:
        dump = torch.load(path, weights_only=True, map_location="cpu")
    except (OSError, RuntimeError, EOFError, KeyError, ValueError, TypeError, IndexError, pickle.UnpicklingError):
        sys.exit("not what SGLang's recorder writes; expected expert_distribution_recorder_*.pt")
    if isinstance(dump, dict) and "records" in dump:
        sys.exit("recorded with mode per_pass or per_token; expected --expert-distribution-recorder-mode stat")
    counts = dump.get("logical_count") if isinstance(dump, dict) else None
    if not isinstance(counts, torch.Tensor) or counts.dim() != 3 or counts.is_floating_point() or counts.is_complex():
        sys.exit("no logical_count of (passes, layers, experts) in it; expected a dump of SGLang's recorder")
    counts = counts.to(torch.int64)
    if counts.numel() == 0 or bool((counts < 0).any()):
        sys.exit("its counts are empty or negative; expected a dump of SGLang's recorder")
    counts = counts[counts.sum(dim=(1, 2)) > 0]  # the recorder's buffer is of a fixed length: the rest was not used
    if not len(counts):
        sys.exit("no pass was recorded; expected requests between start and stop of the recorder")
    return counts


def load_of(path: Path, counted_by: int, ranks: list[int]) -> dict:
    """The fields of an ExpertLoad from the dump at `path`. Exits with one line."""
    counts = counts_of(path) // counted_by
    experts = counts.shape[2]
    if unfit := [count for count in ranks if experts % count]:
        sys.exit(f"{experts} experts do not divide among {unfit[0]} ranks; expected a divisor")
    ranks = ranks or [count for count in (2, 4, 8) if experts % count == 0]
    half = len(counts) // 2
    earlier, later = (counts[:half], counts[half:]) if half else (counts, counts)
    return {
        "file": path.name,
        "passes": len(counts),
        "evaluated_passes": len(later),
        "fitted_on_same": not half,
        "experts": experts,
        "counted_by": counted_by,
        "layers": layers(counts),
        "placements": placements(earlier, later, ranks),
        "batches": batches(counts, ranks[0]) if ranks else [],
        "limits": LIMITS,
    }


if __name__ == "__main__":
    print(json.dumps(load_of(Path(sys.argv[1]), int(sys.argv[2]), [int(word) for word in sys.argv[3:]])))
