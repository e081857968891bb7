import json
import os
import shutil

import pytest

from appliance.documents.model import ModelFile
from appliance.recon.model.checkpoint import INDEX
from appliance.recon.model.folder import read_folder
from appliance.recon.model.integrity import against, integrity_of
from tests.helpers import checkpoints as made


@pytest.fixture
def folder(tmp_path):
    return made.write_checkpoint(tmp_path / "m", made.moe_config(), made.moe_tensors(made.plain, made.plain), 3)


@pytest.fixture
def files(folder) -> list:
    return sorted(folder.glob("*.safetensors"))


def problems(folder) -> list[tuple[str, str]]:
    return [(problem.kind, problem.file) for problem in integrity_of(read_folder(folder)).problems]


def words(folder, kind: str) -> str:
    (found,) = [problem.words for problem in integrity_of(read_folder(folder)).problems if problem.kind == kind]
    return found


def edit_index(folder, change) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def test_a_whole_folder(folder, files):
    found = integrity_of(read_folder(folder))
    assert (found.files, found.bytes, found.problems) == (3, sum(path.stat().st_size for path in files), [])


def test_missing_truncated_longer_empty_pointer_and_noise_at_once(tmp_path):
    folder = made.write_checkpoint(tmp_path / "m", made.moe_config(), made.moe_tensors(made.plain, made.plain), 7)
    files = sorted(folder.glob("*.safetensors"))
    files[0].unlink()
    with files[1].open("r+b") as file:
        file.truncate(files[1].stat().st_size - 1)
    with files[2].open("ab") as file:
        file.write(b"x")
    files[3].write_bytes(b"")
    files[4].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    files[5].write_bytes((8).to_bytes(8, "little") + b"nonsense")
    kinds = ["missing", "truncated", "longer", "zero-length", "lfs-pointer", "not-safetensors"]
    assert problems(folder) == [(kind, path.name) for kind, path in zip(kinds, files, strict=False)]


def test_a_file_cut_within_its_header(folder, files):
    with files[0].open("r+b") as file:
        file.truncate(100)
    assert problems(folder) == [("truncated", files[0].name)]
    assert "within its header" in words(folder, "truncated")


def test_a_link_that_leads_nowhere(folder, files):
    files[0].unlink()
    files[0].symlink_to("gone")
    assert problems(folder) == [("missing", files[0].name)]


def test_an_extra_file_and_its_tensors(folder, files):
    shutil.copy(files[0], folder / "extra.safetensors")
    assert problems(folder) == [("extra", "extra.safetensors")]


def test_a_tensor_in_two_files(folder, files):
    made.write_safetensors(files[1], {"model.embed_tokens.weight": ("BF16", [1000, 256])})
    assert ("duplicate", files[1].name) in problems(folder)
    assert words(folder, "duplicate") == f"model.embed_tokens.weight: also in {files[0].name}"


def test_without_an_index_every_file_counts(folder, files):
    (folder / INDEX).unlink()
    assert problems(folder) == []
    shutil.copy(files[0], folder / "z.safetensors")
    assert problems(folder) == [("duplicate", "z.safetensors")]


def test_tensors_that_the_index_has_and_the_file_has_not(folder, files):
    edit_index(folder, lambda weight_map: weight_map.update({"novel": files[0].name, "novel2": files[0].name}))
    assert problems(folder) == [("absent-tensor", files[0].name)]
    assert words(folder, "absent-tensor") == f"novel (and 1 more): in {INDEX}, not in the file"


def test_tensors_that_the_index_has_not(folder, files):
    edit_index(folder, lambda weight_map: weight_map.pop("lm_head.weight"))
    assert problems(folder) == [("unindexed-tensor", files[0].name)]


def test_tensors_that_the_index_has_elsewhere(folder, files):
    edit_index(folder, lambda weight_map: weight_map.update({"lm_head.weight": files[2].name}))
    assert problems(folder) == [("misplaced-tensor", files[2].name)]
    assert words(folder, "misplaced-tensor") == f"lm_head.weight: in {files[0].name} instead"


def test_an_index_that_names_files_outside_is_refused(folder):
    from appliance.errors import InputError

    edit_index(folder, lambda weight_map: weight_map.update({"w": "../other/model.safetensors"}))
    with pytest.raises(InputError, match="lies outside the model"):
        read_folder(folder)


@pytest.mark.parametrize(
    "tensor, expected",
    [
        ({"dtype": "BF16", "shape": [3], "data_offsets": [0, 8]}, "w: 8 bytes for BF16 [3]"),
        ({"dtype": "BF16", "shape": [3], "data_offsets": [2, 8]}, "tensors cover 6 of 8 bytes"),
    ],
)
def test_headers_that_contradict_themselves(folder, files, tensor, expected):
    raw = json.dumps({"w": tensor}).encode()
    files[0].write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(8))
    assert expected in words(folder, "inconsistent")


def test_files_against_what_they_should_be():
    files = [ModelFile(name="a", size=1, sha256="x"), ModelFile(name="b", size=2, sha256="y")]
    expected = {
        "a": ModelFile(name="a", size=1, sha256="z"),
        "b": ModelFile(name="b", size=3, sha256="y"),
        "c": ModelFile(name="c", size=3, sha256="y"),
    }
    found = [(problem.kind, problem.file, problem.words) for problem in against(files, expected, "org/name")]
    assert found == [
        ("changed", "a", "sha256 x, org/name has z"),
        ("changed", "b", "2 bytes, org/name has 3"),
        ("missing", "c", "org/name has it, it is not there"),
    ]


def test_names_out_of_a_file_cannot_break_the_one_line_of_an_error(folder, files):
    from appliance.errors import InputError
    from appliance.recon.model import model_report

    raw = json.dumps({"w\n\x1b[2J": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 8]}}).encode()
    files[0].write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(8))
    with pytest.raises(InputError) as error:
        model_report(folder)
    assert str(error.value).endswith("w??[2J: 8 bytes for BF16 [3]")


def test_a_link_to_a_pipe_is_no_weight_file_and_is_not_waited_for(folder, files):
    files[0].unlink()
    os.mkfifo(folder / "pipe")
    files[0].symlink_to(folder / "pipe")
    assert ("unreadable", files[0].name) in problems(folder)
    assert "not a regular file" in words(folder, "unreadable")
