"""nix/lock/packages.json, offline: whole, closed, of one platform, without a host name."""

import re
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.helpers.nix_packages import PROJECT
from tools.nix_lock.closure import problems
from tools.nix_lock.package import PACKAGES, Package, read, text
from tools.nix_lock.platform import supported_tags
from tools.nix_lock.roots import overridden, roots

LOCKED = read()


def test_one_package_a_line_sorted_and_as_the_tool_writes_it():
    assert PACKAGES.read_text() == text(LOCKED)
    assert [package.name for package in LOCKED] == sorted({package.name for package in LOCKED})
    assert len(PACKAGES.read_text().splitlines()) == len(LOCKED) + 2


def test_every_dependency_is_there_at_a_version_that_its_package_allows():
    assert problems(LOCKED, roots()) == []


def test_no_address_is_in_it():
    for package in LOCKED:
        assert re.fullmatch(r"[A-Za-z0-9_.+-]+", package.file)
        assert not [line for line in package.dependencies if "://" in line or "@" in line]


def test_hashes_and_sizes_are_well_formed():
    for package in LOCKED:
        assert re.fullmatch("[0-9a-f]{64}", package.sha256), package
        assert package.size > 0


def test_every_file_is_a_wheel_of_its_package_that_runs_on_the_platform():
    supported = set(supported_tags())
    for package in LOCKED:
        name, version, build, tags = parse_wheel_filename(package.file)
        assert (name, str(version), build) == (package.name, package.version, ()), package
        assert tags & supported, package


def test_dependencies_left_out_are_named_and_belong_to_locked_versions():
    versions = {package.name: package.version for package in LOCKED}
    assert set(overridden()) == {("nixl", "1.5.1")}
    assert [name for name, version in overridden() if versions[name] != version] == []


def names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_what_the_appliance_depends_on_is_asked_for():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) <= names(roots())


def test_engine_and_router_are_those_that_the_tests_run():
    asked = (PROJECT / "requirements/packages.in").read_text()
    pinned = dict(re.findall(r"^(\S+)==(\S+)", asked, re.M))
    versions = {package.name: package.version for package in LOCKED}
    for name in ("sglang", "nixl", "nixl-cu13", "smg"):
        assert versions[name] == pinned[name]


@settings(max_examples=20)
@given(st.sampled_from(LOCKED))
def test_a_package_that_is_missing_is_missed(package):
    without = [other for other in LOCKED if other != package]
    assert any(f"{package.name}" in canonicalize_name(line) for line in problems(without, roots()))


def locked(name: str, version: str = "1", *dependencies: str) -> Package:
    return Package(name, version, f"{name}-{version}-py3-none-any.whl", "0" * 64, 1, list(dependencies))


@pytest.mark.parametrize(
    "packages, said",
    [
        ([locked("a", "1", "b>=2"), locked("b", "1")], "a 1 asks for b>=2: the lock has 1"),
        ([locked("a", "1", 'b; sys_platform == "linux"')], 'a 1 asks for b; sys_platform == "linux": not in the lock'),
        ([locked("a"), locked("b")], "b: nothing asks for it"),
        ([locked("a", "1", 'b; sys_platform == "win32"')], None),
        ([locked("a", "1", 'b; extra == "x"')], None),
        (
            [locked("a", "1", "b[x]"), locked("b", "1", 'c; extra == "x"')],
            'b 1 asks for c; extra == "x": not in the lock',
        ),
        ([locked("a", "1", "B.c_d"), locked("b-c-d")], None),
        ([locked("a", "1", "b"), locked("b", "1rc1")], None),
    ],
)
def test_problems(packages, said):
    assert problems(packages, ["a"]) == ([said] if said else [])


def test_a_root_at_another_version_is_a_problem():
    other = [replace(package, version="0") if package.name == "sglang" else package for package in LOCKED]
    assert any(line.startswith("requirements.in asks for sglang==") for line in problems(other, roots()))
