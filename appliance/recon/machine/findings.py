"""What one probe found: facts for the report, where each came from, and what is odd."""

from dataclasses import dataclass, field


@dataclass
class Findings:
    """Facts by field of MachineReport, sources by fact ("absent: why" for those that are not there), notes."""

    facts: dict[str, object] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, value: object, source: str, absent: str) -> None:
        """Take a fact with its source, or why it is absent where `value` is None."""
        if value is None:
            self.sources[name] = f"absent: {absent}"
        else:
            self.facts[name] = value
            self.sources[name] = source
