"""Sessions in a shell, as pages of rules show them: typed again, and compared with what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner

from blueprint.catalog.rules import rules
from blueprint.cli import app
from blueprint.errors import BlueprintError
from blueprint.runtime.gate import Gate

_CODE = re.compile(r"\b[A-Z]{2,3}\d{3}\b")
_TABLE = re.compile(r"^cluster +application .*?^─+\n.*?^─+\n.*?\n\n", re.MULTILINE | re.DOTALL)
_SAME = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "…"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "2026-12-01T12:00:00Z"),
    (re.compile(r"\bkey:[\w+/]{43}="), "key:…"),
    (re.compile(r"\bentry \d+ of log [0-9a-f]{16}…"), "entry 17 of log e6980a181d5aec29…"),
    (re.compile(r"\b\d+ files, sha256"), "45 files, sha256"),
    (re.compile(r" · \d+\.\d+ s\b"), ""),
    (re.compile(r"^\d+ objects in \d+ clusters? · ", re.MULTILINE), ""),
)
"""What differs from run to run, and what stands for it."""


@dataclass(frozen=True)
class Stage:
    """Where a session is typed: its folder, short names for arguments, and names of hosts for those that answer here.

    `hidden` is left out of what is said: the folder above. `gate` answers for https://image-gate/.
    """

    folder: Path
    short: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    hidden: str = ""
    gate: Gate | None = None


def typed(text: str) -> list[str]:
    """The commands of a session; `> ` goes on with the line above."""
    commands: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif line.startswith("> ") or line == ">":
            commands[-1] += "\n" + line[2:]
    return commands


def play(text: str, stage: Stage) -> str:
    """The session as it goes today."""
    lines: list[str] = []
    for command in typed(text):
        first, *more = command.split("\n")
        lines += [f"$ {first}", *(f"> {line}".rstrip() for line in more)]
        said, ended = run(command, stage)
        lines += [line.rstrip() for line in said.splitlines() if line.strip()]
        lines += [f"[{ended}]"] if ended else []
    return "\n".join(lines) + "\n"


def run(command: str, stage: Stage) -> tuple[str, int]:
    """What a command says, and its exit code; `blueprint` runs in this process, for it is quicker."""
    for name, value in stage.short.items():
        command = re.sub(rf"\${name}\b", lambda _, value=value: value, command)  # type: ignore[misc]
    for here, shown in stage.names.items():
        command = command.replace(shown, here)
    before, own, rest = command.partition("blueprint ")
    if command.startswith(_ASK) and stage.gate:
        answer = stage.gate.respond((stage.folder / command.rpartition("@")[2]).read_bytes())
        said, ended = json.dumps(answer["response"]["items"], indent=1), 0
    elif own and _SETS.fullmatch(before):
        said, ended = _blueprint(before, rest, stage)
    else:
        said, ended = _bash(command, stage)
    for here, shown in {**stage.names, stage.hidden: ""}.items():
        said = said.replace(here, shown) if here else said
    said = _TABLE.sub("", said)
    for pattern, same in _SAME:
        said = pattern.sub(same, said)
    return said, ended


_ASK = "curl -s https://image-gate/ --data @"
_SETS = re.compile(r"(PATH=\S+ )?")


def _blueprint(before: str, arguments: str, stage: Stage) -> tuple[str, int]:
    env = {"NO_COLOR": "1", "COLUMNS": "100"}
    if before:
        first = (stage.folder / before.strip().removeprefix("PATH=").partition(":")[0]).resolve()
        env["PATH"] = f"{first}:{os.environ['PATH']}"
    with chdir(stage.folder):
        result = CliRunner().invoke(app, shlex.split(arguments), env=env)
    if isinstance(result.exception, BlueprintError):
        return result.output + result.exception.diagnostics(), result.exception.exit_code
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output, result.exit_code


def _bash(command: str, stage: Stage) -> tuple[str, int]:
    who = {f"GIT_{role}_{part}": f"x{at}" for role in ("AUTHOR", "COMMITTER") for part, at in _WHO}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=stage.folder,
        env=os.environ
        | who
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode


_WHO = (("NAME", ""), ("EMAIL", "@example.com"))


def told(text: str) -> set[str]:
    """The codes of rules in the answers of a session."""
    answers = [line for line in text.splitlines() if not line.startswith(("$ ", "> "))]
    return {code for line in answers for code in _CODE.findall(line) if code in rules()}
