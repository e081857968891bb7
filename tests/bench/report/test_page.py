"""The report in a real browser, on SIMULATED records."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from appliance.bench.profile.report import from_files
from appliance.bench.report.page import pictures, report
from appliance.documents import KernelBench
from appliance.errors import InputError
from tests.helpers.bench_records import simulated_record
from tests.helpers.browser import opened
from tests.helpers.traces import SPARSE_DECODE, decode_step, trace, write_trace

KERNELS = Path(__file__).parents[3] / "docs/records/2026-12-01-indexer-logits-h200.json"


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("report") / "report.html"
    records = [simulated_record(seed=1, repetitions=5), simulated_record(seed=2, slower=1.2, repetitions=5)]
    step = write_trace(place.parent / "step.trace.json.gz", trace(decode_step()))
    place.write_text(report(records, [KernelBench.read(KERNELS)], [from_files([step], [])]))
    return place


@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_without_a_complaint_or_a_request_and_can_be_read(file, dark):
    with opened(file.as_uri(), dark=dark) as found:
        assert found.complaints == []
        assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
        assert found.unreadable() == []
        ground = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(18, 22, 27)") == dark


def test_the_button_changes_light_and_dark(file):
    with opened(file.as_uri()) as found:
        found.page.click("#theme")
        assert found.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
        assert found.unreadable() == [] and found.page.text_content("#theme") == "Light"


def test_a_telephone_shows_it_without_scrolling_sideways(file):
    with opened(file.as_uri(), width=360) as found:
        assert found.too_wide() == 0


def test_every_picture_says_what_its_axes_are(file):
    with opened(file.as_uri()) as found:
        pictures = found.page.query_selector_all("figure svg")
        assert len(pictures) == 2 * (6 + 1)
        for picture in pictures:
            assert (
                picture.query_selector(".x-label").text_content() and picture.query_selector(".y-label").text_content()
            )
            assert picture.get_attribute("aria-label")


def test_the_keyboard_reaches_every_table(file):
    with opened(file.as_uri()) as found:
        tables = found.page.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.getAttribute('aria-label'))")
        links = found.page.evaluate("document.querySelectorAll('a').length")
        reached = found.reached_by_tab(1 + len(tables) + links)
        assert set(tables) <= set(reached)


def test_the_numbers_behind_a_picture_can_be_taken_along(file):
    with opened(file.as_uri()) as found:
        with found.page.expect_download() as taken:
            found.page.click("a[download='tail-isolation.csv']")
        lines = Path(taken.value.path()).read_text().splitlines()
        assert lines[0] == "topology,alone TTFT p50 ms,behind TTFT p50 ms,behind TTFT p99 ms"
        assert [line.split(",")[0] for line in lines[1:]] == ["pd", "replicas", "single"]


def test_kernels_that_leave_the_gpu_empty_are_said_aloud(file):
    with opened(file.as_uri()) as found:
        loud = found.page.eval_on_selector_all(".loud", "all => all.map(e => e.textContent)")
        assert any(text.startswith(f"{SPARSE_DECODE}: 64 blocks of 188 SMs, 60.0%") for text in loud)
        assert "SIMULATED: this trace was made up. No engine was profiled." in loud


def test_what_is_simulated_unstamped_or_cut_short_is_said_aloud():
    record = simulated_record()
    broken = record.model_copy(
        update={"complete": False, "stamp": record.stamp.model_copy(update={"missing": ["the driver's version"]})}
    )
    text = report([broken], [], [])
    for word in ("SIMULATED", "UNSTAMPED: the driver&#x27;s version", "NOT COMPLETE"):
        assert word in text


def test_names_from_a_record_are_text_and_never_markup():
    record = simulated_record(command="<script>alert(1)</script>", remarks=["</main><img src=x onerror=alert(1)>"])
    text = report([record], [], [])
    assert "<script>alert" not in text and "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_pictures_stand_alone_for_papers():
    for name, text in pictures([simulated_record()]).items():
        assert name.endswith(".svg")
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and "var(--s0)" in text and "#ffffff" in text


def test_nothing_is_no_report():
    with pytest.raises(InputError, match="nothing to report"):
        report([], [], [])
