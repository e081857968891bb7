"""flake.nix and flake.lock, evaluated: against the pin without fetching it, and over a stand-in for nixpkgs."""

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers.nix_packages import PROJECT, output

PARTS = ["flake.nix", "flake.lock", "nix", "pkgs", "appliance", "pyproject.toml", "README.md"]
VERBS = {"deploy", "recon", "plan", "bench", "verify", "demo"}


@pytest.fixture(scope="module")
def flake(tmp_path_factory) -> Path:
    """The flake's own files alone: what is in the way of a build in a checkout is not copied to the store."""
    folder = tmp_path_factory.mktemp("flake") / "project"
    folder.mkdir()
    for part in map(PROJECT.joinpath, PARTS):
        if part.is_dir():
            shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(part, folder)
    return folder


@pytest.fixture(scope="module")
def over_stub(flake) -> list[str]:
    """Arguments that put the stand-in in the place of nixpkgs."""
    stub = flake.parent / "stub"
    shutil.copytree(PROJECT / "tests/pkgs/stub-flake", stub)
    for name in ("stub.nix", "builder.sh"):
        shutil.copy(PROJECT / "tests/pkgs" / name, stub)
    return ["--override-input", "nixpkgs", f"path:{stub}", "--no-write-lock-file"]


def test_the_lock_is_whole_and_what_the_flake_asks_for(flake):
    metadata = json.loads(output("nix", "flake", "metadata", "--json", "--no-update-lock-file", f"path:{flake}"))
    assert metadata["locks"] == json.loads((PROJECT / "flake.lock").read_text())


def test_the_only_input_is_nixpkgs():
    lock = json.loads((PROJECT / "flake.lock").read_text())
    assert set(lock["nodes"]) == {"root", "nixpkgs"}
    assert set(lock["nodes"]["nixpkgs"]["locked"]) == {"lastModified", "narHash", "owner", "repo", "rev", "type"}


def test_outputs_are_where_convention_has_them(flake, over_stub):
    shown = json.loads(output("nix", "flake", "show", "--json", *over_stub, f"path:{flake}"))
    assert set(shown["apps"]["x86_64-linux"]) == VERBS
    assert {"default", "kernels", "cuda-toolkit", "demo"} <= set(shown["packages"]["x86_64-linux"])
    assert {"default", "rtx-pro-6000"} == set(shown["nixosModules"])
    assert {"pd-8-gpus", "replicas", "one-gpu"} == set(shown["nixosConfigurations"])
    assert {"default"} == set(shown["overlays"]) == set(shown["templates"])
    assert {"checks", "devShells", "formatter"} <= set(shown)


def test_every_output_evaluates(flake, over_stub):
    output("nix", "flake", "check", "--no-build", *over_stub, f"path:{flake}")


def test_the_overlay_gives_what_the_module_takes(flake, over_stub):
    expression = f"""
      let
        outputs = (import {flake}/flake.nix).outputs {{ self = {{ }}; nixpkgs = {{ }}; }};
        pkgs = import {flake.parent}/stub/stub.nix {{ python = ./.; compiler = "none"; }};
      in
      (outputs.overlays.default pkgs {{ }}).sglang-appliance.name
    """
    assert output("nix", "eval", "--impure", "--raw", "--expr", expression) == "sglang-appliance"
