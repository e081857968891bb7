"""The `nix` command: builds, rebuilds and copies of named parts. Flags as of Nix 2.24 and newer."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from appliance.errors import InputError, ProbeIncomplete

FAILED = re.compile(r"builder for '[^']+' failed")
UNSTABLE = re.compile(r"derivation '([^']+)' may not be deterministic")


class Built(NamedTuple):
    """A part that is in the store."""

    derivation: str
    path: str
    nar_hash: str
    nar_size: int


@dataclass(frozen=True)
class Nix:
    """Nix over one set of parts: attributes of `source`, which is a flake reference or `--file FILE` with arguments.

    `within` are words before every command, such as those that enter a root in which Nix is installed.
    """

    source: str | list[str]
    within: list[str] = field(default_factory=list)

    def execute(self, *words: str) -> subprocess.CompletedProcess:
        """Run one command to its end. Raises InputError where there is no such command."""
        command = [*self.within, *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be run ({error.strerror}); expected nix 2.24 or newer") from None

    def output(self, *words: str) -> str:
        """Standard output of a command that must succeed. Raises ProbeIncomplete with its last line if it does not."""
        done = self.execute(*words)
        if done.returncode:
            raise ProbeIncomplete(f"{' '.join(words[:2])}: {said_last(done.stderr)}")
        return done.stdout

    def version(self) -> str:
        return self.output("nix", "--version").strip()

    def installables(self, names: list[str]) -> list[str]:
        """The parts as arguments of `nix build`."""
        if isinstance(self.source, str):
            return [f"{self.source}#{name}" for name in names]
        return [*self.source, *names]

    def build(self, names: list[str]) -> dict[str, Built]:
        """Build the parts where they are not in the store yet."""
        found = json.loads(self.output("nix", "build", "--no-link", "--json", "--impure", *self.installables(names)))
        paths = [entry["outputs"]["out"] for entry in found]
        info = json.loads(self.output("nix", "path-info", "--json", *paths))
        return {
            name: Built(entry["drvPath"], path, info[path]["narHash"], info[path]["narSize"])
            for name, entry, path in zip(names, found, paths, strict=True)
        }

    def rebuild(self, parts: list[Built], store: str | None = None) -> set[str]:
        """Build the parts once more in `store`; the derivations whose bits differ. Their second builds stay in the
        store under the output's name and ".check"."""
        elsewhere = ["--store", store] if store else []
        derivations = [f"{part.derivation}^out" for part in parts]
        options = ["--rebuild", "--keep-failed", "--keep-going", "--no-link"]
        done = self.execute("nix", "build", *options, *elsewhere, *derivations)
        differing = set(UNSTABLE.findall(done.stderr))
        if done.returncode and (not differing or FAILED.search(done.stderr)):
            raise ProbeIncomplete(f"nix build --rebuild: {said_last(done.stderr)}")
        return differing

    def copy_to(self, store: str, parts: list[Built]) -> None:
        """Copy the parts and everything that builds them (inputs, not what built those) to `store`."""
        derivations = [part.derivation for part in parts]
        references = self.output("nix-store", "--query", "--references", *derivations).split()
        inputs = [path for path in references if path.endswith(".drv")]
        outputs = self.output("nix-store", "--query", "--outputs", *inputs).split() if inputs else []
        missing = set(self.output("nix-store", "--check-validity", "--print-invalid", *outputs).split())
        wanted = {part.path for part in parts} | set(derivations) | set(references) | set(outputs) - missing
        self.output("nix", "copy", "--no-check-sigs", "--to", store, *sorted(wanted))

    def copy_out(self, path: str, target: Path) -> None:
        """Copy a path of the store, valid or not, to `target`."""
        self.output("cp", "-r", "--preserve=mode,links", path, str(target))


def said_last(text: str) -> str:
    """The last line of what a command said that is an error, or its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["failed without a word"]
    return next((line for line in reversed(lines) if line.startswith("error:")), lines[-1])
