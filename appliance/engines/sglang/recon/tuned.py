"""The devices that SGLang ships tuned kernel settings for: its table files are named after torch's device names."""

import re
from collections import Counter

from appliance.engines.sglang.recon.source import SourceTree

TABLE = re.compile(r"device_name=(?P<device>[^,]+?)(?:,[^/]*)?(?:_down)?\.json$")
"""A table of fused MoE or block FP8 GEMM settings (get_device_name().replace(" ", "_") in SGLang)."""


def tuned_devices() -> dict[str, int]:
    """Number of tables by device name, with blanks as torch has them. Raises Unknown where SGLang is not installed."""
    folder = SourceTree.installed("sglang").root
    names = (TABLE.search(path.name) for path in folder.rglob("*device_name=*.json"))
    return dict(sorted(Counter(name["device"].replace("_", " ") for name in names if name).items()))
