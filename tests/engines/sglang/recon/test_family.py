import json

import pytest

from appliance.documents import ModelReport
from appliance.engines.sglang.recon.family import load, names, of_model, parse
from appliance.errors import InputError


def test_there_are_tables_for_deepseek_v4_and_for_the_rest():
    assert names() == ["deepseek_v4", "generic"]


def test_a_family_that_is_none_is_refused_in_one_line():
    with pytest.raises(InputError, match="no model family 'llama'; expected one of deepseek_v4, generic"):
        load("llama")


@pytest.mark.parametrize("text", ["name =", "name = 'x'", "name = 'x'\nwritten_for = '1'\nrows = []\nextra = 1"])
def test_a_table_with_a_fault_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="table of x: ") as error:
        parse(text, "x")
    assert "\n" not in str(error.value)


def folder(tmp_path, content: str):
    (tmp_path / "config.json").write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    "architecture, family", [("DeepseekV4ForCausalLM", "deepseek_v4"), ("LlamaForCausalLM", "generic")]
)
def test_the_family_follows_from_a_folder_or_a_saved_report(tmp_path, architecture, family):
    assert of_model(folder(tmp_path, json.dumps({"architectures": [architecture]}))) == family
    report = ModelReport(path="/m", architecture=architecture, parameters=1, weight_bytes=2)
    report.write(tmp_path / "report.json")
    assert of_model(tmp_path / "report.json") == family


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"architectures": 1}'])
def test_a_configuration_that_names_no_architecture_is_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"config\.json: .*expected a model's configuration"):
        of_model(folder(tmp_path, content))


def test_a_folder_without_configuration_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"config\.json: cannot be read"):
        of_model(tmp_path)
