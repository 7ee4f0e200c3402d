"""Conditions of analyses that cannot be read: the measurement ends in an error, whatever was measured.

Sources: argo-rollouts v1.10.2 utils/evaluate/evaluate.go (expr.Compile with the names of its environment);
github.com/expr-lang/expr v1.17.7 parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from blueprint.catalog.slips import meant
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.rollouts import conditions, metrics, templates
from blueprint.check.rules.say import say
from blueprint.finding import Finding

_ARGUMENT = re.compile(r"\{\{[^{}]*\}\}")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
_NAME = re.compile(r"(?<![\w.#])[A-Za-z_]\w*")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_OPEN_END = re.compile(r"(?:&&|\|\||[<>=!+\-*/%(,]|\b(?:and|or|not|in))\s*$")
_OPERATORS = {"=": "==", "&": "&&", "=>": ">=", "=<": "<=", "<>": "!=", "===": "=="}
_SLIP = re.compile(r"===|<>|=>|=<|(?<![=!<>])=(?![=<>])|(?<!&)&(?!&)")
_OTHERWISE = {"AND": "and", "OR": "or", "NOT": "not", "True": "true", "False": "false", "null": "nil", "None": "nil"}
_ENVIRONMENT = frozenset({"result", "asInt", "asFloat", "isNaN", "isInf", "isNil", "default"})


def unreadable(graph: Graph) -> Iterator[Finding]:
    """ANA223: a condition with a bracket or quote too many, that breaks off, or with a name that is not there."""
    for template in templates(graph):
        for metric in metrics(template):
            for field, condition in zip(("successCondition", "failureCondition"), conditions(metric), strict=True):
                problem = _problem(condition.text) if condition else ""
                if problem:
                    message = f"{metric.name}: the {field} cannot be read: {problem}"
                    yield say("ANA223", template, message, f"{metric.at}.{field}", "such as result[0] < 0.05")


def _problem(text: str) -> str:
    plain = _TEXT.sub('""', _ARGUMENT.sub("0", text))
    if re.search(r"['\"`]", plain.replace('""', "")):
        return "a quote has no end"
    opened: list[str] = []
    for letter in plain:
        if letter in "([{":
            opened.append(letter)
        elif letter in _CLOSING and (not opened or opened.pop() != _CLOSING[letter]):
            return f"a {letter} too many"
    if opened:
        return f"a {opened[-1]} has no end"
    if _OPEN_END.search(plain):
        return "it breaks off"
    own = "let " in plain or "{" in plain  # names of its own: variables, and fields inside a predicate
    if not own and (slip := _SLIP.search(plain)):
        return f"there is no operator {slip[0]}, but {_OPERATORS[slip[0]]}"
    for name in _NAME.findall(plain):
        if right := meant(name, _ENVIRONMENT) or _OTHERWISE.get(name, ""):
            return f"there is no {name}, but {right}"
        if not own and name not in _ENVIRONMENT and name not in table("languages")["conditions"]:
            return f"there is no {name}; what was measured is `result`"
    return ""


RULES = (unreadable,)
TREE = ()
