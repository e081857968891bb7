"""`appliance deploy`: what the options ask for, and what is said meanwhile."""

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from appliance.cli import deploy_table
from appliance.cli.output import say
from appliance.deploy import deploy, store
from appliance.deploy.checkpoint import bring as bring_checkpoint
from appliance.deploy.checkpoint import checkpoint
from appliance.deploy.fleet import Outcome, everywhere
from appliance.deploy.host.kind import PROGRAM
from appliance.deploy.look import changes, history
from appliance.deploy.remote import Remote, Standing
from appliance.documents import DeployState, GoldenRecord, Plan
from appliance.documents.deploy import DeployChanges, GateLimits, StoppedService
from appliance.errors import CheckFailed, InputError
from appliance.fetch.token import read_token

CHECKS_S = 300.0


@dataclass(frozen=True)
class Wanted:
    """What the options ask for."""

    generation: str | None
    build_on: str
    use_substitutes: bool
    stop: tuple[str, ...]
    fetch: str | None
    fetch_from: str | None
    fetch_rate: str | None
    token_file: Path | None
    golden: Path | None
    golden_tolerance: int
    gate_seconds: float | None
    least_speed: float
    load_requests: int
    load_at_once: int
    load_tokens: int
    most_restarts: int
    confirm_seconds: float
    skip: tuple[str, ...]
    at_once: int
    yes: bool
    dry_run: bool
    verb: str | None
    as_json: bool

    def terms(self, plan: Plan) -> deploy.Terms:
        """What each host is asked for."""
        gate = GateLimits(
            time_s=self.gate_seconds or plan.start_timeout_s + CHECKS_S,
            most_restarts=self.most_restarts,
            golden_tolerance=self.golden_tolerance,
            load_requests=self.load_requests,
            load_at_once=self.load_at_once,
            load_tokens=self.load_tokens,
            least_speed_share=self.least_speed,
        )
        golden = GoldenRecord.read(self.golden) if self.golden else None
        if golden is not None and golden.model != plan.model.served_name:
            raise InputError(f"{self.golden}: answers of model {golden.model!r}; expected {plan.model.served_name!r}")
        return deploy.Terms(stopped(self.stop), gate, golden, self.confirm_seconds)


def run(hosts: list[str], wanted: Wanted) -> None:
    """Do what the options ask for, on every host, and exit with what became of it."""
    remotes = {host: Remote(host) for host in hosts}
    if wanted.verb in ("history", "status"):
        for remote in remotes.values():
            (show_history if wanted.verb == "history" else show_status)(remote, wanted.as_json)
        return
    if wanted.verb == "remove":
        finish(everywhere(hosts, lambda host: remove(remotes[host]), wanted.at_once), wanted)
    if wanted.verb == "rollback":
        finish(everywhere(hosts, lambda host: rollback(remotes[host], wanted), wanted.at_once), wanted)
    if wanted.generation is None:
        raise click.UsageError("expected --generation, or one of --rollback, --history, --status, --remove")
    finish(everywhere(*prepared(remotes, wanted), wanted.at_once), wanted)


def prepared(remotes: dict[str, Remote], wanted: Wanted):
    """The hosts that change, after all were looked at and it was asked once, and how each is brought there."""
    from appliance.cli.preflight_run import read_skips

    skips = read_skips(wanted.skip)
    generation = store.built(wanted.generation)
    plan = store.plan_in(generation)
    terms = wanted.terms(plan)
    weights = None
    if wanted.fetch:
        token = read_token(wanted.token_file) if wanted.token_file else None
        weights = checkpoint(wanted.fetch, plan, wanted.fetch_from, wanted.fetch_rate, token)
    due, problems = [], []
    for host, remote in remotes.items():
        standing = remote.standing()
        fits(host, standing, generation)
        if generation == standing.running == standing.boots:
            say(f"{host}: nothing to change, {generation} runs and is what it boots into")
            continue
        found = changes(remote, standing, generation, plan, terms.stop, skips, say)
        show_changes(found, wanted.as_json)
        problems += [f"{host}: {problem}" for problem in found.problems]
        due.append(host)
    if problems:
        raise CheckFailed("nothing was changed:\n" + "\n".join(problems))
    if wanted.dry_run or not due:
        return [], None
    if not wanted.yes:
        click.confirm(f"deploy to {', '.join(due)}?", abort=True, err=True)

    def bring(host: str) -> str:
        remote = remotes[host]
        if wanted.build_on == "host":
            store.built_on(remote, wanted.generation)
        say(f"{host}: copying the closure")
        store.copy(remote, generation, wanted.use_substitutes)
        if weights:
            say(f"{host}: fetching {weights.model} at {weights.revision}")
            bring_checkpoint(remote, generation, weights)
        return switched(remote, deploy.request_for(generation, plan, terms))

    return due, bring


def switched(remote: Remote, request) -> str:
    """Switch one host. Raises ApplianceError where it was not kept."""
    journal = deploy.switch(remote, request, lambda text: say(f"{remote.host}: {text}"))
    deploy.required(journal, remote.host)
    return f"{request.generation} serves, and is what it boots into"


def rollback(remote: Remote, wanted: Wanted) -> str:
    """Back to the generation before, through the same gate."""
    generation, plan = deploy.former_of(remote)
    say(f"{remote.host}: back to {generation}")
    return switched(remote, deploy.request_for(generation, plan, wanted.terms(plan), "rollback"))


def remove(remote: Remote) -> str:
    """Take the appliance off. Raises ApplianceError."""
    return "; ".join(remote.root([program_of(remote), "deploy-host", "remove"]).split("\n")).strip("; ")


def program_of(remote: Remote) -> str:
    """The program of what runs on a host. Raises InputError where nothing does."""
    running = remote.standing().running
    if running is None:
        raise InputError(f"{remote.host}: no appliance was deployed there")
    return f"{running}/{PROGRAM}"


def fits(host: str, standing: Standing, generation: str) -> None:
    """Raise InputError where the generation is of the other kind of host."""
    kind = "nixos" if (Path(generation) / "bin/switch-to-configuration").exists() else "systemd"
    if kind != standing.kind:
        what = {"nixos": "a NixOS system", "systemd": "a generation of systemdHost"}
        raise InputError(f"{host}: {generation} is {what[kind]}; expected {what[standing.kind]}")


def stopped(texts: tuple[str, ...]) -> list[StoppedService]:
    """Services from UNIT[=URL]. Raises UsageError."""
    from pydantic import ValidationError

    services = []
    for text in texts:
        unit, _, url = text.partition("=")
        try:
            services.append(StoppedService(unit=unit, url=url or None))
        except ValidationError:
            raise click.UsageError(f"--stop {text!r}: expected a unit such as vllm.service, or UNIT=URL") from None
    return services


def show_changes(found: DeployChanges, as_json: bool) -> None:
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        click.echo("\n".join(deploy_table.change_lines(found)))


def show_history(remote: Remote, as_json: bool) -> None:
    found = history(remote, remote.standing())
    click.echo(found.to_json() if as_json else "\n".join(deploy_table.history_lines(found)), nl=not as_json)


def show_status(remote: Remote, as_json: bool) -> None:
    text = remote.root([program_of(remote), "deploy-host", "status"])
    state = DeployState.parse(text, f"state of {remote.host}")
    click.echo(text if as_json else "\n".join(deploy_table.state_lines(remote.host, state)), nl=not as_json)


def finish(outcomes: list[Outcome], wanted: Wanted) -> None:
    """Say what became of every host and exit."""
    for outcome in outcomes:
        say(f"{outcome.host}: {outcome.state}{f', {outcome.text}' if outcome.text else ''}")
    sys.exit(max((outcome.exit_code for outcome in outcomes), default=0))
