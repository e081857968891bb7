"""How rules read what the probes measured."""

from appliance.documents.probes import Measure, ProbeResult
from appliance.preflight.facts import Facts
from appliance.preflight.rule import DoesNotApply, Undecided


def result(facts: Facts, probe: str) -> ProbeResult:
    """A probe's result. Raises Undecided where it did not measure, DoesNotApply where it had nothing to measure."""
    found = facts.probes.result(probe)
    if found is not None and found.status == "does not apply":
        raise DoesNotApply(found.reason)
    if found is None or not (found.measures or found.facts):
        raise Undecided(f"probes.results[{probe}]")
    return found


def measures(facts: Facts, probe: str, ending: str) -> dict[str, Measure]:
    """A probe's measures whose names end so, by name."""
    return {measure.name: measure for measure in result(facts, probe).measures if measure.name.endswith(ending)}
