"""A folder with DeepSeek-V4-Flash's configuration, cut to a few layers and experts: for --load-format dummy."""

import json
from pathlib import Path

LAYERS, EXPERTS = 6, 32


def make(source: Path, folder: Path) -> Path:
    """Write `folder`/config.json from the config.json `source`: head dims, heads, indexer, compression as they are."""
    config = json.loads(source.read_text())
    config["num_hidden_layers"] = LAYERS
    config["compress_ratios"] = config["compress_ratios"][:LAYERS] + [0]
    config["n_routed_experts"] = EXPERTS
    config["num_nextn_predict_layers"] = 0
    config["num_hash_layers"] = 0  # their tables are integers, which dummy weights leave as they lie in memory
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder
