"""Is a set of packages closed: is every dependency there, at a version that the one who asks allows?"""

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.nix_lock.package import Package
from tools.nix_lock.platform import MARKERS


def applies(requirement: Requirement, extras: set[str]) -> bool:
    """Does the requirement hold on the platform, for its package with these extras asked for?"""
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate(MARKERS | {"extra": extra}) for extra in ("", *extras))


def requested_extras(requirements: dict[str, list[str]], roots: list[str]) -> dict[str, set[str]]:
    """The extras asked of each package, by roots or by packages of `requirements` (name: its Requires-Dist lines)."""
    extras: dict[str, set[str]] = {name: set() for name in requirements}
    waiting = [Requirement(root) for root in roots]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = name, frozenset(requirement.extras)
        if key in seen or name not in requirements:
            continue
        seen.add(key)
        extras[name] |= requirement.extras
        waiting += [r for r in map(Requirement, requirements[name]) if applies(r, extras[name])]
    return extras


def problems(packages: list[Package], roots: list[str]) -> list[str]:
    """What is asked for and not given, and what is given and not asked for: one line each."""
    locked = {package.name: package for package in packages}
    requirements = {package.name: package.dependencies for package in packages}
    extras = requested_extras(requirements, roots)
    asked: set[str] = set()
    found = []

    def ask(who: str, requirement: Requirement) -> None:
        name = canonicalize_name(requirement.name)
        asked.add(name)
        if name not in locked:
            found.append(f"{who} asks for {requirement}: not in the lock")
        elif not requirement.specifier.contains(locked[name].version, prereleases=True):
            found.append(f"{who} asks for {requirement}: the lock has {locked[name].version}")

    for root in roots:
        ask("requirements.in", Requirement(root))
    for package in packages:
        for requirement in map(Requirement, package.dependencies):
            if applies(requirement, extras[package.name]):
                ask(f"{package.name} {package.version}", requirement)
    found += [f"{name}: nothing asks for it" for name in sorted(locked.keys() - asked)]
    return found
