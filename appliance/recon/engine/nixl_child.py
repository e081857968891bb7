"""`python -m appliance.recon.engine.nixl_child [PLUGIN TO LEAVE OUT ...]` makes one NIXL backend after the other.

It tells of each as a line of JSON. A process of its own, for a plugin may crash or hang.
"""

import ctypes
import json
import os
import sys
from pathlib import Path


def main(left_out: list[str]) -> None:
    """Tell what loads. Plugins print what they like: their standard output becomes standard error first."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(**fact: object) -> None:
        told.write(json.dumps(fact) + "\n")

    try:
        from nixl import _api as api

        agent = api.nixl_agent("appliance-recon", api.nixl_agent_config(backends=[]))
        plugins = sorted(agent.get_plugin_list())
    except ModuleNotFoundError as error:
        tell(problem=f"{error.name} is not installed")
        return
    except Exception as error:
        tell(problem=reason(error))
        return
    tell(plugins=plugins)
    if not left_out:
        for module in ucx_modules(Path(sys.modules[api.nixl_agent.__module__].__file__).parent):
            tell(**module)
    for plugin in plugins:
        if plugin in left_out:
            continue
        tell(trying=plugin)
        try:
            agent.create_backend(plugin)
            tell(backend=plugin, loads=True, reason=None)
        except Exception as error:
            tell(backend=plugin, loads=False, reason=reason(error))


def reason(error: Exception) -> str:
    """The library's own words (NIXL_ERR_NOT_FOUND), or the kind of error where it has none."""
    return (str(error) or type(error).__name__)[:300]


def ucx_modules(package: Path) -> list[dict]:
    """The UCX transport modules (libuct_*) in the library folder beside NIXL's package, each loaded once."""
    found = []
    for path in sorted((package.parent / f"{package.name}.libs").glob("ucx/libuct_*.so*")):
        try:
            ctypes.CDLL(str(path))
            problem = None
        except OSError as error:
            problem = str(error)
        name = path.name.removeprefix("libuct_").split(".")[0].split("-")[0]
        found.append({"module": name, "loads": problem is None, "reason": problem})
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # agents with half-made backends may crash when they are taken apart
