"""Verification: what was checked of a plan, and whether it holds."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part


class Check(Part):
    """One check with the evidence for its outcome, in words."""

    name: str
    passed: bool
    evidence: str


class Verification(Document):
    """The checks of one `verify`."""

    KIND: ClassVar[str] = "Verification"
    kind: Literal["Verification"] = "Verification"
    date: str
    """When, ISO 8601, UTC."""
    plan_identity: str | None = None
    """sha256 of the plan that was checked; null where the check was of something else."""
    checks: list[Check]

    def holds(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)
