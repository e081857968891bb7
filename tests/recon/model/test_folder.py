import json
import os
import shutil
from pathlib import Path

import pytest

from appliance.errors import InputError
from appliance.recon.model import INDEX, model_report


@pytest.fixture
def folder(demo_model, tmp_path) -> Path:
    """A copy of the demo's model that a test may spoil."""
    return shutil.copytree(demo_model, tmp_path / "model")


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        model_report(folder)
    return str(error.value)


def test_the_demo_model(demo_model):
    report = model_report(demo_model)
    assert report.architecture == "LlamaForCausalLM"
    assert (report.layers, report.heads, report.kv_heads, report.head_dim) == (4, 8, 4, 32)
    assert report.tensor_types == {"F32": 39}
    assert report.weight_bytes == 4 * report.parameters
    assert (demo_model / "model.safetensors").stat().st_size > report.weight_bytes


def test_an_absent_folder(tmp_path):
    assert "no such folder; expected a model folder" in refusal(tmp_path / "absent")


def test_a_file_instead_of_a_folder(demo_model):
    assert "not a folder" in refusal(demo_model / "config.json")


def test_an_empty_folder(tmp_path):
    assert "no config.json (the folder is empty)" in refusal(tmp_path)


def test_a_folder_without_configuration(folder):
    (folder / "config.json").unlink()
    assert refusal(folder) == f"{folder}: no config.json; expected a model folder"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"architectures": []}', '{"architectures": [1]}', "\x00"])
def test_a_spoilt_configuration(folder, text):
    (folder / "config.json").write_text(text)
    assert str(folder / "config.json") in refusal(folder)


def test_a_folder_without_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "no *.safetensors file" in refusal(folder)


def test_a_truncated_file_is_named_with_both_sizes(folder):
    weights = folder / "model.safetensors"
    whole = weights.stat().st_size
    with weights.open("r+b") as file:
        file.truncate(whole - 1)
    assert refusal(folder) == f"{weights}: truncated: {whole - 1} bytes, expected {whole}"


def test_shards_that_the_index_names_must_all_be_there(folder):
    shutil.copy(folder / "model.safetensors", folder / "model-00001-of-00003.safetensors")
    files = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    (folder / INDEX).write_text(json.dumps({"weight_map": {f"tensor.{file}": file for file in files}}))
    assert f"2 of 3 weight files missing, first {files[1]}" in refusal(folder)


@pytest.mark.parametrize("index", ["{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "[]"])
def test_a_spoilt_index(folder, index):
    (folder / INDEX).write_text(index)
    assert INDEX in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", INDEX])
def test_a_pipe_or_a_folder_where_a_file_should_be_is_refused_and_not_waited_for(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert refusal(folder) == f"{folder / name}: not a regular file; expected a JSON object"
    (folder / name).unlink()
    (folder / name).mkdir()
    assert refusal(folder) == f"{folder / name}: not a regular file; expected a JSON object"


@pytest.mark.parametrize(
    "files, found",
    [
        ({}, None),
        ({"tokenizer_config.json": "{}"}, False),
        ({"tokenizer_config.json": '{"chat_template": "{{ messages }}"}'}, True),
        ({"tokenizer_config.json": "{}", "chat_template.jinja": "{{ messages }}"}, True),
        ({"tokenizer_config.json": "broken"}, None),
    ],
)
def test_whether_there_is_a_chat_template(folder, files, found):
    for path in [*folder.glob("tokenizer_config.json"), *folder.glob("chat_template*")]:
        path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)
    assert model_report(folder).chat_template is found
