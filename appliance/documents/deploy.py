"""Deploying: what a deployer asks a host for, what the host writes down while it switches, and what came of it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from appliance.documents.base import Document, Part
from appliance.documents.golden import GoldenRecord
from appliance.documents.verification import Check

StorePath = Annotated[str, Field(pattern=r"^/nix/store/[0-9a-df-np-sv-z]{32}-[0-9A-Za-z+._?=-]+$")]
DeployId = Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$")]
UnitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9:_.\\@-]+\.(service|target|socket|timer)$")]

DeployStep = Literal[
    "begun",
    "stopping",
    "activating",
    "gating",
    "waiting",
    "committing",
    "committed",
    "rolling back",
    "rolled back",
    "rollback failed",
]
FINAL: tuple[DeployStep, ...] = ("committed", "rolled back", "rollback failed")


class StoppedService(Part):
    """A service that gives way to the appliance. `url`: an address that answers 200 when the service is well."""

    unit: UnitName
    url: str | None = None


class GateLimits(Part):
    """What the new generation has to hold before it is kept."""

    time_s: Annotated[float, Field(gt=0)] = 3900
    """Time for everything: start of the engines, checks and load."""
    most_restarts: Annotated[int, Field(ge=0)] = 2
    """A unit that was started again more often than that is taken for one that never gets ready."""
    golden_tolerance: Annotated[int, Field(ge=0)] = 0
    """Golden prompts whose answer may be another one than recorded."""
    load_requests: Annotated[int, Field(ge=1)] = 16
    load_at_once: Annotated[int, Field(ge=1)] = 4
    load_tokens: Annotated[int, Field(ge=1)] = 32
    least_speed_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Of the output tokens/s that the last good record of the same model and load has."""

    def load_key(self) -> tuple[int, int, int]:
        """What makes two speeds comparable."""
        return self.load_requests, self.load_at_once, self.load_tokens


class DeployRequest(Document):
    """What a deployer asks a host for."""

    KIND: ClassVar[str] = "DeployRequest"
    kind: Literal["DeployRequest"] = "DeployRequest"
    id: DeployId
    generation: StorePath
    requested_by: str
    plan_identity: str
    """sha256 of the plan that the deployer looked at; the generation must hold the same."""
    stop: list[StoppedService] = []
    gate: GateLimits = GateLimits()
    golden: GoldenRecord | None = None
    """Answers to compare with; null: those of the last good deploy of this model on the host, if there is one."""
    confirm_s: Annotated[float, Field(gt=0)] = 60
    """Time that the deployer has to confirm over a new connection, once the gate is passed."""
    reason: Literal["deploy", "rollback"] = "deploy"


class RememberedService(Part):
    """A service as it was before it was stopped."""

    unit: UnitName
    url: str | None = None
    was_active: bool
    was_enabled: bool


class DeployEvent(Part):
    time: str
    """ISO 8601, UTC."""
    step: DeployStep
    text: str


class DeployFailure(Part):
    """Why a deploy was given up, with the evidence: what was found, and the last log lines of the units concerned."""

    check: str
    evidence: str
    logs: dict[str, list[str]] = {}


class GateResult(Part):
    """What was measured by the gate."""

    golden: GoldenRecord | None = None
    output_tokens_per_s: float | None = None
    """Of the short load, over all its requests."""


class DeployJournal(Document):
    """What a host writes down while it switches: the truth about how far it came."""

    KIND: ClassVar[str] = "DeployJournal"
    kind: Literal["DeployJournal"] = "DeployJournal"
    request: DeployRequest
    host_kind: Literal["nixos", "systemd"]
    started: str
    step: DeployStep = "begun"
    former: StorePath | None = None
    """The generation that ran before; null: there was none."""
    former_boot: StorePath | None = None
    """The generation that the host booted into before: another one only where somebody tried one by hand."""
    remembered: list[RememberedService] = []
    checks: list[Check] = []
    restored: list[Check] = []
    """After a rollback: whether what served before serves again."""
    measured: GateResult = GateResult()
    failure: DeployFailure | None = None
    events: list[DeployEvent] = []

    def ended(self) -> bool:
        """Whether nothing is left to be done."""
        return self.step in FINAL


class DeployRecord(Document):
    """One deploy as the history keeps it."""

    KIND: ClassVar[str] = "DeployRecord"
    kind: Literal["DeployRecord"] = "DeployRecord"
    id: DeployId
    started: str
    ended: str
    outcome: Literal["committed", "rolled back", "rollback failed"]
    reason: Literal["deploy", "rollback"]
    requested_by: str
    generation: StorePath
    former: StorePath | None
    plan_identity: str
    model: str
    model_path: str
    gate: GateLimits
    checks: list[Check]
    failure: DeployFailure | None = None
    golden: GoldenRecord | None = None
    output_tokens_per_s: float | None = None
    down_s: float | None = None
    """From the stop of what served before until the new generation had passed the gate; null: it never did."""
    stopped: list[RememberedService] = []
    """Services that gave way, as they were before."""


class DeployHistory(Document):
    """The deploys of one host, the oldest first."""

    KIND: ClassVar[str] = "DeployHistory"
    kind: Literal["DeployHistory"] = "DeployHistory"
    records: list[DeployRecord]

    def last_good(self, model: str, model_path: str) -> DeployRecord | None:
        """The last record of that model that was kept, or None."""
        kept = [r for r in self.records if r.outcome == "committed" and (r.model, r.model_path) == (model, model_path)]
        return kept[-1] if kept else None


class DeployState(Document):
    """How a host stands: what it runs, what it boots into, and whether a deploy is going on."""

    KIND: ClassVar[str] = "DeployState"
    kind: Literal["DeployState"] = "DeployState"
    host_kind: Literal["nixos", "systemd"]
    running: StorePath | None
    boot_default: StorePath | None
    holder: str | None = None
    """Who holds the lock: a deploy is going on."""
    journal: DeployJournal | None = None
    """Of the deploy that goes on, or of the last one."""


class StorePart(Part):
    """A store path of a closure."""

    path: StorePath
    bytes: int


class DeployChanges(Document):
    """What a deploy would change on a host, as far as that is known before it."""

    KIND: ClassVar[str] = "DeployChanges"
    kind: Literal["DeployChanges"] = "DeployChanges"
    host: str
    host_kind: Literal["nixos", "systemd"]
    running: StorePath | None
    generation: StorePath
    units: dict[str, Literal["new", "changed", "removed"]]
    arguments: list[str]
    """What differs between the plan that runs and the new one, a line each."""
    closure_bytes: int
    copy_bytes: int
    """Of the closure's store paths that the host has not, unpacked."""
    store_free_bytes: int | None
    stops: list[str]
    """Services that give way."""
    may_hold_gpus: list[str]
    """Active services that have to do with GPUs and are not named."""
    down_s: float | None
    """Time without service to expect: that of the last good deploy; null: not known."""
    down_at_most_s: float
    problems: list[str]
    """What preflight finds that would make the deploy fail."""

    def nothing(self) -> bool:
        """Whether the host already runs the generation."""
        return self.running == self.generation
