"""What differs between two sets of locked packages."""

from tools.nix_lock.package import Package


def changes(before: list[Package], after: list[Package]) -> list[str]:
    """What differs, one line a package."""
    old, new = ({package.name: package for package in packages} for packages in (before, after))
    lines = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            lines.append(f"{name} {old[name].version} is no longer asked for")
        elif name not in old:
            lines.append(f"{name} {new[name].version} is new")
        elif old[name].version != new[name].version:
            lines.append(f"{name} {old[name].version} -> {new[name].version}")
        elif old[name] != new[name]:
            lines.append(f"{name} {old[name].version}: another file or other dependencies")
    return lines
