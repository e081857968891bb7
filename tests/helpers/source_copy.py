"""A copy of those files of the installed SGLang that a family's table rests on, to be changed by a test."""

import importlib.util
import shutil
from pathlib import Path

from appliance.engines.sglang.recon.family import Family
from appliance.engines.sglang.recon.source import SourceTree

ALWAYS = ["srt/environ.py", "srt/utils/common.py", "srt/runtime_context.py", "srt/arg_groups/model_hook.py"]
FOLDERS = ["srt/arg_groups/fields", "srt/arg_groups/model_overrides"]


def installed_root() -> Path:
    """The folder of the installed sglang, which is not imported."""
    return Path(importlib.util.find_spec("sglang").submodule_search_locations[0])


def copy_source(family: Family, to: Path) -> SourceTree:
    """Copy what the table names below `to`/sglang."""
    root, copy = installed_root(), to / "sglang"
    files = {anchor.file for row in family.rows for anchor in row.rests_on} | set(ALWAYS)
    files |= {place.split(":")[0] for place in family.passes}
    files |= {str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).glob("*.py")}
    for file in files:
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, copy / file)
    return SourceTree(copy)


def change(tree: SourceTree, file: str, old: str, new: str) -> SourceTree:
    """Put `new` for `old`, which must stand in the file, and return the tree as it is then."""
    path = tree.root / file
    text = path.read_text()
    assert old in text, f"{file} has no {old!r}"
    path.write_text(text.replace(old, new))
    return SourceTree(tree.root)
