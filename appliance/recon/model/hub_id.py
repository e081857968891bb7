"""Names of repositories on the hub, told apart from paths without importing the hub's client."""

import re

HUB_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$")


def split_revision(reference: str) -> tuple[str, str | None]:
    """("org/name", "main") of "org/name@main"; a reference without a revision has None."""
    repo, at, revision = reference.partition("@")
    return repo, revision or None if at else None
