from hypothesis import given
from hypothesis import strategies as st

from appliance.cli.plain_text import WIDTH, wrapped


@given(st.text(), st.sampled_from(["", "  "]), st.sampled_from(["", "label "]))
def test_any_text_is_lines_within_the_width_that_a_terminal_only_shows(text, indent, label):
    for line in wrapped(text, indent, label):
        assert len(line) <= WIDTH or len(line.removeprefix(label).split()) == 1
        assert "\x1b" not in line and "\n" not in line and "\r" not in line


def test_further_lines_stand_below_the_first_and_a_path_stays_whole():
    path = "/models/" + "a-long-name-" * 8
    first, second, third = wrapped(f"the folder {path} is here", "  ", "label ")
    assert first == "  label the folder"
    assert second == f"        {path}"
    assert third == "        is here"
