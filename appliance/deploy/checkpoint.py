"""The checkpoint, brought to the host by the host's own `appliance fetch` before anything is stopped."""

import subprocess
from pathlib import PurePosixPath
from typing import NamedTuple

from appliance.deploy.host.kind import PROGRAM
from appliance.deploy.remote import LOST, Remote
from appliance.documents import Plan
from appliance.errors import CheckFailed, InputError, ProbeIncomplete

REASONS = {InputError.exit_code: InputError, ProbeIncomplete.exit_code: ProbeIncomplete}


class Checkpoint(NamedTuple):
    """What to fetch. The folder of the plan's model is named by the commit, so that the old one stays beside it."""

    model: str
    revision: str
    home: str
    source: str | None = None
    rate: str | None = None
    token: str | None = None


def checkpoint(text: str, plan: Plan, source: str | None, rate: str | None, token: str | None) -> Checkpoint:
    """The checkpoint of "ORG/NAME@COMMIT" for a plan. Raises InputError."""
    model, _, revision = text.partition("@")
    if len(revision) != 40 or "/" not in model:
        raise InputError(f"--fetch {text!r}: expected ORG/NAME@COMMIT with the commit in full")
    path = PurePosixPath(plan.model.path)
    if path.name != revision:
        raise InputError(
            f"the plan's model is in {path}; expected a folder named {revision}, to keep the old one until then"
        )
    return Checkpoint(model, revision, str(path.parent), source, rate, token)


def bring(remote: Remote, generation: str, wanted: Checkpoint) -> None:
    """Fetch there what is missing; its progress goes to stderr. Raises what the fetch there ended with.

    The token goes through the connection into the standard input of the fetch: it is in no argument and in no file.
    """
    words = [f"{generation}/{PROGRAM}", "fetch", wanted.model, "--revision", wanted.revision, "--to", wanted.home]
    words += ["--from", wanted.source] if wanted.source else []
    words += ["--rate", wanted.rate] if wanted.rate else []
    words += ["--token-file", "/dev/stdin"] if wanted.token else []
    done = subprocess.run(
        remote.words(remote.as_root(words)),
        input=f"{wanted.token}\n" if wanted.token else "",
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == LOST:
        raise ProbeIncomplete(f"{remote.host}: the connection was lost; the next deploy goes on with what came")
    if done.returncode != 0:
        raise REASONS.get(done.returncode, CheckFailed)(
            f"{remote.host}: {wanted.model} was not fetched; nothing was stopped"
        )
