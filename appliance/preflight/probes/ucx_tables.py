"""The tables that UCX prints with UCX_PROTO_INFO=y: which transport carries remote writes and reads of what size."""

import re

OPERATIONS = {"write": "WRITE", "read": "READ"}
BETWEEN = re.compile(r"\b(?:intra|inter)-node cfg#")
TITLE = re.compile(r"\|\s*remote memory (write|read) by ucp_(?:put|get)")
ROW = re.compile(r"\|\s*(?:\d+\.\.inf|\d+\.\.\d+|\d+)\s*\|\s*(.*?)\s*\|\s*(.*?)\s*\|")
UNBOUNDED = re.compile(r"\|\s*\d+\.\.inf\s*\|")


def carriers(text: str) -> dict[str, str]:
    """For WRITE and READ to another process, how UCX carries the largest transfers: "zero-copy, cma/memory".

    Tables of a process with itself, and of active messages, are passed over. Of several tables for one operation the
    last holds: UCX chooses again once it knows the other side's memory.
    """
    found: dict[str, str] = {}
    elsewhere, operation = False, None
    for line in text.splitlines():
        if "cfg#" in line:
            elsewhere, operation = bool(BETWEEN.search(line)), None
        elif title := TITLE.search(line):
            operation = OPERATIONS[title[1]] if elsewhere else None
        elif "|" in line and "ucp_" in line:
            operation = None
        elif operation and UNBOUNDED.search(line) and (row := ROW.search(line)):
            found[operation] = f"{row[1]}, {row[2]}"
    return found
