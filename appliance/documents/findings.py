"""Findings: what the rules of preflight said about a machine, an engine, a model and a plan."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part
from appliance.documents.probes import ProbeRecord

Severity = Literal["error", "warning", "note"]
RuleStatus = Literal["ok", "finding", "not checked", "does not apply", "skipped"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""


class Finding(Part):
    """One thing that a rule found: the facts that show it, and what to do about it."""

    severity: Severity
    evidence: str
    fix: str
    """A command, a file's line or a Nix option, or words where neither helps."""


class RuleResult(Part):
    """What became of one rule."""

    rule: str
    title: str
    severity: Severity
    """The rule's own; a finding may be milder."""
    status: RuleStatus
    findings: list[Finding] = []
    reason: str | None = None
    """Why it was not checked, does not apply or was skipped."""
    missing: list[str] = []
    """The facts that it needs and that are null, by their place in the documents."""
    reference: str


class Findings(Document):
    KIND: ClassVar[str] = "Findings"
    kind: Literal["Findings"] = "Findings"
    date: str
    appliance_version: str
    machine: str | None = None
    """Its name, or the text that its report was read from."""
    plan_identity: str | None = None
    results: list[RuleResult]
    probes: ProbeRecord | None = None
    """What the live probes measured, where they were asked for."""

    def worst(self) -> Severity | None:
        """The severity of the gravest finding; None where there is none."""
        found = {finding.severity for result in self.results for finding in result.findings}
        return next((severity for severity in SEVERITIES if severity in found), None)

    def count(self, status: RuleStatus) -> int:
        """How many rules have that status."""
        return sum(result.status == status for result in self.results)
