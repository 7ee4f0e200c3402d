"""CEL of admission policies: what an expression gives, and what in it nobody declares.

Types are known as far as they do not hang on the objects of a cluster, which are `dyn`. What only Kubernetes' own
libraries could tell stays unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from blueprint.catalog.tables import table

#: What every expression of a policy may read; `authorizer` is for Kubernetes' own engine.
NAMES: Final = ("object", "oldObject", "request", "namespaceObject", "authorizer")

_FAULT = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([\w.]+)'")
_MISMATCH = re.compile(r"found no matching overload for '([^']+)' applied to '\((.*)\)'")
_COMPARE = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_NUMBERS = frozenset({"int", "uint", "double"})
#: Types of the language; another one, as of optional values, may be known to Kubernetes only.
_PLAIN = re.compile(r"(?:bool|string|bytes|int|uint|double|dyn|null_type|list|map|[(), ])+")
#: Macros that name two variables, and those that the binding lacks: the names in them are declared by the macro.
_OWN_NAMES = re.compile(
    r"\b(?:all|exists|existsOne|transformList|transformMap|transformMapEntry)\s*\(\s*\w+\s*,\s*\w+\s*,|\bsortBy\s*\("
)
_TEXT = re.compile(r"[rRbB]*(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
_READ = re.compile(r"\bvariables\.([A-Za-z_]\w*)")
_FIELD_OF_OBJECT = re.compile(r"(?:object|oldObject)(?:\.\w+|\[[^\[\]]*\])+")


class Answer(NamedTuple):
    """The type of an expression, "" where it is not known, and what is wrong with it, "" where nothing is."""

    type: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may read: the types of the variables before it by their names, "dyn" for what is not known.

    In an `open` scope there may be names and functions that Kubernetes does not know.
    """

    variables: Mapping[str, str]
    open: bool = False

    def judge(self, text: str, *, condition: bool = False) -> Answer:
        """Compile an expression; a condition must be a boolean."""
        if not text.strip():
            return Answer(problem="the expression is empty")
        plain = _TEXT.sub("''", text)
        unknown = [name for name in _READ.findall(plain) if name not in self.variables]
        if unknown:
            there = f"; there are {', '.join(self.variables)}" if self.variables else ""
            return Answer(problem=f"there is no variables.{unknown[0]} before this{there}")
        answer = _compile(text, tuple(self.variables.items()), self.open)
        if answer.problem or not condition or answer.type in ("bool", ""):
            return answer
        if answer.type != "dyn":
            return Answer(problem=f"a rule is true or false, and this gives {answer.type}")
        if _FIELD_OF_OBJECT.fullmatch(plain.strip()):
            return Answer(problem="of a field nobody knows that it is true or false: compare it, as with == true")
        return answer


@lru_cache(maxsize=1 << 10)
def _compile(text: str, variables: tuple[tuple[str, str], ...], loose: bool) -> Answer:
    try:
        return Answer(str(_environment(variables).compile(text).return_type().name()).lower())
    except (RuntimeError, ValueError) as error:
        faults = [_Fault(int(line), int(column), said) for line, column, said in _FAULT.findall(str(error))]
    own = bool(_OWN_NAMES.search(_TEXT.sub("''", text)))
    return next((Answer(problem=said) for said in _told(faults, text, loose or own)), Answer())


class _Fault(NamedTuple):
    line: int
    column: int
    said: str


def _told(faults: list[_Fault], text: str, loose: bool) -> Iterator[str]:
    """What Kubernetes refuses, too, in words: syntax first, then functions, since they may declare names."""
    for fault in faults:
        if fault.said.startswith("Syntax error"):
            said = f"{fault.said[0].lower()}{fault.said[1:]}".removesuffix(" [INVALID_ARGUMENT]")
            yield f"line {fault.line}, column {fault.column}: {said}" if "\n" in text else said
    if loose:
        return
    missing = [(match[1], _called(text, fault)) for fault in faults if (match := _UNDECLARED.match(fault.said))]
    for name, called in missing:
        if called and name not in functions() and name.rpartition(".")[2] not in functions():
            yield f"there is no function {name}{_near(name, functions())}"
    for name, called in missing:
        if not called:
            first = name.partition(".")[0]
            there = _near(first, NAMES) or f"; there are {', '.join(NAMES)}"
            yield f"there is no variable {first}{there}"
    for fault in faults:
        match = _MISMATCH.match(fault.said)
        if match and match[1] in table("cel_functions")["strict"] and _PLAIN.fullmatch(match[2]):
            kinds = [kind.strip() for kind in match[2].split(",")]
            # Kubernetes compares numbers of different types.
            if match[1] not in _COMPARE or set(kinds) - _NUMBERS:
                yield f"{_spoken(match[1])} does not take {' and '.join(kinds)}"


def _called(text: str, fault: _Fault) -> bool:
    """Whether the place of a fault is the bracket of a call: then the name is that of a function."""
    lines = text.split("\n")
    return fault.line <= len(lines) and lines[fault.line - 1][fault.column - 1 : fault.column] == "("


def _near(name: str, names: tuple[str, ...] | frozenset[str]) -> str:
    from difflib import get_close_matches

    plain = {known.lower(): known for known in sorted(names)}
    close = get_close_matches(name.rpartition(".")[2].lower(), plain, n=1, cutoff=0.66)
    return f"; did you mean {plain[close[0]]}?" if close else ""


def _spoken(operator: str) -> str:
    return {"_?_:_": "a choice", "_[_]": "an index", "@in": "in"}.get(operator, operator.strip("_"))


@cache
def functions() -> frozenset[str]:
    """Every name of a function or macro in Kubernetes."""
    known = table("cel_functions")
    return frozenset([*known["others"], *(row["name"] for row in known["declared"])])


@lru_cache(maxsize=256)
def _environment(variables: tuple[tuple[str, str], ...]) -> Any:  # noqa: ANN401 - a class of the binding
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    types = {name: getattr(cel.Type, name.upper()) for name in ("bool", "string", "int", "double", "list", "dyn")}
    overloads: dict[str, list[Any]] = {}
    for number, row in enumerate(table("cel_functions")["declared"]):
        parameters = [types[kind] for kind in ([row["on"]] if "on" in row else []) + row.get("of", [])]
        overload = cel.Overload(f"k8s_{number}", types[row["gives"]], parameters, is_member="on" in row)
        overloads.setdefault(row["name"], []).append(overload)
    declared = cel.CelExtension("kubernetes", [cel.FunctionDecl(name, group) for name, group in overloads.items()])
    names = dict.fromkeys((*NAMES, "variables"), cel.Type.DYN)
    return cel.NewEnv(
        variables=names | {f"variables.{name}": types.get(kind, cel.Type.DYN) for name, kind in variables},
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), declared],
    )
