"""The architecture of this machine's GPUs."""

import shutil

from appliance.recon.absent import Absent, in_words
from appliance.recon.children import run
from appliance.recon.engine.arch import Arch, of_gpus

LIMIT_S = 10.0


def local_arch() -> Arch:
    """What nvidia-smi says of all GPUs. Raises Absent where it says nothing, or they are of several kinds."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise Absent("no GPU here tells its architecture (nvidia-smi is not installed): expected --arch")
    try:
        code, out, _ = run([tool, "--query-gpu=compute_cap", "--format=csv,noheader"], LIMIT_S)
    except OSError as error:
        raise Absent(f"no GPU here tells its architecture ({in_words(error)}): expected --arch") from None
    return of_gpus([] if code else out.split())
