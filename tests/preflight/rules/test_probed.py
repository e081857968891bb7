"""The rules over what probes measured: one record that makes each fire, one that does not."""

import pytest

from appliance.documents.probes import Measure, ProbeRecord, ProbeResult
from appliance.preflight.catalogue import catalogue
from appliance.preflight.evaluate import apply
from tests.helpers.healthy import facts, plan

CARRIED = {"WRITE is carried by": "zero-copy, cuda_ipc/cuda", "READ is carried by": "zero-copy, cuda_ipc/cuda"}
GOOD = {
    "ports": ({"ports bound": (8, "count")}, {}),
    "disk": ({"sequential read, 8 streams": (6000, "MB/s"), "whole checkpoint at this rate": (26, "s")}, {}),
    "memory": (
        {
            "CPUs of node 0, memory of node 0": (300, "GB/s"),
            "CPUs of node 0, memory of node 1": (120, "GB/s"),
        },
        {},
    ),
    "libcuda": ({"devices": (8, "count")}, {"library": "/usr/lib/libcuda.so.595.58.03", "cuInit": "CUDA_SUCCESS"}),
    "nixl-dram": ({"DRAM WRITE": (9, "GB/s")}, {"WRITE is carried by": "zero-copy, cma/memory"}),
    "nixl-vram": ({"VRAM WRITE": (49, "GB/s"), "VRAM READ": (40, "GB/s")}, CARRIED),
    "peers": (
        {
            "GPU0 -> GPU4 write": (37, "GB/s"),
            "GPU0 -> GPU4 write, 4 KiB": (2, "us"),
            "GPU0 -> GPU4 read": (30, "GB/s"),
            "GPU0 -> GPU4 write, all pairs at once": (35, "GB/s"),
        },
        {},
    ),
    "all-reduce": (
        {
            "prefill all-reduce of 4, 16 KiB": (25, "us"),
            "prefill all-reduce of 4, 64 MiB, bus bandwidth": (40, "GB/s"),
        },
        {},
    ),
    "sandbox": ({"shared memory": (1, "count"), "process_vm_readv": (1, "count"), "CUDA IPC": (1, "count")}, {}),
}
"""A machine as it should be. Rates of PCIe 5 are those of public reports (local-inference-lab/rtx6kpro)."""


def record(probe: str | None = None, values: dict | None = None, told: dict | None = None, **changes) -> ProbeRecord:
    """What all probes measured well, with some values and facts of one probe changed."""
    results = []
    for name, (numbers, words) in GOOD.items():
        merged = {key: (value, unit) for key, (value, unit) in numbers.items()}
        if name == probe:
            merged |= {key: (value, merged[key][1]) for key, value in (values or {}).items()}
            words = words | (told or {})
        measures = [
            Measure(name=key, value=float(value), unit=unit, better="lower" if unit in ("us", "s") else "higher")
            for key, (value, unit) in merged.items()
        ]
        fields = {"status": "measured", "device": "a GPU", "seconds": 1.0, "limit_s": 10.0}
        fields |= changes if name == probe else {}
        results.append(ProbeResult(probe=name, measures=measures, facts=words, **fields))
    return ProbeRecord(date="2026-12-01", results=results)


EARLIER = record()
CASES = {
    "probe-hung": (record("peers", status="hung", reason="killed after 15 s while GPU0 -> GPU1 read"), "GPU0 -> GPU1"),
    "probe-port-refused": (
        record("ports", told={"refused 30000 (router.port)": "is in use by python"}),
        "30000 (router",
    ),
    "probe-write-collapse": (
        record("peers", {"GPU0 -> GPU4 write, all pairs at once": 2.7}),
        "GPU0 -> GPU4 write: 37 GB/s alone, 2.7 all at once",
    ),
    "probe-peer-slow": (record("peers", {"GPU0 -> GPU4 write, 4 KiB": 14.2}), "14.2 us"),
    "probe-small-all-reduce-slow": (record("all-reduce", {"prefill all-reduce of 4, 16 KiB": 190}), "190 us"),
    "probe-all-reduce-narrow": (
        record("all-reduce", {"prefill all-reduce of 4, 64 MiB, bus bandwidth": 22}),
        "22 GB/s",
    ),
    "probe-kv-transfer-slow": (
        record("nixl-vram", {"VRAM WRITE": 0.5}, {"WRITE is carried by": "multi-frag copy-in, tcp/lo"}),
        "WRITE: 0.5 GB/s by multi-frag copy-in, tcp/lo",
    ),
    "probe-nixl-by-network": (record("nixl-dram", told={"WRITE is carried by": "copy-in, tcp/lo"}), "tcp/lo"),
    "probe-node-memory": (record("memory", {"CPUs of node 0, memory of node 1": 400}), "300 GB/s near, 400 far"),
    "probe-disk-slow": (record("disk", {"whole checkpoint at this rate": 900}), "900 s to read it once, 600 s"),
    "probe-libcuda": (record("libcuda", told={"cuInit": "CUDA_ERROR_STUB_LIBRARY"}), "CUDA_ERROR_STUB_LIBRARY"),
    "probe-units-apart": (record("sandbox", {"CUDA IPC": 0}, {"CUDA IPC": "CUDA_ERROR_INVALID_VALUE"}), "CUDA IPC"),
    "probe-slower-than-before": (record("peers", {"GPU0 -> GPU4 read": 14}), "30 GB/s on 2026-12-01, now 14"),
}
PROBED = {id: rule for id, rule in catalogue().items() if any(need.startswith("probes") for need in rule.needs)}


def test_every_rule_has_a_case():
    assert CASES.keys() == PROBED.keys()


@pytest.mark.parametrize("id", CASES)
def test_fires(id):
    probes, words = CASES[id]
    result = apply(PROBED[id], facts(probes=probes, earlier=EARLIER))
    assert result.status == "finding", result
    assert any(words in finding.evidence for finding in result.findings), result.findings


@pytest.mark.parametrize("id", PROBED)
def test_is_ok_on_good_numbers(id):
    assert apply(PROBED[id], facts(probes=record(), earlier=EARLIER)).status == "ok"


@pytest.mark.parametrize("id", PROBED)
def test_without_probes_nothing_is_ok(id):
    assert apply(PROBED[id], facts()).status == "not checked"


@pytest.mark.parametrize("id", PROBED.keys() - {"probe-hung", "probe-slower-than-before"})
def test_a_probe_that_did_not_measure_leaves_its_rules_unchecked(id):
    empty = ProbeRecord(date="2026-12-01", results=[])
    assert apply(PROBED[id], facts(probes=empty, plan=plan())).status == "not checked"


@pytest.mark.parametrize("id", PROBED.keys() - {"probe-hung", "probe-slower-than-before"})
def test_a_probe_that_does_not_apply_is_no_gap(id):
    results = [
        result.model_copy(update={"status": "does not apply", "reason": "no GPU"}) for result in record().results
    ]
    probes = ProbeRecord(date="2026-12-01", results=results)
    result = apply(PROBED[id], facts(probes=probes))
    assert (result.status, result.reason) == ("does not apply", "no GPU")


def test_a_link_that_was_measured_on_another_device_is_not_compared():
    slower, other = record("peers", {"GPU0 -> GPU4 read": 1}), record("peers", device="another GPU")
    assert apply(PROBED["probe-slower-than-before"], facts(probes=slower, earlier=other)).status == "ok"
