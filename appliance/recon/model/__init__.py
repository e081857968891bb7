"""What a checkpoint is, from a local folder or from the hub: no weight is read."""

from pathlib import Path

from appliance.documents import ModelReport
from appliance.errors import InputError
from appliance.recon.model.checkpoint import INDEX, Checkpoint
from appliance.recon.model.folder import read_folder

__all__ = ["INDEX", "model_report"]


def model_report(folder: Path) -> ModelReport:
    """Report the checkpoint in `folder`, which must be whole. Raises InputError when it is absent, incomplete or
    damaged."""
    from appliance.recon.model.report import report_on

    checkpoint = read_folder(folder)
    report = report_on(checkpoint)
    require_whole(checkpoint, folder)
    return report


def require_whole(checkpoint: Checkpoint, folder: Path) -> None:
    """Raise InputError where weight files are absent or damaged."""
    if checkpoint.missing:
        raise InputError(
            f"{folder}: {len(checkpoint.missing)} of {len(checkpoint.named or ())} weight files missing, "
            f"first {checkpoint.missing[0]}; expected all that {INDEX} names"
        )
    if not checkpoint.shards:
        raise InputError(f"{folder}: no *.safetensors file; expected the model's weights")
    for shard in checkpoint.shards:
        if shard.fault and (checkpoint.named is None or shard.name in checkpoint.named):
            raise InputError(shard.fault[1])
