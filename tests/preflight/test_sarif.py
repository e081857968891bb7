"""Findings as SARIF 2.1.0: the parts of the standard that a reader relies on."""

import jsonschema

from appliance.documents import Findings
from appliance.preflight.catalogue import catalogue
from appliance.preflight.evaluate import evaluate
from appliance.preflight.sarif import sarif
from tests.helpers.healthy import facts, with_gpu

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
DESCRIPTIONS = dict.fromkeys(["shortDescription", "fullDescription", "help"], TEXT)
STANDARD = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": dict.fromkeys(
                                                ["shortDescription", "fullDescription", "help"], TEXT
                                            ),
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "message": TEXT,
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""sarif-v2.1.0, chapters 3.13, 3.14, 3.19, 3.27 and 3.49: required properties and enumerations."""


def document(of, skips=None) -> dict:
    rules = list(catalogue().values())
    results = evaluate(rules, of, skips)
    findings = Findings(date="2026-12-01", appliance_version="0.1.0", machine="reference", results=results)
    made = sarif(findings, rules, "recon.json")
    jsonschema.validate(made, STANDARD)
    return made["runs"][0]


def entry(run: dict, rule: str) -> dict:
    return next(result for result in run["results"] if result["ruleId"] == rule)


def test_each_result_points_at_its_rule():
    run = document(facts())
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_finding_fails_with_its_own_severity():
    found = entry(document(with_gpu(2, bar1_mib=256)), "bar1-small")
    assert (found["kind"], found["level"]) == ("fail", "error")
    assert "GPU 2: BAR1 256 MiB" in found["message"]["text"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "recon.json"


def test_what_is_no_failure_has_no_level():
    run = document(facts(engine=None), {"cpu-governor": "a test machine"})
    kinds = {rule: entry(run, rule)["kind"] for rule in ("bar1-small", "unknown-flags", "speculation-deep")}
    assert kinds == {"bar1-small": "pass", "unknown-flags": "open", "speculation-deep": "notApplicable"}
    assert all(result["level"] == "none" for result in run["results"] if result["kind"] != "fail")
    assert entry(run, "cpu-governor")["suppressions"] == [{"kind": "external", "justification": "a test machine"}]
