"""docs/options.md is what the module says of itself."""

import os
import subprocess

from tests.helpers.nix_module import LIB_SETTING, PROJECT, evaluate, in_nix_environment, value_of

TOOL = PROJECT / "tools/option-docs"


def printed(**setting: str) -> str:
    in_nix_environment("true")  # skips where Nix is not to be had
    env = {name: value for name, value in os.environ.items() if name != LIB_SETTING} | setting
    done = subprocess.run([TOOL, "--print"], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_reference_is_current():
    assert (PROJECT / "docs/options.md").read_text() == printed(), "tools/option-docs writes it anew"


def test_the_real_library_describes_the_options_alike(real_lib):
    assert printed(**{LIB_SETTING: real_lib.removesuffix("/lib")}) == printed()


def test_every_option_has_a_description_and_an_example_or_a_default():
    lib = f"import {PROJECT}/tests/nix/module/standin/lib.nix"
    host = f"import {PROJECT}/tests/nix/module/evaluate.nix {{ lib = {lib}; module = {{ }}; }}"
    documented = f"import {PROJECT}/nix/option-docs.nix {{ lib = {lib}; }}"
    options = value_of(f"{documented} ({host}).options.services.sglang-appliance")
    assert len(options) > 40
    for option in options:
        assert option["description"].strip(), option["name"]
        assert option["readOnly"] or option["example"] or option["default"], option["name"]


def test_a_disabled_module_sets_nothing():
    found = evaluate("{ }")
    assert (found["units"], found["etc"], found["users"], found["refused"]) == ({}, {}, {}, [])
