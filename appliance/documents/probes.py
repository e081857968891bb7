"""ProbeRecord: what live probes measured on a machine, in numbers that a later run can be compared with."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part

Unit = Literal["MB/s", "GB/s", "us", "s", "count", "none"]


class Measure(Part):
    """One number that a probe measured. `name` is the same in every run, so that runs can be compared."""

    name: str
    """What was measured between what: "GPU0 -> GPU4 write"."""
    value: float
    unit: Unit
    better: Literal["higher", "lower", "neither"] = "higher"


class ProbeResult(Part):
    """One probe: its numbers, or why there are none."""

    probe: str
    status: Literal["measured", "does not apply", "failed", "hung"]
    reason: str | None = None
    """Why it does not apply or failed; for one that hung, what was still running when it was killed."""
    device: str
    """What it ran on: "cpu", a GPU's name, or "simulated" (tests)."""
    seconds: float
    limit_s: float
    measures: list[Measure] = []
    facts: dict[str, str] = {}
    """What is no number: the backend really used, the library that resolved."""


class ProbeRecord(Document):
    KIND: ClassVar[str] = "ProbeRecord"
    kind: Literal["ProbeRecord"] = "ProbeRecord"
    date: str
    hostname: str | None = None
    plan_identity: str | None = None
    results: list[ProbeResult]

    def result(self, probe: str) -> ProbeResult | None:
        """The result of the probe called `probe`, or None."""
        return next((result for result in self.results if result.probe == probe), None)

    def incomplete(self) -> list[ProbeResult]:
        """The probes that failed or hung."""
        return [result for result in self.results if result.status in ("failed", "hung")]
