"""Changes as edits of objects: what `explain` proposes, done to the bodies of a world, and the same by one less."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace

import yaml

from blueprint.admission.amounts import amount, quantity, shown
from blueprint.admission.change import Change
from tests.conformance.kueue.worlds import Body, Made

_NUMBER = re.compile(r"(nominalQuota|borrowingLimit|lendingLimit) of (\S+) on flavor (\S+)")


def edited(made: Made, change: Change) -> Made:
    """The world with the change made."""
    bodies = copy.deepcopy([*made.objects, *made.workloads])
    ref = change.object
    (body,) = (b for b in bodies if (b["kind"], b["metadata"]["name"]) == (ref.kind, ref.name))
    if number := _NUMBER.fullmatch(change.field):
        field, resource, flavor = number.groups()
        for row in _rows(body, flavor, resource):
            row[field] = change.after
    elif change.field.startswith("metadata.labels["):
        body["metadata"].setdefault("labels", {})[change.field[len("metadata.labels[") : -1]] = change.after
    elif change.field == "spec.tolerations":
        body["spec"].setdefault("tolerations", []).append(yaml.safe_load(change.after.removeprefix("+ ")))
    elif change.field.startswith("spec."):
        body["spec"][change.field.removeprefix("spec.")] = yaml.safe_load(change.after)
    else:
        what, name = change.field.split(" of ")
        (pods,) = (each for each in body["spec"]["podSets"] if each["name"] == name)
        _soften(pods, what, change)
    count = len(made.objects)
    return Made(made.seed, bodies[:count], bodies[count:])


def _soften(pods: Body, what: str, change: Change) -> None:
    match what:
        case "pods":
            pods["count"] = int(change.after)
        case "topology":
            pods["topologyRequest"]["preferred"] = pods["topologyRequest"].pop("required")
        case "slices":
            for field in ("podSetSliceRequiredTopology", "podSetSliceSize"):
                pods["topologyRequest"].pop(field, None)
        case _:
            raise AssertionError(change.words)


def _rows(body: Body, flavor: str, resource: str) -> Iterator[Body]:
    for group in body["spec"].get("resourceGroups", ()):
        for each in group["flavors"]:
            if each["name"] == flavor:
                yield from (row for row in each["resources"] if row["name"] == resource)


def one_less(change: Change) -> Change | None:
    """The same lever moved by one unit of Kueue's less, None where that is no change, or there is no number."""
    if number := _NUMBER.fullmatch(change.field):
        resource = number[2]
        before, after = (
            amount(resource, value) for text in (change.before, change.after) if (value := quantity(text)) is not None
        )
        return replace(change, after=shown(resource, after - 1)) if after - 1 > before else None
    if change.field.startswith("pods of "):
        more = int(change.after) + 1
        return replace(change, after=str(more)) if more < int(change.before) else None
    return None
