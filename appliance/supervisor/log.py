"""One log line style for everything: time in UTC, level, who, message; files that stay small."""

import logging
import re
import time
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path

MOST_BYTES = 2 * 1024 * 1024
BACKUPS = 1
LONGEST_LINE = 4000
TAIL_LINES = 12

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
TIMESTAMP = re.compile(r"^\[?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?Z?(?P<rank>(?: [A-Z]+\d+)*)\]?\s*")
LEVEL = re.compile(r"^(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b:?\s*")
LEVELS = {"WARN": "WARNING"}


class LineStyle(logging.Formatter):
    """`2026-11-30T22:41:04.123Z INFO    decode     message`."""

    converter = time.gmtime

    def __init__(self):
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)-10s %(message)s", "%Y-%m-%dT%H:%M:%S")


class QuietFile(RotatingFileHandler):
    """A log file that gives up silently when the disk is full: serving goes on."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class ProcessLog:
    """The log of one process: takes its raw output, writes it in the one style, keeps the last lines."""

    def __init__(self, name: str, path: Path):
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._handler = QuietFile(path, maxBytes=MOST_BYTES, backupCount=BACKUPS, encoding="utf-8")
        self._handler.setFormatter(LineStyle())
        self._name = name

    def raw(self, line: str) -> None:
        """Log one line as the process wrote it."""
        level, message = parse(line)
        if message:
            self.write(level, message)

    def write(self, level: str, message: str) -> None:
        """Log one message; each of its lines becomes a line of the log."""
        number = logging.getLevelNamesMapping()[level]
        for line in message.splitlines():
            self.tail.append(line)
            self._handler.emit(logging.LogRecord(self._name, number, "", 0, line, None, None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


def parse(line: str) -> tuple[str, str]:
    """Level and message of a line of SGLang, uvicorn or smg, without colours and their own time stamp."""
    text = ANSI.sub("", line).replace("\x00", "").rstrip()
    stamp = TIMESTAMP.match(text)
    rank = stamp["rank"].strip() if stamp else ""
    text = text[stamp.end() :] if stamp else text
    found = LEVEL.match(text)
    level = found["level"] if found else "INFO"
    text = text[found.end() :] if found else text
    if len(text) > LONGEST_LINE:
        text = f"{text[:LONGEST_LINE]}… ({len(text)} characters)"
    return LEVELS.get(level, level), f"{rank} {text}".strip()
