"""A decision for people and for programs: the path of the job, what binds, and the smallest change.

The JSON is a contract: `explain.schema.json` beside this file describes version 1, within which fields are only added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from blueprint.admission.amounts import shown
from blueprint.admission.change import Change
from blueprint.admission.decide import Decision, PodSetPlan
from blueprint.admission.reasons import Limit, Reason, Verdict
from blueprint.finding import Ref

VERSION = 1


def document(decision: Decision, change: Change | None) -> dict[str, Any]:
    """The decision as plain JSON values."""
    way = decision.way
    return {
        "schema": VERSION,
        "object": _ref(decision.job),
        "kueueVersion": decision.kueue,
        "admissible": decision.admissible,
        "words": decision.words,
        "path": {
            "localQueue": _ref(way.local_queue),
            "clusterQueue": _ref(way.cluster_queue),
            "cohorts": list(way.cohorts),
        },
        "copies": {"asked": decision.copies, "admitted": decision.admitted},
        "podsets": [
            {
                "name": plan.name,
                "count": plan.count,
                "requests": {name: shown(name, value * plan.count) for name, value in sorted(plan.charge.items())},
            }
            for plan in decision.podsets
        ],
        "assignment": [
            {"podset": plan.name, "resource": resource, "flavor": flavor}
            for plan in decision.podsets
            for resource, flavor in sorted(plan.flavors.items())
        ],
        "topology": [
            {
                "podset": plan.name,
                "levels": list(plan.levels),
                "domains": [{"values": list(values), "pods": count} for values, count in plan.spread],
            }
            for plan in decision.podsets
            if plan.spread is not None
        ],
        "attempts": decision.attempts,
        "reasons": [_reason(reason) for reason in decision.reasons],
        "smallestChange": _change(change),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`."""
    loaded: dict[str, Any] = json.loads((resources.files("blueprint.admission") / "explain.schema.json").read_text())
    return loaded


def _ref(ref: Ref | None) -> dict[str, str] | None:
    if ref is None:
        return None
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "kind": reason.kind.value,
        "verdict": reason.verdict.value,
        "message": reason.message,
        "podset": reason.podset or None,
        "flavor": reason.flavor or None,
        "resource": reason.resource or None,
        "limit": _limit(reason.limit),
        "object": _ref(reason.object),
    }


def _limit(limit: Limit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    value = None if limit.value is None else shown(limit.resource, limit.value)
    return {"field": limit.field, "object": _ref(limit.object), "value": value}


def _change(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return {
        "object": _ref(change.object),
        "field": change.field,
        "before": change.before or None,
        "after": change.after,
        "words": change.words,
    }


def text(decision: Decision, change: Change | None) -> str:
    """The decision as a few lines; ends with a newline."""
    return "\n".join(_lines(decision, change)) + "\n"


def _lines(decision: Decision, change: Change | None) -> Iterator[str]:
    ref, way = decision.job, decision.way
    yield f"{ref} {decision.words}"
    for plan in decision.podsets:
        total = ", ".join(f"{shown(name, value * plan.count)} {name}" for name, value in sorted(plan.charge.items()))
        copies = f", {decision.copies} times" if decision.copies > 1 else ""
        yield f"  asks    {plan.name}: {plan.count} pods{copies}: {total or 'nothing'}"
    steps = [
        f"LocalQueue {way.local_queue.namespace}/{way.local_queue.name}" if way.local_queue else "",
        f"ClusterQueue {way.cluster_queue.name}" if way.cluster_queue else "",
        *(f"cohort {name}" for name in way.cohorts),
    ]
    if any(steps):
        yield "  path    " + " → ".join(step for step in steps if step)
    if decision.admissible is not False:
        for plan in decision.podsets:
            yield from _plan(plan)
    for reason in decision.reasons:
        yield from _said(reason)
    if decision.admissible is False:
        yield f"  smallest change: {change.words if change else 'no single number or line is enough'}"


def _plan(plan: PodSetPlan) -> Iterator[str]:
    by_flavor: dict[str, list[str]] = {}
    for resource, flavor in sorted(plan.flavors.items()):
        by_flavor.setdefault(flavor, []).append(resource)
    for flavor, names in by_flavor.items():
        yield f"  flavor  {plan.name}: {flavor} ({', '.join(names)})"
    if plan.spread is not None:
        places = ", ".join(f"{'/'.join(values)} × {count}" for values, count in plan.spread[:12])
        more = f" and {len(plan.spread) - 12} more" if len(plan.spread) > 12 else ""
        yield f"  nodes   {plan.name}: {places}{more}"


_LEAD = {Verdict.NEVER: "refused", Verdict.UNKNOWN: "unknown", Verdict.NOTE: "note"}


def _said(reason: Reason) -> Iterator[str]:
    where = f"{reason.podset}: " if reason.podset else ""
    yield f"  {_LEAD[reason.verdict]:<7} {reason.code} {where}{reason.message}"
    limit = reason.limit
    if limit is not None:
        value = "none" if limit.value is None else shown(limit.resource, limit.value)
        yield f"          binds: {limit.field} {value} of {limit.object.kind} {limit.object.name}"
