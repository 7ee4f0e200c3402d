"""Judge a request by the CEL of a rendered policy, without any engine: lazy variables, rules in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from blueprint.check.cel_library import extension

NAMES = ("object", "oldObject", "request")


@cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        variables=dict.fromkeys(NAMES, cel.Type.DYN),
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), extension()],
    )


@cache
def _program(text: str) -> cel.Expression:
    return _environment().compile(text)


def refusal(spec: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """The message of the first rule that does not hold, "" where all do; a rule that fails counts as not held."""
    data = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": dict(request)}
    known: dict[str, str] = {}
    for variable in spec.get("variables", ()):
        known[variable["name"]] = f"({_spelt_out(variable['expression'], known)})"
    for rule in spec["validations"]:
        result = _program(_spelt_out(rule["expression"], known)).eval(_environment().Activation(data))
        if result.value() is not True:
            broken = result.type() == cel.Type.ERROR
            return f"cannot be evaluated: {result.value()}" if broken else str(rule["message"])
    return ""


def _spelt_out(text: str, known: Mapping[str, str]) -> str:
    """The expression with every variable in place of its name: then it is evaluated only where it is read."""
    return re.sub(r"\bvariables\.(\w+)", lambda found: known[found[1]], text)
