"""The order of a run: topologies take turns, so that a machine that warms up or drifts treats them alike."""

from dataclasses import dataclass

from appliance.documents import BenchRecord, Workload


@dataclass(frozen=True)
class Turn:
    """One start of a topology, and what is measured before it is stopped."""

    topology: str
    cells: list[tuple[Workload, int]]
    """A workload and the number of its repetition, from 0."""


def turns(record: BenchRecord) -> list[Turn]:
    """What is left to measure, start by start. Every other round goes through the topologies backwards."""
    asked = record.asked
    done = {(cell.topology, cell.workload.key()): len(cell.repetitions) for cell in record.cells}
    found = []
    for number in range(asked.rounds):
        order = asked.topologies if number % 2 == 0 else asked.topologies[::-1]
        for topology in order:
            cells = [
                (workload, repetition)
                for workload in asked.workloads
                for repetition in range(asked.repetitions)
                if repetition % asked.rounds == number and repetition >= done.get((topology, workload.key()), 0)
            ]
            if cells:
                found.append(Turn(topology, cells))
    return found


def seed_of(record: BenchRecord, workload: Workload, repetition: int) -> int:
    """The seed of a repetition's prompts: the same for every topology, another for every other cell."""
    place = [one.key() for one in record.asked.workloads].index(workload.key())
    return record.asked.seed * 1_000_000 + repetition * 10_000 + place
