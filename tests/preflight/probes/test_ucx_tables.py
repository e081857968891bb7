from appliance.preflight.probes.ucx_tables import carriers

HEAD = "Range | Description | Config"
WRITE = "remote memory write by ucp_put*(multi) from host memory to host"
READ = "remote memory read by ucp_get*(multi) into host memory from host"


def table(process: str, title: str, *rows: str) -> str:
    """A table as UCX 1.20 prints it."""
    lines = ["+---+---+---+", *(f"| {text} |" for text in (process, title, HEAD, *rows))]
    return "\n".join(f"[1796098598.601339] [vm:15695:0]   {line}" for line in lines)


def test_largest_range_of_each_operation_to_the_other_process():
    text = "\n".join(
        [
            table("a self cfg#0", WRITE, "0..inf | zero-copy | xpmem/memory"),
            table("a intra-node cfg#1", WRITE, "0..64 | short | posix/memory", "65..inf | zero-copy | cma/memory"),
            table("a intra-node cfg#1", "active message by ucp_am_send* from host memory", "0..inf | copy-in | tcp/lo"),
            table("a inter-node cfg#2", READ, "0..inf | software emulation | tcp/lo"),
        ]
    )
    assert carriers(text) == {"WRITE": "zero-copy, cma/memory", "READ": "software emulation, tcp/lo"}


def test_text_without_tables_says_nothing():
    assert carriers("UCX WARN something\n| x |\n") == {}
