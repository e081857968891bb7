import pytest

from appliance.recon.model.configuration import shape_of
from appliance.recon.model.mtp import mtp_of, remarks
from tests.helpers.checkpoints import llama_config, v4_config


def found(config: dict, tensors: dict | None = None):
    return mtp_of(shape_of(config, "config.json"), tensors)


def test_tensor_names_decide():
    mtp = found(v4_config(), {"mtp.0": 10, "mtp.1": 9, "mtp.2": 9})
    assert (mtp.count, mtp.basis, mtp.declared) == (3, "tensor names", 1)
    assert remarks(mtp) == [
        "num_nextn_predict_layers says 1, the tensor names show 3: memory sized from the configuration is short by 2"
    ]


def test_a_declared_layer_that_was_dropped():
    mtp = found(v4_config(), {})
    assert mtp.count == 0
    assert "a server told to use MTP must be refused" in remarks(mtp)[0]


def test_parts_outside_of_the_numbered_layers_are_no_layer():
    assert found(llama_config(), {"mtp": 4, "mtp.0": 12}).count == 1
    assert found(llama_config(), {"mtp": 4}).count == 1


def test_without_tensors_v4_has_one_for_each_ratio_beyond_its_layers():
    mtp = found(v4_config(compress_ratios=[0] * 46))
    assert (mtp.count, mtp.basis) == (3, "compress_ratios")


@pytest.mark.parametrize("key", ["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"])
def test_the_keys_that_declare_them(key):
    mtp = found(llama_config(**{key: 2}))
    assert (mtp.count, mtp.basis, mtp.declared_key) == (2, "configuration", key)
    assert remarks(mtp) == []


def test_a_configuration_that_does_not_speak_of_them():
    mtp = found(llama_config())
    assert (mtp.count, mtp.basis) == (None, "unknown")
