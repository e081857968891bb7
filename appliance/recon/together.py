"""The three reports side by side. Where one needs a fact of another it waits for that alone, and does the rest."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait

from appliance.documents import Document, Recon
from appliance.errors import ProbeIncomplete
from appliance.recon.absent import Absent, in_words
from appliance.recon.concurrency import INTERRUPT_S

Reports = Mapping[str, "Future[Document]"]
Call = Callable[[Reports], Document]


def together(calls: Mapping[str, Call]) -> Recon:
    """Make the reports by name ("machine", "engine", "model"), all at once. Each call is given the futures of all.

    A report that could not be made is null, and `problems` says why. Raises InputError as soon as one of them does
    (what was asked for is wrong), and ProbeIncomplete where not one report could be made. Threads are daemons: one that
    hangs in a driver or on the hub holds nothing up at the end.
    """
    reports: dict[str, Future[Document]] = {name: Future() for name in calls}

    def make(name: str, call: Call) -> None:
        try:
            reports[name].set_result(call(reports))
        except BaseException as error:
            reports[name].set_exception(error)

    for name, call in calls.items():
        threading.Thread(target=make, args=(name, call), name=f"recon {name}", daemon=True).start()
    waiting = set(reports.values())
    while waiting:
        # a signal that comes just before the wait begins does not end it: look again soon
        finished, waiting = wait(waiting, timeout=INTERRUPT_S, return_when="FIRST_COMPLETED")
        for report in finished:
            if report.exception() is not None and not isinstance(report.exception(), ProbeIncomplete):
                report.result()
    problems = {name: str(report.exception()) for name, report in reports.items() if report.exception()}
    if len(problems) == len(reports):
        raise ProbeIncomplete("; ".join(f"{name}: {problem}" for name, problem in problems.items()))
    return Recon(problems=problems, **{name: r.result() for name, r in reports.items() if name not in problems})


def awaited(reports: Reports, name: str, limit_s: float) -> Document:
    """The report of that name, for another that needs a fact of it. Raises Absent where it is not made or late."""
    report = reports[name]
    wait([report], timeout=limit_s)
    if not report.done():
        raise Absent(f"the {name} was not back within {limit_s:g} s")
    problem = report.exception()
    if problem is not None:
        raise Absent(f"the {name} is not known: {in_words(problem)}")
    return report.result()
