"""The processes that one SGLang server is made of."""

import psutil

ESSENTIAL = "sglang::"
"""SGLang renames its schedulers and detokenizer so; without one of them the server lingers, but serves nobody."""


def essential(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those of a server's processes without which it does not serve."""
    found = []
    for process in processes:
        try:
            if "".join(process.cmdline()[:1]).startswith(ESSENTIAL):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
