"""PromQL as a tree of plain values, and what a query must give: one series or many, which labels, which kind.

The text is parsed by promql-parser, which follows Prometheus' own grammar. What another tool fills in later (Grafana's
`$__rate_interval`, the arguments of an AnalysisTemplate, a template's `{{ x }}`) stands for something unknown.
A leaf: it knows the language, and no metric.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

FILLED = "__filled_in_later__"
"""What stands in the text of a label value or name in place of a placeholder."""

_WINDOW = 7_654_321
"""Seconds of a range that is a placeholder."""

_IN_RANGE = re.compile(r"(?<=[\[:])\s*(?:\$\{?\w+(?::\w+)?\}?|\[\[\w+\]\]|\{\{[^}]*\}\})\s*(?=[\]:])")
_ELSEWHERE = re.compile(r"\{\{[^}]*\}\}|\$\{\w+(?::\w+)?\}|\$\w+|\[\[\w+\]\]")
_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')


@dataclass(frozen=True, slots=True)
class Matcher:
    """One label matcher; `op` is one of = != =~ !~."""

    label: str
    op: str
    value: str

    @property
    def filled(self) -> bool:
        """Whether the value holds a placeholder."""
        return FILLED in self.value


@dataclass(frozen=True, slots=True)
class Number:
    """A number; `filled` where it stands for a placeholder."""

    value: float
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A string, an argument of some functions."""

    value: str


@dataclass(frozen=True, slots=True)
class Select:
    """A selector. `window` is its range in seconds: 0 without one, None where it is a placeholder."""

    metric: str
    matchers: tuple[Matcher, ...]
    window: float | None = 0

    def matcher(self, label: str) -> Matcher | None:
        """The first matcher of a label."""
        return next((each for each in self.matchers if each.label == label), None)

    def value(self, label: str) -> str | None:
        """The value that a label must have, None where it may have several or is not known."""
        found = self.matcher(label)
        return found.value if found and found.op == "=" and not found.filled else None


@dataclass(frozen=True, slots=True)
class Call:
    """A function call."""

    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregation. `by` are the labels that stay, `without` those that go, None where that clause is not there."""

    op: str
    of: Node
    param: Node | None
    by: tuple[str, ...] | None
    without: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation on two sides. `on` and `ignoring` are None where that clause is not there; `one` for group_left."""

    op: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    ignoring: tuple[str, ...] | None = None
    grouped: str = ""
    included: tuple[str, ...] = ()
    returns_bool: bool = False


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query run over a range, in seconds; None where the range is a placeholder."""

    of: Node
    window: float | None
    step: float | None


Node = Number | Text | Select | Call | Aggregate | Binary | Subquery

COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})
SETS = frozenset({"and", "or", "unless"})
_MANY = frozenset({"topk", "bottomk", "count_values", "limitk", "limit_ratio"})


@dataclass(frozen=True, slots=True)
class Query:
    """A text and its tree; `error` says why there is none. `template` where the text held placeholders."""

    text: str
    tree: Node | None
    error: str = ""
    template: bool = False


@lru_cache(maxsize=4096)
def read(text: str) -> Query:
    """Parse a query. A text that only its placeholders keep from being parsed has neither tree nor error."""
    import promql_parser

    if len(text) > _LONGEST or text.count("(") > _DEEPEST:
        return Query(text, None)
    plain = _without_placeholders(text)
    template = plain != text
    try:
        return Query(text, _node(promql_parser.parse(plain)), template=template)
    except (ValueError, OverflowError) as problem:
        unsure = (template and _in_grammar(text)) or _NEWER.search(_STRINGS.sub('""', plain)) or not text.isascii()
        return Query(text, None, "" if unsure else str(problem).split("\n")[0], template)


_LONGEST, _DEEPEST = 10_000, 200
"""Characters and brackets beyond which a text is left alone: the parser's own depth has no limit."""

_NEWER = re.compile(
    r"\b(?:anchored|smoothed|info|start|end|step|range|fill\w*)\b|</|>/|\[[^\]]*[-+*/^%(][^\]]*\]|\w\.[a-zA-Z_.]"
    r"|\boffset\s+(?:\(|step)",
    re.IGNORECASE,
)
"""Marks of a grammar that the parser does not have: duration expressions, names with dots, experimental words."""


def _without_placeholders(text: str) -> str:
    if "$" not in text and "{{" not in text and "[[" not in text:
        return text
    parts, at = [], 0
    for quoted in _STRINGS.finditer(text):
        parts += [_bare(text[at : quoted.start()]), _ELSEWHERE.sub(FILLED, quoted.group())]
        at = quoted.end()
    return "".join([*parts, _bare(text[at:])])


def _in_grammar(text: str) -> bool:
    """Whether a placeholder stands where it may be more than a text: one in quotes breaks no query."""
    bare = _STRINGS.sub("", text)
    return "$" in bare or "{{" in bare or "[[" in bare


def _bare(text: str) -> str:
    text = _IN_RANGE.sub(f"{_WINDOW}s", text)
    # A quantile or threshold is a number, a grouping label or part of a metric's name is a word.
    text = re.sub(r"(?<=[,(])\s*\$\{?quantile\w*\}?\s*(?=,)", "0.5", text)
    return _ELSEWHERE.sub(FILLED, text)


def _seconds(value: timedelta) -> float | None:
    seconds = value.total_seconds()
    return None if seconds == _WINDOW else seconds


def _node(node: Any) -> Node:  # noqa: ANN401 - classes of the parser, which is imported late
    match type(node).__name__:
        case "NumberLiteral":
            return Number(node.val)
        case "StringLiteral":
            return Text(node.val)
        case "ParenExpr":
            return _node(node.expr)
        case "UnaryExpr":
            inner = _node(node.expr)
            return Number(-inner.value) if isinstance(inner, Number) else Binary("*", Number(-1), inner)
        case "VectorSelector":
            return _select(node, 0)
        case "MatrixSelector":
            return _select(node.vector_selector, _seconds(node.range))
        case "SubqueryExpr":
            return Subquery(_node(node.expr), _seconds(node.range), _seconds(node.step) if node.step else None)
        case "Call":
            return Call(node.func.name, tuple(_node(argument) for argument in node.args))
        case "AggregateExpr":
            by = without = None
            if node.modifier is not None:
                labels = tuple(node.modifier.labels)
                by, without = (labels, None) if str(node.modifier.type).endswith("By") else (None, labels)
            param = None if node.param is None else _node(node.param)
            return Aggregate(str(node.op), _node(node.expr), param, by, without)
        case "BinaryExpr":
            return _binary(node)
    raise ValueError(f"unknown node {type(node).__name__}")


_OPS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}


def _select(node: Any, window: float | None) -> Select | Number:  # noqa: ANN401
    matchers = [
        Matcher(each.name, _OPS[str(each.op).rpartition(".")[2]], each.value) for each in node.matchers.matchers
    ]
    metric = node.name or next((each.value for each in matchers if each.label == "__name__" and each.op == "="), "")
    if metric == FILLED and not node.matchers.matchers:
        return Number(0, filled=True)  # `> $threshold`; a metric whose name is filled in is not known either
    return Select(metric, tuple(each for each in matchers if each.label != "__name__" or not metric), window)


def _binary(node: Any) -> Binary:  # noqa: ANN401
    on = ignoring = None
    grouped = ""
    included: tuple[str, ...] = ()
    modifier = node.modifier
    if modifier is not None:
        if modifier.matching is not None:
            labels = tuple(modifier.matching.labels)
            on, ignoring = (labels, None) if str(modifier.matching.type).endswith("Include") else (None, labels)
        grouped = {"ManyToOne": "left", "OneToMany": "right"}.get(str(modifier.card).rpartition(".")[2], "")
        included = tuple(modifier.group_labels or ())
    returns_bool = modifier is not None and bool(modifier.return_bool)
    return Binary(str(node.op), _node(node.lhs), _node(node.rhs), on, ignoring, grouped, included, returns_bool)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below one."""
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Binary):
        return (node.left, node.right)
    if isinstance(node, Aggregate):
        return (node.of,) if node.param is None else (node.param, node.of)
    return (node.of,) if isinstance(node, Subquery) else ()


def walk(node: Node, above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Every node with those above it, the nearest last."""
    yield node, above
    for child in children(node):
        yield from walk(child, (*above, node))


def selects(node: Node) -> Iterator[tuple[Select, tuple[Node, ...]]]:
    """Every selector with the nodes above it, the nearest last."""
    for each, above in walk(node):
        if isinstance(each, Select):
            yield each, above


def is_scalar(node: Node) -> bool:
    """Whether a query gives a plain number and no vector."""
    match node:
        case Number():
            return True
        case Call(function, _):
            return function in {"scalar", "time", "pi"}
        case Binary(op, left, right):
            return op not in SETS and is_scalar(left) and is_scalar(right)
    return False


def constant(node: Node) -> float | None:
    """The value of a query that is made of numbers only, None for any other."""
    match node:
        case Number(value, filled):
            return None if filled else value
        case Binary(op, left, right):
            a, b = constant(left), constant(right)
            if a is None or b is None:
                return None
            try:
                return _ARITHMETIC[op](a, b)
            except (KeyError, ValueError, ZeroDivisionError, OverflowError):
                return None
    return None


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": math.pow,
}


def labels(node: Node) -> frozenset[str] | None:
    """The labels that the series of a query can have, None where they are not known."""
    match node:
        case Number() | Text():
            return frozenset()
        case Aggregate(op, of, _, by, without):
            if op in _MANY:
                return None if op == "count_values" else labels(of)
            if without is not None:
                inner = labels(of)
                return None if inner is None else inner - set(without)
            return frozenset(by or ())
        case Call(function, args):
            if function in {"scalar", "vector", "time", "pi"}:
                return frozenset()
            if function in {"label_replace", "label_join", "absent", "absent_over_time", "info"}:
                return None
            inner = labels(args[-1]) if args else frozenset()
            return inner - {"le"} if function.startswith("histogram_quantile") and inner is not None else inner
        case Subquery(of):
            return labels(of)
        case Binary():
            return _labels_of_both(node)
    return None


def _labels_of_both(node: Binary) -> frozenset[str] | None:
    left, right = labels(node.left), labels(node.right)
    if is_scalar(node.left):
        return right
    if is_scalar(node.right) or node.op in {"and", "unless"}:
        return left
    if node.op == "or":
        return None if left is None or right is None else left | right
    if node.grouped:
        many = left if node.grouped == "left" else right
        return None if many is None else many | set(node.included)
    if node.on is not None:
        return frozenset(node.on)
    if left is None or right is None:
        return None
    return (left | right) - set(node.ignoring or ())


def single(node: Node) -> bool:
    """Whether a query can never give more than one series."""
    match node:
        case Aggregate(op, of, param, by, _) if op in _MANY:
            return single(of) or (
                op in {"topk", "bottomk"} and not by and isinstance(param, Number) and param.value == 1
            )
        case Call("absent" | "absent_over_time", _):
            return True
        case Call("label_replace" | "label_join", args):
            return single(args[0])
        case Binary("or", left, right):
            return labels(left) == labels(right) == frozenset() and single(left) and single(right)
    kept = labels(node)
    return kept is not None and (not kept or kept <= _pinned(node))


def _pinned(node: Node) -> set[str]:
    """The labels for which every selector of a query asks the same one value."""
    if any(isinstance(each, Call) and each.function in {"label_replace", "label_join"} for each, _ in walk(node)):
        return set()
    each_asks = [{(m.label, select.value(m.label)) for m in select.matchers} for select, _ in selects(node)]
    return {label for label, value in set.intersection(*each_asks) if value} if each_asks else set()
