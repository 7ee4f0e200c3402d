"""CEL expressions in policies, webhooks and device selectors: can they be read at all?

Kubernetes knows more functions than the binding here, so only two faults are told: wrong syntax (certain), and a
variable that this kind of expression does not have (likely). Types and functions are left to the server.
"""

from __future__ import annotations

import re
from functools import lru_cache

from blueprint.check.native.problems import Problems
from blueprint.finding import Confidence

_FAULT = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([\w.]+)'")
_MACRO = re.compile(r"\b(?:has|all|exists|exists_one|map|filter)$")
_OWN_VARIABLES = re.compile(
    r"\bcel\.bind\s*\(|\b(?:all|exists|existsOne|transformList|transformMap)\s*\(\s*\w+\s*,\s*\w+\s*,"
)


@lru_cache(maxsize=32)
def _environment(names: tuple[str, ...]) -> object:
    from cel_expr_python import cel

    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))


@lru_cache(maxsize=1 << 12)
def fault(text: str, names: tuple[str, ...]) -> tuple[str, bool] | None:
    """What is wrong with an expression over some variables, and whether that is certain; None where nothing is."""
    environment = _environment(names)
    try:
        environment.compile(text)  # type: ignore[attr-defined]
    except (RuntimeError, ValueError) as error:
        faults = _FAULT.findall(str(error))
    else:
        return None
    for line, column, message in faults:
        if message.startswith("Syntax error"):
            return f"line {line}, column {column}: {message[0].lower()}{message[1:]}", True
    if _OWN_VARIABLES.search(text):
        return None
    for line, column, message in faults:
        match = _UNDECLARED.match(message)
        if match and not _is_call(text, int(line), int(column)):
            name = match[1].partition(".")[0]
            return f"there is no variable {name!r} here, only {', '.join(names)}", False
    return None


def _is_call(text: str, line: int, column: int) -> bool:
    """Whether the place of a fault is the bracket of a call: then the name is that of a function."""
    lines = text.split("\n")
    if line > len(lines) or lines[line - 1][column - 1 : column] != "(":
        return False
    return not _MACRO.search(lines[line - 1][: column - 1])  # of a macro's bracket it is the name of what is inside


def expression(problems: Problems, code: str, path: str, value: object, names: tuple[str, ...]) -> None:
    """Report an expression that is empty or cannot be read."""
    if not isinstance(value, str):
        return
    if not value.strip():
        problems.add(code, path, "the expression is empty")
    elif found := fault(value, names):
        message, sure = found
        problems.add(code, path, f"CEL: {message}", confidence=None if sure else Confidence.LIKELY)
