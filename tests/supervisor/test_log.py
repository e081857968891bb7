import re

import pytest

from appliance.supervisor.log import LONGEST_LINE, ProcessLog, parse


@pytest.mark.parametrize(
    "line, level, message",
    [
        ('[2026-11-30 22:36:33] INFO:     127.0.0.1:47658 - "GET /health"', "INFO", '127.0.0.1:47658 - "GET /health"'),
        ("[2026-11-30 22:36:33 TP0] Decode batch, #running-req: 1", "INFO", "TP0 Decode batch, #running-req: 1"),
        ("[2026-11-30 22:36:33 DP0 TP1] ERROR: broken", "ERROR", "DP0 TP1 broken"),
        ("\x1b[2m2026-11-30T22:42:28.1Z\x1b[0m \x1b[33m WARN\x1b[0m smg: late", "WARNING", "smg: late"),
        ("Traceback (most recent call last):", "INFO", "Traceback (most recent call last):"),
        ("  File x, line 1\r", "INFO", "File x, line 1"),
        ("", "INFO", ""),
    ],
)
def test_a_line_loses_its_colours_and_its_own_time(line, level, message):
    assert parse(line) == (level, message)


def test_a_line_of_any_length_is_cut():
    assert len(parse("x" * 10**6)[1]) < LONGEST_LINE + 50


def test_every_line_of_the_file_has_one_style(tmp_path):
    path = tmp_path / "decode.log"
    log = ProcessLog("decode", path)
    log.raw("[2026-11-30 22:36:33] WARNING: x")
    log.write("ERROR", "first\n  second")
    log.close()
    style = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO   |WARNING|ERROR  ) decode     .+$")
    lines = path.read_text().splitlines()
    assert len(lines) == 3
    assert all(style.match(line) for line in lines)


def test_files_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr("appliance.supervisor.log.MOST_BYTES", 10_000)
    log = ProcessLog("decode", tmp_path / "decode.log")
    for number in range(1000):
        log.raw(f"line {number} {'x' * 100}")
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3 * 10_000
    assert "line 999" in (tmp_path / "decode.log").read_text()


def test_a_full_disk_does_not_stop_the_log():
    log = ProcessLog("decode", "/dev/full")
    log.raw("lost")
    assert list(log.tail) == ["lost"]
