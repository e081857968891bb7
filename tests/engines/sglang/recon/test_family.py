import pytest

from appliance.engines.sglang.recon.family import load, names, of_architecture, parse
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


@pytest.mark.parametrize(
    "architecture, family",
    [("DeepseekV4ForCausalLM", "deepseek_v4"), ("LlamaForCausalLM", "generic"), (None, "generic")],
)
def test_the_family_follows_from_the_model_class(architecture, family):
    assert of_architecture(architecture) == family
