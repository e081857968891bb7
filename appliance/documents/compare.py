"""Comparison: two BenchRecords side by side."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part
from appliance.documents.bench import Workload
from appliance.documents.plan import Topology


class ComparedFigure(Part):
    """One figure of one cell in both records: means over the repetitions."""

    topology: Topology
    workload: Workload
    figure: str
    unit: str
    before: float
    after: float
    change: float | None
    """(after - before) / before; null where it is without bound."""
    noise: float | None = None
    """Half-width of the change's 95 % confidence interval, as a share of `before`; null: once measured, or of 0."""
    chance: float | None
    """How likely so large a difference is without any cause, adjusted for their number; null: measured once."""
    verdict: Literal["same", "better", "worse", "not comparable"]
    """same: no difference beyond the noise. not comparable: one side was measured once."""
    regression: bool
    """worse, beyond the noise, by more than the threshold."""


class Comparison(Document):
    KIND: ClassVar[str] = "Comparison"
    kind: Literal["Comparison"] = "Comparison"
    simulated: bool = False
    """Whether both records come from a latency profile and not from an engine."""
    base: str
    other: str
    unlike: list[str]
    """What differs besides the figures: empty for two runs of one configuration."""
    threshold: float
    test: str
    figures: list[ComparedFigure]
    only_in_base: list[str] = []
    only_in_other: list[str] = []

    def regressions(self) -> list[ComparedFigure]:
        """What got worse by more than the threshold and beyond the noise."""
        return [figure for figure in self.figures if figure.regression]
