"""tools/nix-environment where it cannot work, and inside itself."""

import os
import subprocess

import pytest

from tests.helpers.nix_environment import CANNOT_BRING_UP, NIX_ENVIRONMENT, in_nix_environment
from tests.helpers.nix_packages import output

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def refused(**settings: str) -> str:
    """Its one line when it cannot bring Nix up."""
    environment = os.environ | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"} | settings  # without a nix of this machine
    done = subprocess.run([NIX_ENVIRONMENT], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (CANNOT_BRING_UP, "")
    return done.stderr.splitlines()[-1]


def test_exit_code_folder_and_arguments_pass_through(tmp_path):
    done = in_nix_environment("bash", "-c", 'echo "$PWD $1"; exit 7', "bash", "two words")
    assert (done.returncode, done.stdout) == (7, f"{os.getcwd()} two words\n")


def test_builds_are_really_in_a_sandbox(tmp_path):
    (tmp_path / "secret").write_text("seen")
    expression = f"""derivation {{
      name = "in-a-sandbox"; system = "x86_64-linux"; builder = "/bin/bash";
      args = [ "-c" "[ ! -e {tmp_path}/secret ] && [ ! -e /root ] && echo $PWD > $out" ];
    }}"""
    built = output("nix", "build", "--impure", "--no-link", "--print-out-paths", "--expr", expression).strip()
    assert output("cat", built) == "/build\n"


@needs_root
def test_a_nix_on_the_path_is_used_as_it_is(tmp_path):
    said = in_nix_environment("env", f"APPLIANCE_NIX_DIR={tmp_path}/unused", NIX_ENVIRONMENT)
    assert "the nix on the PATH" in said.stderr
    assert not (tmp_path / "unused").exists()


@needs_root
def test_an_archive_that_does_not_answer_is_named(tmp_path):
    in_nix_environment("nix", "--version")
    mirror = "http://127.0.0.1:9/debian"
    line = refused(
        APPLIANCE_NIX_DIR=str(tmp_path), APPLIANCE_DEBIAN_MIRROR=mirror, PATH="/usr/sbin:/usr/bin:/sbin:/bin"
    )
    assert f"could not make a root from {mirror}: E: " in line
    assert not list(tmp_path.glob("making.*")), "nothing half-made is left"


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    in_nix_environment("nix", "--version")
    (tmp_path / "file").write_text("")
    line = refused(APPLIANCE_NIX_DIR=f"{tmp_path}/file/below")
    assert line == f"nix-environment: cannot write to {tmp_path}/file/below; APPLIANCE_NIX_DIR names another folder"
