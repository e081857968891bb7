"""Findings as SARIF 2.1.0, the format that code hosts and editors show (OASIS standard, sarif-v2.1.0)."""

from appliance.documents.findings import Findings, RuleResult
from appliance.preflight.rule import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
KINDS = {"ok": "pass", "not checked": "open", "does not apply": "notApplicable", "skipped": "open"}
"""SARIF 2.1.0, 3.27.9: what a result is that is no failure."""


def sarif(findings: Findings, rules: list[Rule], place: str) -> dict:
    """One run with every rule and its result. `place` is the document or machine that was looked at."""
    index = {rule.id: number for number, rule in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "appliance preflight",
                        "version": findings.appliance_version,
                        "rules": [descriptor(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    entry
                    for result in findings.results
                    for entry in entries(result, index[result.rule], place, findings.machine)
                ],
            }
        ],
    }


def descriptor(rule: Rule) -> dict:
    """A rule as SARIF's reportingDescriptor."""
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.fix}\nReference: {rule.reference}"},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"needs": list(rule.needs)},
    }


def entries(result: RuleResult, index: int, place: str, machine: str | None) -> list[dict]:
    """One SARIF result a finding; one that is no failure for a rule without any."""
    logical = [{"name": machine, "kind": "resource"}] if machine else []
    where = [{"physicalLocation": {"artifactLocation": {"uri": place}}, "logicalLocations": logical}]
    head = {"ruleId": result.rule, "ruleIndex": index}
    if result.findings:
        return [
            head
            | {
                "kind": "fail",
                "level": finding.severity,
                "message": {"text": f"{result.title}: {finding.evidence}. Fix: {finding.fix}"},
                "locations": where,
            }
            for finding in result.findings
        ]
    said = f"{result.status}{f': {result.reason}' if result.reason else ''}"
    entry = head | {"kind": KINDS[result.status], "level": "none", "message": {"text": said}, "locations": where}
    if result.status == "skipped":
        entry["suppressions"] = [{"kind": "external", "justification": result.reason}]
    return [entry]
