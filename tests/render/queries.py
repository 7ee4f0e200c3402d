"""PromQL read by a parser, for tests that look into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser


@dataclass(frozen=True)
class Selected:
    """One selector of a query: metric, matchers by label, range in seconds (0 for none), functions around it."""

    metric: str
    labels: dict[str, str]
    window: float
    inside: tuple[str, ...]


def selectors(query: str) -> list[Selected]:
    """Every selector of a query; what Argo Rollouts fills in is filled in. Raises for what does not parse."""
    return list(_walk(promql_parser.parse(re.sub(r"{{args\.[a-z-]+}}", "x", query)), ()))


def _walk(node: Any, inside: tuple[str, ...]) -> Iterator[Selected]:
    match type(node).__name__:
        case "MatrixSelector":
            [found] = _walk(node.vector_selector, inside)
            yield Selected(found.metric, found.labels, node.range.total_seconds(), inside)
        case "VectorSelector":
            labels = {m.name: m.value for m in node.matchers.matchers}
            yield Selected(node.name or labels.pop("__name__", ""), labels, 0, inside)
        case "Call":
            for argument in node.args:
                yield from _walk(argument, (*inside, node.func.name))
        case "AggregateExpr":
            yield from _walk(node.expr, (*inside, str(node.op)))
        case "BinaryExpr":
            yield from _walk(node.lhs, inside)
            yield from _walk(node.rhs, inside)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            yield from _walk(node.expr, inside)
