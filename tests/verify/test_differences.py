import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.verify.differences import LINES, by_byte, differences, first_difference


@pytest.fixture
def trees(tmp_path) -> tuple[Path, Path]:
    for name in ("first", "second"):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib" / "same").write_text("same")
    return tmp_path / "first", tmp_path / "second"


def test_equal_trees_have_no_differences(trees):
    assert by_byte(*trees) == []


def test_a_file_is_named_with_the_first_byte_that_differs(trees):
    for tree, content in zip(trees, (b"0123x56", b"0123y5"), strict=True):
        (tree / "lib" / "file").write_bytes(content)
    assert by_byte(*trees) == ["lib/file: differs from byte 0x4 on (sizes 7 and 6)"]


def test_what_one_build_has_alone_is_named(trees):
    (trees[0] / "one").write_text("")
    (trees[1] / "two").symlink_to("nowhere")
    assert by_byte(*trees) == ["one: only in the first build", "two: only in the second build"]


def test_kinds_and_links_differ(trees):
    for tree, mode, link in zip(trees, (0o644, 0o755), ("a", "b"), strict=True):
        (tree / "file").write_text("x")
        (tree / "file").chmod(mode)
        (tree / "link").symlink_to(link)
    (trees[0] / "thing").mkdir()
    (trees[1] / "thing").write_text("")
    assert by_byte(*trees) == [
        "file: a file in the first build, a program in the second",
        "link: a link to a and to b",
        "thing: a folder in the first build, a file in the second",
    ]


def test_an_output_that_is_one_file_is_compared_too(tmp_path):
    (tmp_path / "first").write_text("ab")
    (tmp_path / "second").write_text("aB")
    assert by_byte(tmp_path / "first", tmp_path / "second") == ["first: differs from byte 0x1 on (sizes 2 and 2)"]


def test_a_link_to_a_folder_is_not_followed(trees):
    for tree, target in zip(trees, ("lib", "."), strict=True):
        (tree / "link").symlink_to(target)
    assert by_byte(*trees) == ["link: a link to lib and to ."]


def test_many_lines_are_cut(trees, monkeypatch):
    monkeypatch.setenv("PATH", "")
    for number in range(LINES + 5):
        (trees[0] / f"{number:03}").write_text("")
    found = differences(*trees)
    assert len(found) == LINES + 1
    assert found[-1] == "and 5 lines more"


def test_diffoscope_adds_its_words_where_it_is_installed(trees, tmp_path, monkeypatch):
    (trees[0] / "one").write_text("")
    program = tmp_path / "diffoscope"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho "its own words about $last"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    named = "one: only in the first build"
    assert differences(*trees) == [named, f"its own words about {trees[1]}"]
    program.write_text("#!/bin/sh\nexit 2\n")
    assert differences(*trees) == [named]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_first_difference_is_the_first(tmp_path_factory, one, two):
    folder = tmp_path_factory.mktemp("files")
    (folder / "one").write_bytes(one)
    (folder / "two").write_bytes(two)
    found = first_difference(folder / "one", folder / "two")
    if found is None:
        assert one == two
    else:
        assert one[:found] == two[:found]
        assert one[found : found + 1] != two[found : found + 1]
