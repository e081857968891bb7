"""tools/nix_lock: which file of a package is taken, and what is said of changes."""

from dataclasses import replace

import pytest

from tools.nix_lock.changes import changes
from tools.nix_lock.package import Package, read, text
from tools.nix_lock.resolve import Unresolved, best_file


def chosen(*tags: str, version: str = "1") -> str:
    files = [{"url": f"scheme://host/a/b/p-{version}-{tag}.whl"} for tag in tags]
    best = best_file({"name": "p", "version": version, "wheels": files})
    return best["url"].removeprefix(f"scheme://host/a/b/p-{version}-").removesuffix(".whl")


def test_machine_code_for_this_python_wins_over_code_for_any():
    assert chosen("py3-none-any", "cp312-cp312-manylinux_2_28_x86_64") == "cp312-cp312-manylinux_2_28_x86_64"


def test_the_stable_abi_of_an_older_python_will_do():
    assert chosen("cp39-abi3-manylinux2014_x86_64", "cp313-cp313-manylinux2014_x86_64").startswith("cp39-abi3")


def test_the_newest_glibc_that_the_platform_has_wins():
    tags = [f"cp312-cp312-manylinux_2_{minor}_x86_64" for minor in (17, 34, 39)]
    assert chosen(*tags).endswith("2_34_x86_64")


def test_the_choice_does_not_depend_on_the_order():
    tags = ["py3-none-any", "py2.py3-none-any"]
    assert chosen(*tags) == chosen(*reversed(tags))


@pytest.mark.parametrize(
    "tag", ["cp311-cp311-manylinux2014_x86_64", "cp312-cp312-manylinux_2_28_aarch64", "py2-none-any"]
)
def test_what_does_not_run_here_is_not_taken(tag):
    with pytest.raises(Unresolved, match="p 1 has no wheel for CPython 3.12"):
        chosen(tag)


def test_python_tags_of_newer_minor_versions_than_3_are_understood():
    assert chosen("py310-none-any", "py312-none-any") == "py312-none-any"


def package(name: str, **other) -> Package:
    return replace(Package(name, "1", f"{name}-1-py3-none-any.whl", "0" * 64, 1, []), **other)


def test_changes_are_one_line_a_package():
    before = [package("gone"), package("same"), package("newer"), package("other")]
    after = [package("same"), package("newer", version="2"), package("other", sha256="1" * 64), package("added")]
    assert changes(before, after) == [
        "added 1 is new",
        "gone 1 is no longer asked for",
        "newer 1 -> 2",
        "other 1: another file or other dependencies",
    ]


def test_the_file_survives_reading_and_does_not_depend_on_the_order(tmp_path):
    packages = [package("b"), package("a", dependencies=['c; extra == "x"'])]
    (tmp_path / "packages.json").write_text(text(packages))
    assert read(tmp_path / "packages.json") == sorted(packages, key=lambda p: p.name)
    assert text(packages) == text(packages[::-1])
