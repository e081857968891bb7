"""`appliance recon model REF` as a user runs it; the hub has tests of its own beside recon."""

import json
import os
from pathlib import Path

import pytest

from tests.helpers import checkpoints as made
from tests.helpers.cli import appliance, refused


@pytest.fixture
def folder(tmp_path):
    config = made.moe_config(quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    return made.write_checkpoint(tmp_path / "tiny-FP8-MTP", config, made.moe_tensors(made.fp8_block, made.fp8_block), 2)


def recon(*words, code: int = 0):
    done = appliance("recon", "model", *words, timeout=60)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    return done.stdout


def test_for_a_person(folder):
    text = recon(folder)
    assert "attention   GQA: 2 layers (2 full), 8 heads, 2 KV heads" in text
    assert "routed_experts  fp8     128x128  fp8 dynamic" in text
    assert "fp8: agrees." in text
    assert "mtp: differs. 0 MTP layers, by tensor names: nothing to speculate with" in " ".join(text.split())
    assert "sm_120, fp8, activations fp8 dynamic" in text
    assert "2 files, 0.0 GiB; 0 problems" in text


def test_every_model_of_the_corpus_is_told_in_80_columns_and_without_a_null(corpus, capsys):
    from rich.console import Console

    from appliance.cli.recon_model_output import show_model
    from appliance.recon.model.inspect import Wanted, inspect

    for path in sorted(corpus.glob("models/*/config.json")):
        if json.loads(path.read_text()).get("architectures") is None:
            continue
        show_model(Console(highlight=False, soft_wrap=True, markup=False), inspect(str(path.parent), Wanted()))
        for line in capsys.readouterr().out.splitlines():
            assert len(line) <= 80 or len(line.split()) <= 2, line  # a path is never broken in two
            assert "None" not in line


def test_names_that_are_no_text_or_orders_to_a_terminal(tmp_path):
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/not\xff\x1b[2Jtext"))
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["Odd\\ud800\\u001b[31m"], "hidden_size": 8}')
    assert "/not??[2Jtext: Odd??[31m" in " ".join(recon(folder).split())
    assert json.loads(recon(folder, "--json"))["architecture"] == "Odd?\x1b[31m"


def test_json_is_a_document_and_nothing_else(folder):
    report = json.loads(recon(folder, "--json"))
    assert report["kind"] == "ModelReport"


def test_a_saved_report_is_read_again_and_held_against_another_claim(folder, tmp_path):
    saved = tmp_path / "report.json"
    saved.write_text(recon(folder, "--json"))
    report = json.loads(recon(saved, "--json"))
    assert report == json.loads(saved.read_text())
    claims = json.loads(recon(saved, "--json", "--claim", "NVFP4"))["claims"]
    assert [(part["claim"], part["verdict"]) for part in claims] == [("nvfp4", "differs")]
    ranks = json.loads(recon(saved, "--json", "--tp", "4"))["ranks"]
    assert [rank["tp"] for rank in ranks] == [4]


def test_a_layout(folder):
    (rank,) = json.loads(recon(folder, "--json", "--tp", "4", "--ep", "2"))["ranks"]
    assert (rank["tp"], rank["ep"]) == (4, 2)
    assert "expected ep to divide tp" in refused("recon", "model", folder, "--tp", "4", "--ep", "3")


def test_a_claim_in_place_of_the_name(folder):
    claims = json.loads(recon(folder, "--json", "--claim", "w4a16"))["claims"]
    assert [(part["claim"], part["verdict"]) for part in claims] == [("w4a16", "differs")]


def test_files_that_do_not_hold_together_are_told_and_end_with_1(folder):
    path = sorted(folder.glob("*.safetensors"))[0]
    os.truncate(path, path.stat().st_size - 1)
    text = recon(folder, code=1)
    assert "1 problems" in text and f"truncated: {path.name}" in text


def test_hashes_against_a_saved_report(folder, tmp_path):
    assert "nothing here tells the files' hashes" in refused("recon", "model", folder, "--hash")
    report = json.loads(recon(folder, "--json"))
    for file in report["files"]:
        file["sha256"] = made.sha256(folder / file["name"])
    saved = tmp_path / "report.json"
    saved.write_text(json.dumps(report))
    assert json.loads(recon(folder, "--json", "--hash", "--against", saved))["integrity"]["hashed"] == 2
    with (folder / report["files"][0]["name"]).open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    done = appliance("recon", "model", folder, "--hash", "--against", saved)
    assert done.returncode == 1
    assert "2 hashed and compared; 1 problems" in done.stdout and "changed: " in done.stdout
    assert "hashing of" in done.stderr


def test_control_characters_and_markup_of_a_file_do_not_reach_the_terminal(folder):
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] |= {"activation_scheme": "[/red]\x1b[31m", "quant_method": "fp8"}
    config["architectures"] = ["X\x1b]0;title\x07[/blue]"]
    (folder / "config.json").write_text(json.dumps(config))
    text = recon(folder)
    assert "\x1b" not in text and "\x07" not in text
    assert "[/blue]" in text


@pytest.mark.parametrize(
    "reference, words",
    [
        ("gone", "no such file or folder, and no hub id"),
        ("/gone/model", "no such file or folder, and no hub id"),
        ("a/b/c", "no such file or folder, and no hub id"),
    ],
)
def test_references_that_name_nothing(reference, words):
    assert words in refused("recon", "model", reference)


def test_files_that_are_no_report(folder, tmp_path):
    assert "a configuration; expected its folder" in refused("recon", "model", folder / "config.json")
    (tmp_path / "x.json").write_text("{}")
    assert "expected 'ModelReport'" in refused("recon", "model", tmp_path / "x.json")


def test_configuration_of_inference_code(tmp_path):
    (tmp_path / "config.json").write_text('{"dim": 4096, "n_layers": 43, "n_heads": 64}')
    assert "DeepSeek's own inference code (dim, n_layers)" in refused("recon", "model", tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["machine", "x/y"],
        ["machine", "--claim", "fp8"],
        ["model"],
        ["engine", "--host", "x"],
        ["all", "x/y"],
        ["machine", "--arch", "sm_90"],
        ["model", "x/y", "--against", "z"],
        ["model", "x/y", "--tp", "0"],
    ],
)
def test_bad_usage(words):
    done = appliance("recon", *words)
    assert done.returncode == 2 and "Error: " in done.stderr
