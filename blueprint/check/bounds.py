"""Between which numbers the value of a query lies, where that can be told: what a limit can be compared with."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from blueprint import promql
from blueprint.catalog.series import Series
from blueprint.promql import Aggregate, Binary, Call, Node, Number, Select, Subquery

Range = tuple[float, float]
Lookup = Callable[[str], Series | None]
Recorded = Callable[[str], Node | None]

_UNITS: dict[str, Range] = {
    "ratio": (0, 1),
    "boolean": (0, 1),
    "percent": (0, 100),
    "MiB": (0, 2e6),
    "celsius": (-50, 200),
}
_KEEPS = frozenset({"avg", "min", "max", "quantile", "topk", "bottomk"})
_KEEPING = frozenset(
    {
        "avg_over_time",
        "min_over_time",
        "max_over_time",
        "last_over_time",
        "quantile_over_time",
        "scalar",
        "label_replace",
        "label_join",
        "sort",
        "sort_desc",
        "ceil",
        "floor",
    }
)
_SHARES = ("error_ratio", "errors_ratio", "error_rate_ratio", "ratio_rate", "hit_ratio", "success_ratio")


def bounds(node: Node, known: Lookup, recorded: Recorded, depth: int = 0) -> Range | None:
    """The least and the greatest value, None where they are not known. `recorded` gives the query behind a name."""
    match node:
        case Number(value, filled):
            return None if filled else (value, value)
        case Select(metric):
            return _of_metric(metric, known, recorded, depth)
        case Aggregate(op, of):
            return bounds(of, known, recorded, depth) if op in _KEEPS else (0, inf) if op == "count" else None
        case Call("vector", args):
            return bounds(args[0], known, recorded, depth)
        case Call("histogram_quantile", args):
            return _of_quantile(args, known)
        case Call(function, args) if function in _KEEPING and args:
            return bounds(args[-1] if function == "quantile_over_time" else args[0], known, recorded, depth)
        case Subquery(of):
            return bounds(of, known, recorded, depth)
        case Binary():
            return _of_binary(node, known, recorded, depth)
    return None


_DEEPEST = 8


def _of_metric(metric: str, known: Lookup, recorded: Recorded, depth: int) -> Range | None:
    found = known(metric)
    if found is not None and not found.part and found.type == "gauge":
        return _UNITS.get(found.unit)
    behind = recorded(metric) if depth < _DEEPEST else None
    if behind is not None:
        return bounds(behind, known, recorded, depth + 1)
    return (0, 1) if ":" in metric and any(word in metric for word in _SHARES) else None


def _of_quantile(args: tuple[Node, ...], known: Lookup) -> Range | None:
    """Prometheus interpolates from 0 in the lowest bucket, and never passes the highest finite boundary.

    Source: prometheus v0.316.0 promql/quantile.go BucketQuantile.
    """
    share = promql.constant(args[0])
    for select, _ in promql.selects(args[-1]):
        found = known(select.metric)
        if found is None or found.part != "bucket" or not found.buckets or share is None or not 0 <= share <= 1:
            return None
        return found.buckets[0] * share, found.buckets[-1]
    return None


def _of_binary(node: Binary, known: Lookup, recorded: Recorded, depth: int) -> Range | None:
    if node.op in promql.COMPARISONS:
        return (0, 1) if node.returns_bool else bounds(node.left, known, recorded, depth)
    if node.op == "/" and is_share(node.left, node.right):
        return 0, 1
    left, right = bounds(node.left, known, recorded, depth), bounds(node.right, known, recorded, depth)
    if node.op in {"and", "unless"}:
        return left
    if left is None or right is None:
        return None
    if node.op == "or":
        return min(left[0], right[0]), max(left[1], right[1])
    if node.op == "-":
        return left[0] - right[1], left[1] - right[0]
    if node.op == "+":
        return left[0] + right[0], left[1] + right[1]
    if node.op == "*" and right[0] == right[1] and right[0] >= 0:
        return left[0] * right[0], left[1] * right[0]
    if node.op == "*" and left[0] == left[1] and left[0] >= 0:
        return right[0] * left[0], right[1] * left[0]
    if node.op == "/" and right[0] == right[1] and right[0] > 0:
        return left[0] / right[0], left[1] / right[0]
    return None


def is_share(part: Node, whole: Node) -> bool:
    """Whether one query counts some of what the other counts all of: the same counter, by more matchers."""
    a, b = _counted(part), _counted(whole)
    if a is None or b is None:
        return False
    (some, how), (all_, how_all) = a, b
    base = some.metric.removesuffix("_bucket").removesuffix("_count")
    if (
        how != how_all
        or base != all_.metric.removesuffix("_count").removesuffix("_bucket")
        or some.window != all_.window
    ):
        return False
    return {m for m in all_.matchers if m.label != "le"} <= set(some.matchers)


def _counted(node: Node) -> tuple[Select, tuple[str, ...]] | None:
    """The selector of sum(rate(x[w])), and what is done with it; `or vector(0)` beside it counts nothing more."""
    how: list[str] = []
    while True:
        match node:
            case Select():
                return node, tuple(how)
            case Aggregate("sum", of, _, by, without):
                how.append(f"sum {by} {without}")
                node = of
            case Call(("rate" | "increase" | "irate") as function, args):
                how.append(function)
                node = args[0]
            case Binary("or", left, Call("vector", _)):
                node = left
            case _:
                return None


def verdict(operator: str, limit: float, within: Range) -> bool | None:
    """Whether `value operator limit` always (True) or never (False) holds; None where it depends on the value."""
    low, high = within
    match operator:
        case ">":
            return False if high <= limit else True if low > limit else None
        case ">=":
            return False if high < limit else True if low >= limit else None
        case "<":
            return False if low >= limit else True if high < limit else None
        case "<=":
            return False if low > limit else True if high <= limit else None
        case "==":
            return False if not low <= limit <= high else None
    return None
