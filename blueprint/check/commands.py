"""The command line of a container: its words, and where each of them is written.

Kubernetes puts variables of the container in the place of `$(NAME)`, and a dollar in that of `$$`; what a shell would
expand stays unknown.
Source: k8s.io/kubernetes@v1.35.4 third_party/forked/golang/expansion/expand.go.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blueprint.check.shapes import Body, items, maps, text

_SHELLS = ("sh", "bash", "ash", "dash", "zsh")
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "\n"})
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#[^\n]*$")
_UNKNOWN = re.compile(r"\$\{?[A-Za-z_@*]|\$\(|`|\{\{|<<|@@")


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and the path of the field it is in, below the container: `args[3]`, or `command[2]` for a script."""

    text: str
    at: str

    @property
    def known(self) -> bool:
        """Whether nothing in it is filled in later."""
        return not _UNKNOWN.search(self.text)


@dataclass(frozen=True, slots=True)
class Command:
    """What a container runs. `by_shell`: by way of a shell; `replaced`: which the program then takes the place of.

    `alone`: it is all that the shell runs; most shells then leave their place to it by themselves.
    """

    words: tuple[Word, ...]
    by_shell: bool = False
    replaced: bool = False
    alone: bool = False


def environment(container: Body) -> dict[str, str | None]:
    """The variables that a container sets itself; None for a value that comes from elsewhere."""
    found: dict[str, str | None] = {}
    for row in maps(container.get("env")):
        name, value = text(row.get("name")), row.get("value")
        if name:
            found[name] = None if "valueFrom" in row else value if isinstance(value, str) else ""
    return found


def commands(container: Body) -> list[Command]:
    """The commands of a container in the order of a script; one where there is no shell."""
    variables = environment(container)
    words = [
        Word(_expand(text(value), variables), f"command[{n}]")
        for n, value in enumerate(items(container.get("command")))
    ]
    words += [
        Word(_expand(text(value), variables), f"args[{n}]") for n, value in enumerate(items(container.get("args")))
    ]
    script = _script(words)
    return [Command(tuple(words))] if script is None else list(_split(script))


def _expand(value: str, variables: Mapping[str, str | None]) -> str:
    def one(match: re.Match[str]) -> str:
        return (variables.get(match[1]) or match[0]) if match[1] else "$"

    return _VARIABLE.sub(one, value) if "$" in value else value


def _script(words: Sequence[Word]) -> Word | None:
    """The script of `sh -c SCRIPT`, also behind a few programs that only start another (`tini -- bash -c`)."""
    names = [word.text.rpartition("/")[2] for word in words]
    for index, name in enumerate(names[:6]):
        if name in _SHELLS:
            for word in words[index + 1 :]:
                if not word.text.startswith(("-", "+")):
                    return word if any(w.text.startswith("-") and "c" in w.text for w in words[index + 1 :]) else None
            return None
    return None


def _split(script: Word) -> list[Command]:
    body = _COMMENT.sub("", script.text.replace("\\\n", " "))
    try:
        lexer = shlex.shlex(body.replace("\n", " ; "), posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = ""
        parts = list(lexer)
    except ValueError:
        return []
    found: list[Command] = []
    current: list[str] = []
    for part in [*parts, ";"]:
        if part not in _SEPARATORS:
            current.append(part)
            continue
        while current and re.fullmatch(r"[A-Za-z_]\w*=.*|then|do|else|exec|env|time|nohup", current[0]):
            if current[0] == "exec":
                found.append(
                    Command(tuple(Word(each, script.at) for each in current[1:]), by_shell=True, replaced=True)
                )
                current = []
                break
            current = current[1:]
        if current:
            found.append(Command(tuple(Word(each, script.at) for each in current), by_shell=True))
        current = []
    return [replace(found[0], alone=True)] if len(found) == 1 else found
