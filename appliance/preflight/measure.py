"""Run the live probes one after the other, keep what they measured, and find what to compare it with."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from appliance.documents.probes import ProbeRecord
from appliance.errors import InputError
from appliance.preflight import probes
from appliance.preflight.facts import Facts
from appliance.preflight.probes import watchdog
from appliance.preflight.probes.probe import LiveProbe, Subject

LAST = "last.json"


@cache
def known_probes() -> dict[str, LiveProbe]:
    """Every probe by name: whatever a module of `probes` holds as PROBE."""
    modules = [importlib.import_module(f"{probes.__name__}.{m.name}") for m in pkgutil.iter_modules(probes.__path__)]
    found = [module.PROBE for module in modules if hasattr(module, "PROBE")]
    return {probe.name: probe for probe in sorted(found, key=lambda probe: (probe.on_gpu, probe.limit_s))}


def chosen(only: Iterable[str]) -> list[LiveProbe]:
    """The probes of some names, or all. Raises InputError for a name that no probe has."""
    known = known_probes()
    for name in only:
        if name not in known:
            raise InputError(f"no probe is called {name!r}; expected one of {', '.join(known)}")
    return [probe for name, probe in known.items() if name in only or not only]


def measured(
    facts: Facts,
    only: Iterable[str],
    state_dir: Path,
    against: Path | None,
    say: Callable[[str], None],
    patience: float = 1.0,
) -> Facts:
    """The facts with what the probes measured, and with the run to compare it with: `against`, or the last one here.

    Never two probes at once: they would measure each other. The record is saved below `state_dir`.
    """
    earlier = earlier_record(state_dir, against, say)
    if facts.machine is None:
        raise InputError("this machine could not be looked at; expected a report of it before it is probed")
    path = facts.plan.model.path if facts.plan else (facts.model.path if facts.model else None)
    here = path if path and Path(path).is_dir() else None
    subject = Subject(facts.machine, facts.plan, here, patience)
    results = []
    for probe in chosen(list(only)):
        result = watchdog.run(probe, subject)
        results.append(result)
        if result.status != "does not apply":
            say(f"{probe.title}: {result.status}{f' ({result.reason})' if result.reason else ''}, {result.seconds:g} s")
    record = ProbeRecord(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        hostname=facts.machine.hostname,
        plan_identity=facts.plan.identity() if facts.plan else None,
        results=results,
    )
    keep(record, state_dir)
    return replace(facts, probes=record, earlier=earlier)


def folder(state_dir: Path) -> Path:
    """Where the records are kept."""
    return state_dir / "probes"


def keep(record: ProbeRecord, state_dir: Path) -> None:
    """Write a record under its date, and as the last one."""
    name = record.date.replace(":", "").replace("+0000", "Z")
    record.write(folder(state_dir) / f"{name}.json")
    record.write(folder(state_dir) / LAST)


def earlier_record(state_dir: Path, against: Path | None, say: Callable[[str], None]) -> ProbeRecord | None:
    """The record to compare with; None where there is none yet, or the last one cannot be read.

    Raises InputError where the one that was asked for cannot be read.
    """
    if against is not None:
        return ProbeRecord.read(against)
    last = folder(state_dir) / LAST
    try:
        return ProbeRecord.read(last) if last.exists() else None
    except InputError as error:
        say(f"nothing to compare with: {error}")
        return None
