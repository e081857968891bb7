"""The manifest's parser: whatever it is given, a document or one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.documents import CheckpointManifest
from appliance.documents.checkpoint import outside
from appliance.errors import InputError
from tests.helpers.hub_server import COMMIT

words = st.text(st.characters(codec="ascii", exclude_characters="/\x00"), min_size=1)
names = st.lists(words, min_size=1).map("/".join)
files = st.builds(
    dict,
    name=names,
    size=st.integers(min_value=0, max_value=2**60),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    mtime_ns=st.integers(min_value=0, max_value=2**62),
)


def text_of(**changes) -> str:
    whole = {"kind": "CheckpointManifest", "model": "a/b", "revision": COMMIT, "written": "2026-12-01", "files": []}
    return json.dumps(whole | changes)


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        CheckpointManifest.parse(text, "manifest")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(st.lists(files, unique_by=lambda file: file["name"]))
def test_what_it_takes_it_writes_again_and_every_file_is_inside(entries):
    if any(outside(entry["name"]) for entry in entries):
        assert "lies outside" in refused(text_of(files=entries))
        return
    manifest = CheckpointManifest.parse(text_of(files=entries), "manifest")
    assert CheckpointManifest.parse(manifest.to_json(), "again") == manifest
    assert manifest.bytes() == sum(entry["size"] for entry in entries)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)).map(json.dumps))
def test_what_is_none_is_one_line(text):
    refused(text)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "", "a//b", "./a", "a\nb"])
def test_a_file_outside_is_refused(name):
    entry = {"name": name, "size": 1, "sha256": "0" * 64, "mtime_ns": 0}
    assert "lies outside" in refused(text_of(files=[entry]))


def test_a_file_that_is_there_twice_is_refused():
    entry = {"name": "a", "size": 1, "sha256": "0" * 64, "mtime_ns": 0}
    assert "listed twice" in refused(text_of(files=[entry, entry]))


@pytest.mark.parametrize("field", [{"revision": "main"}, {"files": [{"name": "a"}]}, {"size": 1}])
def test_a_field_that_is_wrong_is_named(field):
    assert next(iter(field)) in refused(text_of(**field))
