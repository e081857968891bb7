from xml.etree import ElementTree

import pytest

from appliance.bench.kernels.plot import draw, grouped
from appliance.errors import InputError

pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
SVG = "{http://www.w3.org/2000/svg}"


def test_a_panel_for_each_context_and_the_same_picture_twice(bench, tmp_path):
    assert [len(cases) for cases in grouped(bench.cases).values()] == [2, 1]
    for name in ("one.svg", "two.svg"):
        draw(bench, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    root = ElementTree.parse(tmp_path / "one.svg").getroot()
    assert root.tag == f"{SVG}svg"
    panels = [g for g in root.iter(f"{SVG}g") if g.get("id", "").startswith("axes_")]
    assert len(panels) >= 2


def test_a_place_that_cannot_be_written_is_said(bench, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        draw(bench, tmp_path / "absent" / "x.svg")
