"""`appliance preflight`: which documents are looked at, and what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click

from appliance.cli.output import say
from appliance.documents import EngineReport, Findings, MachineReport, ModelReport, Plan, Recon
from appliance.preflight.catalogue import catalogue, find
from appliance.preflight.evaluate import evaluate
from appliance.preflight.facts import Facts
from appliance.preflight.rule import Rule


@dataclass(frozen=True)
class Wanted:
    """What the options ask for."""

    from_files: tuple[str, ...]
    plan_file: Path | None
    model: str | None
    host: str | None
    model_roots: tuple[str, ...]
    only: tuple[str, ...]
    skip: tuple[str, ...]
    probe: bool
    only_probe: tuple[str, ...]
    patience: float
    against: Path | None
    state_dir: Path


class Checked(NamedTuple):
    """The findings, the rules that they are of, and where the facts came from."""

    findings: Findings
    rules: list[Rule]
    place: str


def run(wanted: Wanted) -> Checked:
    """Gather what the chosen rules need, measure where asked to, and check. Raises ApplianceError in one line."""
    rules = [find(id) for id in dict.fromkeys(wanted.only)] or list(catalogue().values())
    skips = read_skips(wanted.skip)
    refuse_contradictions(wanted)
    plan = Plan.read(wanted.plan_file) if wanted.plan_file else None
    given = [read_document(name) for name in wanted.from_files]
    facts = gather(wanted, plan, given, roots_of(rule for rule in rules if rule.id not in skips))
    if wanted.probe or wanted.only_probe:
        from appliance.preflight.measure import measured

        facts = measured(facts, wanted.only_probe, wanted.state_dir, wanted.against, say, wanted.patience)
    findings = Findings(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        appliance_version=version("appliance"),
        machine=facts.machine.hostname if facts.machine else None,
        plan_identity=plan.identity() if plan else None,
        results=evaluate(rules, facts, skips),
        probes=facts.probes,
    )
    place = wanted.from_files[0] if wanted.from_files else wanted.host or "this-machine"
    place = "stdin" if place == "-" else place
    return Checked(findings, rules, place)


def refuse_contradictions(wanted: Wanted) -> None:
    """Raise UsageError where options exclude each other."""
    if wanted.from_files and wanted.host:
        raise click.UsageError("--from and --host exclude each other: expected one machine")
    if (wanted.probe or wanted.only_probe) and (wanted.from_files or wanted.host):
        raise click.UsageError("--probe measures this machine: expected no --from and no --host")
    if wanted.model and wanted.host:
        raise click.UsageError("--model is looked at here, and --host is elsewhere: save its report and use --from")


def read_skips(texts: Iterable[str]) -> dict[str, str]:
    """Reasons by rule from RULE=REASON. Raises UsageError or InputError."""
    skips = {}
    for text in texts:
        id, _, reason = text.partition("=")
        if not reason.strip():
            raise click.UsageError(f"--skip {text!r}: expected RULE=REASON, with a reason that is recorded")
        skips[find(id).id] = reason.strip()
    return skips


def read_document(name: str) -> Recon | MachineReport | EngineReport | ModelReport:
    """A saved report, or one made from pasted text. Raises InputError."""
    from appliance.recon.machine.pasted import read_file, report_from

    data = sys.stdin.buffer.read() if name == "-" else read_file(Path(name))
    where = "stdin" if name == "-" else name
    kind = kind_of(data)
    for document in (Recon, EngineReport, ModelReport):
        if kind == document.KIND:
            return document.parse(data.decode(errors="replace"), where)
    return report_from(data, where)


def kind_of(data: bytes) -> str | None:
    """What kind of document JSON text says it is; None for any other text."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found.get("kind") if isinstance(found, dict) else None


def roots_of(rules: Iterable[Rule]) -> set[str]:
    """The documents that rules look at: "machine", "engine", ..."""
    needs = [need for rule in rules for need in (*rule.needs, *(n for c in rule.only_if for n in c.needs))]
    return {path.partition(".")[0] for need in needs for path in need.split("|")}


def gather(wanted: Wanted, plan: Plan | None, given: list, roots: set[str]) -> Facts:
    """The facts: from saved reports, from far away, or from here, side by side and only those that rules need."""
    parts: dict[str, object] = {"plan": plan}
    for document in given:
        if isinstance(document, Recon):
            reports = {"machine": document.machine, "engine": document.engine, "model": document.model}
            parts |= {name: report for name, report in reports.items() if report}
        else:
            kinds = {MachineReport: "machine", EngineReport: "engine", ModelReport: "model"}
            parts[kinds[type(document)]] = document
    if given:
        return Facts(**parts)
    from appliance.cli import recon_machine

    machine = recon_machine.Wanted(None, wanted.host, wanted.model_roots)
    if wanted.host:
        return Facts(machine=recon_machine.read(machine), plan=plan)
    if wanted.probe or wanted.only_probe:
        roots = roots | {"machine", "model"}
    model = wanted.model or (plan.model.path if plan and Path(plan.model.path).is_dir() else None)
    return Facts(plan=plan, **look(machine, model, roots))


def look(machine, model: str | None, roots: set[str]) -> dict[str, object]:
    """Reports of this machine by name, made side by side: the engine's only where a rule looks at it."""
    from appliance.cli import recon_all, recon_machine
    from appliance.recon.model.inspect import Wanted as ModelWanted
    from appliance.recon.model.inspect import inspect

    if "engine" not in roots:
        found = {"machine": recon_machine.read(machine)} if "machine" in roots else {}
        return found | ({"model": inspect(model, ModelWanted())} if model and "model" in roots else {})
    found = recon_all.read(machine, model, None, None)
    return {"machine": found.machine, "engine": found.engine, "model": found.model}


def exit_code(findings: Findings) -> int:
    """1 for a finding of severity error, 3 for a probe that could not complete, else 0."""
    if findings.worst() == "error":
        return 1
    return 3 if findings.probes and findings.probes.incomplete() else 0
