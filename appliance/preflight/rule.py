"""What a rule is: an id, the facts it needs, a check that gives evidence, and what to do about a finding."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from appliance.documents.findings import Severity
from appliance.preflight.facts import Facts


@dataclass(frozen=True)
class Found:
    """A finding's evidence; with a severity milder than the rule's, or a fix of its own, where it has one."""

    evidence: str
    severity: Severity | None = None
    fix: str | None = None


class Undecided(Exception):
    """Raised by a check whose facts are there, and yet do not tell. `place` is the fact that would."""

    def __init__(self, place: str):
        super().__init__(place)
        self.place = place


class DoesNotApply(Exception):
    """Raised by a check that has nothing to look at here, with why."""


Check = Callable[[Facts], Iterable[str | Found]]


@dataclass(frozen=True)
class Condition:
    """When a rule applies at all: on what facts that depends, and what is said where it does not."""

    needs: tuple[str, ...]
    holds: Callable[[Facts], bool]
    otherwise: str


@dataclass(frozen=True)
class Rule:
    """One rule of the catalogue. `check` gives a line of evidence, or a Found, for each thing it finds.

    It is called when at least one place of each need has a value, and must pass over places that are null. A need such
    as "machine.gpus[].bar1_mib" that is null for some GPUs makes a rule without a finding "not checked", not "ok".
    """

    id: str
    title: str
    severity: Severity
    needs: tuple[str, ...]
    fix: str
    reference: str
    check: Check
    only_if: tuple[Condition, ...] = ()

    @property
    def why(self) -> str:
        """What goes wrong, from the check's docstring."""
        return inspect.getdoc(self.check) or ""


def rule(
    id: str,
    title: str,
    severity: Severity,
    *,
    needs: Iterable[str],
    fix: str,
    reference: str,
    only_if: Iterable[Condition] = (),
) -> Callable[[Check], Rule]:
    """Make a Rule of the check function below; its docstring says what goes wrong in practice."""

    def made(check: Check) -> Rule:
        return Rule(id, title, severity, tuple(needs), fix, reference, check, tuple(only_if))

    return made
