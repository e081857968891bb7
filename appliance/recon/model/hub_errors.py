"""What went wrong with the hub, in one line each. No message quotes a header or a token."""

import httpx
from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

from appliance.errors import ApplianceError, InputError, ProbeIncomplete

TRANSIENT = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)
"""Errors after which asking again may help."""


def hub_error(error: Exception, where: str, attempts: int = 1) -> ApplianceError:
    """The error for the user: InputError where the hub said no, ProbeIncomplete where it could not say."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx.Response) and response.status_code >= 400:
        return refusal(response, where)
    tried = f" ({attempts} times)" if attempts > 1 else ""
    if isinstance(error, OfflineModeIsEnabled):
        return InputError(f"{where}: offline (HF_HUB_OFFLINE is set); expected the hub within reach")
    if isinstance(error, HFValidationError):
        return InputError(f"{where}: not a hub id; expected org/name")
    if isinstance(error, httpx.TimeoutException):
        return ProbeIncomplete(f"{where}: the hub did not answer in time{tried}")
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        return ProbeIncomplete(f"{where}: the connection was cut{tried}; expected the whole answer")
    if isinstance(error, httpx.TooManyRedirects):
        return ProbeIncomplete(f"{where}: the hub redirects without end")
    if isinstance(error, httpx.HTTPError | OSError):
        return ProbeIncomplete(f"{where}: the hub cannot be reached{tried} ({type(error).__name__})")
    return ProbeIncomplete(f"{where}: the hub's answer cannot be read ({type(error).__name__})")


def refusal(response: httpx.Response, where: str) -> ApplianceError:
    """The error for an answer of 400 or more."""
    status, code = response.status_code, response.headers.get("x-error-code", "")
    if code == "GatedRepo" or (status == 403 and code != "RepoNotFound"):
        return InputError(
            f"{where}: gated or forbidden ({status}); expected access: accept the terms on the model's page, and "
            "log in or set HF_TOKEN to a token that may read it"
        )
    if code == "RevisionNotFound":
        return InputError(f"{where}: no such revision (404); expected a branch, a tag or a commit")
    if code == "EntryNotFound":
        return InputError(f"{where}: no such file in the repository (404)")
    if status == 401:
        return InputError(
            f"{where}: not authorised (401): no such repository, or a private one, or a token that is not valid; "
            "expected a public repository, or a valid HF_TOKEN"
        )
    if status == 404:
        return InputError(f"{where}: no such repository (404); expected org/name as on the hub")
    if status == 429:
        after = retry_after(response)
        return ProbeIncomplete(f"{where}: too many requests (429); retry after {after}")
    return ProbeIncomplete(f"{where}: the hub answered {status}")


def retry_after(response: httpx.Response) -> str:
    """When to ask again: Retry-After, or the reset time of the RateLimit header, in words."""
    value = response.headers.get("retry-after", "").strip()
    if value:
        return f"{value} s" if value.isdigit() else value[:40]
    for part in response.headers.get("ratelimit", "").split(";"):
        name, _, seconds = part.strip().partition("=")
        if name == "t" and seconds.isdigit():
            return f"{seconds} s"
    return "a while (the hub does not say how long)"
