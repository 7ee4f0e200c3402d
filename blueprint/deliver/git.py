"""The git program, run in one folder with an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from blueprint.errors import EnvironmentLacks

_SECRET = re.compile(r"(?<=://)[^/@\s]+@")

#: What a surrounding Git command (a hook, an alias) sets about its own repository: `git rev-parse --local-env-vars`.
_FOREIGN = frozenset(
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    )
)

#: Of a work tree's own configuration: who commits, how commits are signed, and how servers are reached.
_BORROWED = ("user.", "author.", "committer.", "gpg.", "commit.gpgsign", "http.", "credential.", "url.", "ssh.")
_BORROWED_CORE = ("core.sshcommand", "core.askpass", "core.gitproxy")

Setting = tuple[str, str]
"""A key of Git's configuration and its value."""


class GitFailed(EnvironmentLacks):
    """A git command ended with an error: `said` is what it wrote, without credentials in addresses."""

    def __init__(self, command: str, said: str) -> None:
        self.said = said
        lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("hint:")]
        super().__init__(f"git {command}: {' / '.join(lines[-6:]) or 'failed'}", hint=_hint(said))


class Git:
    """Runs git in `folder`, with `settings` on top of the configuration of the user and the system."""

    def __init__(self, folder: Path, settings: Sequence[Setting] = ()) -> None:
        self.folder = folder
        self._environment = _environment(settings)

    def __call__(self, *arguments: str, given: bytes = b"") -> bytes:
        """What the command writes to its standard output. Raises GitFailed where it ends with an error."""
        code, output, said = self.run(*arguments, given=given)
        if code:
            raise GitFailed(arguments[0], said or plain(output))
        return output

    def run(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes, str]:
        """The exit code, the standard output, and what was said beside it. Raises EnvironmentLacks without git."""
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.folder,
                env=self._environment,
                input=given,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise EnvironmentLacks("git is not installed", hint="install git 2.30 or newer") from None
        return done.returncode, done.stdout, plain(done.stderr)

    def text(self, *arguments: str) -> str:
        """The output as text, "" where the command fails."""
        code, output, _ = self.run(*arguments)
        return "" if code else output.decode("utf-8", "replace").strip()


def plain(words: bytes | str) -> str:
    """Text for a person: addresses lose the user and token in them."""
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return _SECRET.sub("", text).strip()


def borrowed(folder: Path) -> list[Setting]:
    """What the repository around `folder` says about identity, signing and servers; nothing outside of one.

    CI systems keep the token of a checkout there (actions/checkout: `http.<host>.extraheader`).
    """
    if not folder.is_dir():
        return []
    code, output, _ = Git(folder).run("config", "--local", "--includes", "--list", "-z")
    found: list[Setting] = []
    for entry in output.decode("utf-8", "surrogateescape").split("\0") if code == 0 else ():
        key, newline, value = entry.partition("\n")
        if newline and (key.startswith(_BORROWED) or key in _BORROWED_CORE):
            found.append((key, value))
    return found


def _environment(settings: Sequence[Setting]) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    environment["LC_ALL"] = "C"
    if not sys.stdin or not sys.stdin.isatty():
        environment["GIT_TERMINAL_PROMPT"] = "0"  # nobody is there to answer
    every = [("gc.auto", "0"), ("http.lowSpeedLimit", "1000"), ("http.lowSpeedTime", "60"), *settings]
    start = int(environment.get("GIT_CONFIG_COUNT") or 0)
    for number, (key, value) in enumerate(every, start):
        # In the environment, not in a file: a kill leaves no token on the disk.
        environment[f"GIT_CONFIG_KEY_{number}"], environment[f"GIT_CONFIG_VALUE_{number}"] = key, value
    environment["GIT_CONFIG_COUNT"] = str(start + len(every))
    return environment


_HINTS = (
    ("tell me who you are", "git config user.name and user.email"),
    ("empty ident name", "git config user.name and user.email"),
    ("failed to sign", "see user.signingkey and gpg.format in git's configuration, or use --no-sign"),
    ("failed to write commit object", "see user.signingkey and gpg.format in git's configuration, or use --no-sign"),
    ("could not read username", "give git a credential for that address, such as a token"),
    ("authentication failed", "the credential for that address is wrong or has expired"),
    ("permission denied", "this identity may not do that there"),
    ("does not appear to be a git repository", "see spec.repository.url of the Delivery, or name one with --remote"),
    ("not found", "see spec.repository.url of the Delivery, or name one with --remote"),
    ("could not resolve host", "see spec.repository.url of the Delivery, or name one with --remote"),
)


def _hint(said: str) -> str:
    low = said.lower()
    return next((hint for words, hint in _HINTS if words in low), "")
