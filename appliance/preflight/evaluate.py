"""Apply rules to facts. A rule whose facts are null is "not checked", whatever else holds."""

import re
from collections.abc import Iterable, Mapping

from appliance.documents.findings import SEVERITIES, Finding, RuleResult, RuleStatus
from appliance.errors import CONTROL
from appliance.preflight.facts import DOCUMENTS, Facts, missing, why_absent
from appliance.preflight.rule import DoesNotApply, Found, Rule, Undecided

INDEX = re.compile(r"\[\d+\]")


def evaluate(rules: Iterable[Rule], facts: Facts, skips: Mapping[str, str] | None = None) -> list[RuleResult]:
    """The result of each rule, in their order. `skips` are reasons by rule id: those rules are not looked at."""
    return [
        result(rule, "skipped", reason=skips[rule.id]) if skips and rule.id in skips else apply(rule, facts)
        for rule in rules
    ]


def apply(rule: Rule, facts: Facts) -> RuleResult:
    """One rule: first whether it applies, then whether its facts are there, then what it finds."""
    for condition in rule.only_if:
        lacking = [place for need in condition.needs for place in missing(facts, need)[0]]
        known = all(missing(facts, need)[1] for need in condition.needs)
        if not known:
            return not_checked(rule, facts, lacking)
        if not condition.holds(facts):
            return result(rule, "does not apply", reason=condition.otherwise)
    lacking, known = [], True
    for need in rule.needs:
        places, any_value = missing(facts, need)
        lacking += places
        known = known and any_value
    if not known:
        return not_checked(rule, facts, lacking)
    findings = []
    try:
        for found in rule.check(facts):
            findings.append(finding(rule, found))
    except DoesNotApply as why:
        return result(rule, "does not apply", reason=str(why))
    except Undecided as undecided:
        lacking.append(undecided.place)
    except Exception as error:  # a value in a saved report that no recon writes must not end the other rules
        if not findings:
            return result(rule, "not checked", reason=f"failed on these facts: {type(error).__name__}: {error}"[:300])
    if findings:
        findings.sort(key=lambda found: SEVERITIES.index(found.severity))
        return result(rule, "finding", findings=findings, missing=lacking)
    return not_checked(rule, facts, lacking) if lacking else result(rule, "ok")


def finding(rule: Rule, found: str | Found) -> Finding:
    """A check's evidence with the rule's own severity and fix where it has no other."""
    if isinstance(found, str):
        found = Found(found)
    evidence = CONTROL.sub("?", found.evidence)  # it quotes what somebody's report holds: it stays one line
    return Finding(severity=found.severity or rule.severity, evidence=evidence, fix=found.fix or rule.fix)


def not_checked(rule: Rule, facts: Facts, lacking: list[str]) -> RuleResult:
    """The result of a rule whose facts are not all there, with where they are missing and why."""
    lacking = list(dict.fromkeys(lacking))
    named: dict[str, str | None] = {}
    for place in lacking:
        why = "no such document was given" if place in DOCUMENTS else why_absent(facts, place)
        named.setdefault(INDEX.sub("[]", place), why)
    words = [f"{place} ({why})" if why else place for place, why in named.items()]
    return result(rule, "not checked", reason=f"needs {', '.join(words)}", missing=lacking)


def result(rule: Rule, status: RuleStatus, **fields) -> RuleResult:
    """The result of a rule."""
    return RuleResult(
        rule=rule.id, title=rule.title, severity=rule.severity, status=status, reference=rule.reference, **fields
    )
