"""The texts of alerts: templates that name what the alert does not have.

Source: prometheus v3.13.0 template/template.go, rules/alerting.go (the variables that a template gets).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.queries import queries
from blueprint.check.rules.of_query import doubt, fault
from blueprint.check.shapes import mapping, text
from blueprint.finding import Finding
from blueprint.promql import Aggregate, Binary, Call, Node

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_DECLARED = re.compile(r"\$([A-Za-z_]\w*)\s*(?:,\s*\$([A-Za-z_]\w*)\s*)?:=")
_LABEL = re.compile(r"\$labels\.([A-Za-z_]\w*)|\.Labels\.([A-Za-z_]\w*)")
_GIVEN = frozenset({"labels", "externalLabels", "externalURL", "value"})
_SETS = frozenset({"and", "unless"})
_COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})


def texts(graph: Graph) -> Iterator[Finding]:
    """PQL401, PQL402: a label that the alert's series do not have, and a variable that no template gets."""
    for written in queries(graph):
        if written.role != "alert":
            continue
        added = mapping(written.body.get("labels"))
        said = [text(value) for part in ("annotations", "labels") for value in mapping(written.body.get(part)).values()]
        whole = "\n".join(said)
        if "{{" not in whole:
            continue
        declared = {name for match in _DECLARED.finditer(whole) for name in match.groups() if name}
        inside = [action for each in said for action in _ACTION.findall(each)]
        used = dict.fromkeys(name for action in inside for name in _VARIABLE.findall(action))
        for name in used:
            if name not in _GIVEN and name not in declared:
                message = f"no template has a variable ${name}: Prometheus refuses the rule"
                close = "labels" if name.startswith("label") else "value" if name.startswith("val") else ""
                yield fault(
                    "PQL402", written, message, f"${close}" if close else f"one of ${', $'.join(sorted(_GIVEN))}"
                )
        labels = _labels(written.tree) if written.tree else None
        named = dict.fromkeys(one or two for action in inside for one, two in _LABEL.findall(action))
        for label in named:
            if labels is not None and label not in labels and label not in added and label != "alertname":
                message = f"the alert has no label {label}, which its text shows: the expression adds it up away"
                yield doubt("PQL401", written, message, f"by (…, {label}), or another text")


_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/', re.DOTALL)
_CALLED = re.compile(r"(?<![\w$.])[A-Za-z_]\w*")


def functions(graph: Graph) -> Iterator[Finding]:
    """PQL402: a function that no template has."""
    there = table("languages")["alerts"]
    for written in queries(graph):
        said = [
            text(value)
            for part in ("annotations", "labels")
            for value in mapping(written.body.get(part)).values()
            if written.role == "alert"
        ]
        called = [
            name for each in said for action in _ACTION.findall(each) for name in _CALLED.findall(_TEXT.sub("", action))
        ]
        for name in dict.fromkeys(called):
            if name not in there:
                near = get_close_matches(name, there, 1)
                message = f"no template has a function {name}: Prometheus refuses the rule"
                yield fault("PQL402", written, message, f"did you mean {near[0]}?" if near else "leave it out")


_KEEP = {
    "histogram_quantile": 1, "abs": 0, "ceil": 0, "floor": 0, "round": 0, "clamp": 0, "clamp_min": 0, "clamp_max": 0,
    "sort": 0, "sort_desc": 0,
}  # fmt: skip
"""Functions that keep the labels of an argument, and of which; a quantile takes `le` away."""


def _labels(tree: Node) -> frozenset[str] | None:
    """The labels of a query's series where it names them all; None where it does not."""
    if isinstance(tree, Aggregate):
        if tree.op in ("topk", "bottomk", "limitk", "limit_ratio"):
            return None
        extra = None if tree.without is not None else frozenset(tree.by or ())
        return extra if tree.op != "count_values" else None
    if isinstance(tree, Call) and len(tree.args) > _KEEP.get(tree.function, len(tree.args)):
        found = _labels(tree.args[_KEEP[tree.function]])
        return found - {"le"} if found is not None and tree.function == "histogram_quantile" else found
    if isinstance(tree, Binary):
        left, right = _labels(tree.left), _labels(tree.right)
        if tree.op in _SETS or (tree.op in _COMPARISONS and not tree.grouped):
            return left
        if tree.op == "or":
            return left | right if left is not None and right is not None else None
        if tree.grouped or tree.on is not None or tree.ignoring is not None:
            return None
        return left if left is not None else None
    return None


RULES = (texts, functions)
TREE = ()
