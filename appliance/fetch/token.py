"""The credential for gated models: read from a file by this process, and given to nobody but the hub."""

import os
from pathlib import Path

from appliance.errors import InputError

CREDENTIAL = "hf-token"
"""Name of the systemd credential (LoadCredential=)."""


def read_token(file: Path | None) -> str | None:
    """The token in `file`, else in the credential `hf-token` of the unit; None where there is neither.

    None leaves it to huggingface_hub's own settings. Raises InputError; no message quotes what the file holds.
    """
    if file is None and (folder := os.environ.get("CREDENTIALS_DIRECTORY")):
        credential = Path(folder) / CREDENTIAL
        file = credential if credential.exists() else None
    if file is None:
        return None
    try:
        token = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); expected a file with a token") from None
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise InputError(f"{file}: no token; expected one line without spaces")
    return token
