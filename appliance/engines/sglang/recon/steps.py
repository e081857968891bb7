"""A family's table, checked row by row against the source that is installed."""

from fnmatch import fnmatch

from appliance.documents import Binary, KernelStep, Tool
from appliance.engines.sglang.recon.anchors import Anchor, locate
from appliance.engines.sglang.recon.family import Family, Row
from appliance.engines.sglang.recon.source import SourceTree, Unknown
from appliance.engines.sglang.recon.variables import variable_problem
from appliance.recon.engine.versions import installed

TOOLS = {
    "SGLang JIT": ["nvcc", "ninja", "c++"],
    "FlashInfer": ["nvcc", "ninja", "c++"],
    "DeepGEMM": ["nvcc", "c++"],
    "TileLang": ["nvcc", "c++"],
    "Triton": ["c++"],
}
"""What each compiler of kernels calls. Triton brings ptxas along and needs a C compiler for its launchers."""


def steps(family: Family, arch: str, tree: SourceTree) -> list[KernelStep]:
    """The rows for `arch`. One whose source changed has no kernel but a reason; so has every step that depends on the
    architecture, where the table was not written for this one."""
    found = [step(row, tree) for row in family.rows if row.holds_for(arch)]
    if any(row.arch and row.holds_for(arch) for row in family.rows):
        return found
    names = dict.fromkeys(row.step for row in family.rows if row.arch)
    reason = f"the table of {family.name} was not written for {arch}"
    return [KernelStep(step=name, kernel=None, reason=reason) for name in names] + found


def step(row: Row, tree: SourceTree) -> KernelStep:
    """One row, checked."""
    places: list[tuple[Anchor, str]] = []
    reasons: list[str] = []
    for anchor in row.rests_on:
        try:
            places.append((anchor, locate(anchor, tree)))
        except Unknown as problem:
            reasons.append(str(problem))
    for choice in row.force:
        problem = variable_problem(choice.split("=")[0], tree)
        if problem:
            reasons.append(problem)
    return KernelStep(
        step=row.step,
        when=row.when,
        kernel=None if reasons else row.kernel,
        reason="; ".join(dict.fromkeys(reasons)) or None,
        decided_at=next((place for anchor, place in places if anchor.decides), None),
        defined_at=next((place for anchor, place in places if anchor.defines), None),
        evidence=[place for anchor, place in places if not anchor.decides and not anchor.defines],
        fallback=None if reasons else row.fallback,
        force=[] if reasons else row.force,
        note=None if reasons else row.note,
        package=None if reasons else row.package,
        compiled_by=None if reasons else row.compiled_by,
    )


def with_readiness(
    found: KernelStep, family: Family, arch: str, tools: list[Tool] | None, libraries: list[Binary] | None
) -> KernelStep:
    """The step, and whether what it needs is here: its package, the compiler's tools, code for the architecture."""
    if found.kernel is None:
        return found
    row = next(row for row in family.rows if row.holds_for(arch) and (row.step, row.when) == (found.step, found.when))
    lacking = []
    version = installed(row.package) if row.package else None
    if row.package and version is None:
        lacking.append(f"{row.package} is not installed")
    can_compile = None
    if row.compiled_by and tools is not None:
        missing = missing_tools(row.compiled_by, arch, tools)
        can_compile = not missing
        lacking += missing
    serves = None
    if row.library and libraries is not None:
        candidates = [library for library in libraries if fnmatch(library.file, row.library)]
        if candidates:
            serves = any(library.serves for library in candidates)
        if serves is False:
            lacking.append(f"{candidates[0].file} holds {candidates[0].by}")
    return found.model_copy(
        update={
            "package_installed": version,
            "can_compile": can_compile,
            "shipped_code_serves": serves,
            "lacking": lacking,
        }
    )


def missing_tools(compiler: str, arch: str, tools: list[Tool]) -> list[str]:
    """What `compiler` calls and is not here, or is too old for the architecture."""
    here = {tool.name: tool for tool in tools}
    missing = []
    for name in TOOLS[compiler]:
        tool = here.get(name)
        if tool is None or tool.path is None or tool.version is None:
            missing.append(f"{compiler} needs {name}: {tool.reason if tool and tool.reason else 'not found'}")
        elif name == "nvcc" and arch not in tool.architectures:
            missing.append(f"nvcc {tool.version} does not compile for {arch}")
    return missing
