import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import InputError
from appliance.recon.safetensors_header import LENGTH_BYTES, read_header


def write(path, header: dict | bytes, data: bytes = b"") -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(LENGTH_BYTES, "little") + raw + data)


def refusal(path) -> str:
    with pytest.raises(InputError) as error:
        read_header(path)
    return str(error.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_tensors_are_read_and_metadata_is_not_one(path):
    write(
        path,
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}},
        bytes(12),
    )
    tensor = read_header(path)["w"]
    assert (tensor.dtype, tensor.shape, tensor.elements, tensor.begin, tensor.end) == ("BF16", (2, 3), 6, 0, 12)


def test_a_file_of_the_reference_implementation(path):
    import numpy
    from safetensors.numpy import save_file

    save_file({"a": numpy.zeros((3, 5), numpy.float32), "b": numpy.zeros(7, numpy.int8)}, path)
    assert {name: tensor.elements for name, tensor in read_header(path).items()} == {"a": 15, "b": 7}


def test_data_shorter_or_longer_than_the_header_says(path):
    header = {"w": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}
    write(path, header, bytes(7))
    assert "truncated" in refusal(path)
    write(path, header, bytes(9))
    assert "longer than its header says" in refusal(path)


def test_a_git_lfs_pointer_is_called_one(path):
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "Git LFS pointer" in refusal(path)


def test_an_empty_file(path):
    path.touch()
    assert "empty file" in refusal(path)


def test_a_header_length_beyond_the_file_or_all_reason(path):
    path.write_bytes((2**63).to_bytes(LENGTH_BYTES, "little") + b"{}")
    assert "truncated within its header" in refusal(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_header(path)


entries = st.dictionaries(
    st.text(max_size=5),
    st.none()
    | st.integers()
    | st.dictionaries(
        st.sampled_from(["dtype", "shape", "data_offsets", "x"]),
        st.none() | st.text() | st.lists(st.integers() | st.floats()),
    ),
)


@given(entries)
def test_any_json_header_is_read_or_refused(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "json.safetensors"
    write(path, header)
    with suppress(InputError):
        read_header(path)


@given(st.binary(max_size=200))
def test_any_header_is_read_or_refused(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "header.safetensors"
    write(path, header)
    with suppress(InputError):
        assert read_header(path) == {}
