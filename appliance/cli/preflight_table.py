"""What `preflight` shows: the list of rules, one rule, and findings as lines, JSON or SARIF."""

import json
from collections import Counter

import click

from appliance.documents.findings import SEVERITIES, Findings, RuleResult
from appliance.preflight.catalogue import catalogue, find
from appliance.preflight.facts import DOCUMENTS
from appliance.preflight.rule import Rule

HOW_TO_GIVE = {
    "machine": "the machine's report",
    "engine": "the engine's report",
    "model": "--model REF, or --plan with a model that is here",
    "plan": "--plan PLAN",
    "probes": "--probe",
    "earlier": "an earlier --probe",
}


def show_list(form: str) -> None:
    """Every rule: its id, severity and title; as JSON what it needs as well."""
    if form == "json":
        click.echo(json.dumps([as_data(rule) for rule in catalogue().values()], indent=2))
        return
    width = max(map(len, catalogue()))
    for rule in catalogue().values():
        click.echo(f"{rule.id:{width}}  {rule.severity:7}  {rule.title}")


def show_rule(id: str, form: str) -> None:
    """All that is to say about one rule. Raises InputError for an id that no rule has."""
    rule = find(id)
    if form == "json":
        click.echo(json.dumps(as_data(rule), indent=2))
        return
    lines = {
        "why": " ".join(rule.why.split()),
        "needs": ", ".join(dict.fromkeys([*(n for c in rule.only_if for n in c.needs), *rule.needs])),
        "fix": rule.fix,
        "reference": rule.reference,
    }
    click.echo(f"{rule.id} ({rule.severity}): {rule.title}")
    for name, text in lines.items():
        click.echo(f"  {name + ':':11}{text}")


def as_data(rule: Rule) -> dict:
    """A rule as JSON data."""
    fields = ("id", "title", "severity", "why", "fix", "reference")
    return {name: getattr(rule, name) for name in fields} | {"needs": list(rule.needs)}


def show(findings: Findings, rules: list[Rule], place: str, form: str) -> None:
    """Print findings as lines for people, as the document, or as SARIF."""
    if form == "json":
        click.echo(findings.to_json(), nl=False)
    elif form == "sarif":
        from appliance.preflight.sarif import sarif

        click.echo(json.dumps(sarif(findings, rules, place), indent=2))
    else:
        click.echo("\n".join(lines_of(findings)))


def lines_of(findings: Findings) -> list[str]:
    """Findings with the gravest first, then what was not checked and why, then the count."""
    lines: list[str] = []
    if findings.probes:
        lines += probe_lines(findings)
    for severity in SEVERITIES:
        for result in findings.results:
            these = [finding for finding in result.findings if finding.severity == severity]
            if these:
                lines += [f"{severity:8}{result.title} ({result.rule})"]
                lines += [f"          {finding.evidence}" for finding in these]
                lines += [f"          fix: {fix}" for fix in dict.fromkeys(finding.fix for finding in these)]
    lines += skipped_lines(findings.results) + not_checked_lines(findings.results)
    return [*lines, summary(findings)]


def probe_lines(findings: Findings) -> list[str]:
    """What each probe measured, or why it did not."""
    lines = []
    for result in findings.probes.results:
        if result.status == "does not apply":
            continue
        seconds = f"{result.seconds:.1f} of {result.limit_s:.0f} s"
        lines.append(f"probe   {result.probe}: {result.status} on {result.device} ({seconds})")
        lines += [f"          {result.reason}"] if result.reason else []
        lines += [f"          {m.name}: {m.value:g}{f' {m.unit}' if m.unit != 'none' else ''}" for m in result.measures]
        lines += [f"          {name}: {value}" for name, value in result.facts.items()]
    return lines


def skipped_lines(results: list[RuleResult]) -> list[str]:
    """The rules that were left out on request."""
    return [f"skipped {result.rule}: {result.reason}" for result in results if result.status == "skipped"]


def not_checked_lines(results: list[RuleResult]) -> list[str]:
    """One line a document that nobody gave, and one a rule whose facts are null within a document."""
    unchecked = [result for result in results if result.status == "not checked"]
    absent = Counter(place for result in unchecked for place in result.missing if place in DOCUMENTS)
    lines = [f"not checked: {count} rules need {HOW_TO_GIVE[name]}" for name, count in sorted(absent.items())]
    within: dict[str, list[str]] = {}
    for result in unchecked:
        if not set(result.missing) & set(DOCUMENTS):
            within.setdefault(result.reason or "", []).append(result.rule)
    return lines + [f"not checked: {', '.join(ids)}: {reason}" for reason, ids in within.items()]


def summary(findings: Findings) -> str:
    """The count of everything in one line."""
    graves = Counter(finding.severity for result in findings.results for finding in result.findings)
    found = ", ".join(f"{graves[severity]} {severity}s" for severity in SEVERITIES)
    others = ("ok", "does not apply", "not checked", "skipped")
    rest = ", ".join(f"{findings.count(status)} {status}" for status in others)
    return f"{len(findings.results)} rules: {found}; {rest}"
