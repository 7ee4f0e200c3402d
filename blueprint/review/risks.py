"""What each difference does: rows of `catalog/data/review_risks.yaml`, and code where a field alone does not say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from blueprint.catalog.crds import Json
from blueprint.catalog.tables import table
from blueprint.check.shapes import items
from blueprint.quantity import QuantityError, parse_quantity
from blueprint.review.diff import MISSING, Edit, Item, Member, Step, keyed_path, permuted, same
from blueprint.review.model import Pair, Risk, Statement
from blueprint.review.words import shown, shown_pair
from blueprint.review.workloads import aliases


@dataclass(frozen=True, slots=True)
class Rule:
    """One row for fields. `code` names the function of `special` that decides, "" where the row does."""

    id: str
    kinds: tuple[str, ...]
    path: re.Pattern[str]
    op: str
    to: tuple[Any, ...]
    came_from: tuple[Any, ...]
    more: bool
    less: bool
    risk: Risk
    code: str
    say: str
    source: str

    def about(self, kind: str) -> bool:
        """Whether the row is about objects of this kind."""
        return any(fnmatchcase(kind, pattern) for pattern in self.kinds)

    def says(self, path: str, edit: Edit) -> bool:
        """Whether the row is about this edit, of objects of its kinds."""
        if not self.path.fullmatch(path):
            return False
        if self.op and self.op not in operations(edit):
            return False
        if (self.to and edit.after not in self.to) or (self.came_from and edit.before not in self.came_from):
            return False
        return not (self.more or self.less) or _grows(edit) is self.more


def operations(edit: Edit) -> tuple[str, ...]:
    """`added`, `removed` or `changed`; beside `changed` whether named items are `reordered`, or a list `permuted`."""
    if edit.before is MISSING or edit.after is MISSING:
        return ("added" if edit.before is MISSING else "removed",)
    if not (isinstance(edit.before, list) and isinstance(edit.after, list)):
        return ("changed",)
    old, new = names(edit.before), names(edit.after)
    moved = [name for name in old if name in new] != [name for name in new if name in old]
    alone = permuted(edit.before, edit.after)
    return ("changed", *(["reordered"] if moved else []), *(["permuted"] if alone else []))


def names(value: Json) -> list[str]:
    """The names of the items of a list."""
    return [each["name"] for each in items(value) if isinstance(each, dict) and isinstance(each.get("name"), str)]


def _grows(edit: Edit) -> bool | None:
    try:
        return parse_quantity(edit.after) > parse_quantity(edit.before)
    except (QuantityError, TypeError, AttributeError):
        return None


@cache
def rules() -> tuple[Rule, ...]:
    """The rows for fields, in order."""
    return tuple(
        Rule(
            row["id"],
            tuple(row["kinds"]),
            _pattern(row["path"]),
            row.get("op", ""),
            tuple(row.get("to", ())),
            tuple(row.get("from", ())),
            row.get("more", False),
            row.get("less", False),
            Risk[row["class"].upper()],
            row.get("code", ""),
            row.get("say", ""),
            row.get("source", ""),
        )
        for row in table("review_risks")["fields"]
    )


def _pattern(glob: str) -> re.Pattern[str]:
    """`**` any steps, `*` within one step, `?` one letter."""
    out = ""
    for part in re.split(r"(\.\*\*$|\*\*\.?|\*|\?)", glob):
        words = {".**": "(?:\\..*)?", "**": ".*", "**.": "(?:.*\\.)?", "*": "[^.]*", "?": "[^.]"}
        out += words.get(part, re.escape(part))
    # A field with dots (a label, an annotation) is one step to people and several to the pattern.
    return re.compile(out.replace("annotations\\.[^.]*", "annotations\\..*").replace("labels\\.[^.]*", "labels\\..*"))


def path_of(kind: str, edit: Edit) -> str:
    """The path as the table writes it: with `pod` for the pod template."""
    path = edit.path
    for prefix, called in aliases(kind):
        if len(path) > len(prefix) and all(p in (step, "{}") for p, step in zip(prefix, path, strict=False)):
            return ".".join((*called, *path[len(prefix) :]))
    return ".".join(path)


def leaves(edit: Edit) -> Iterator[Edit]:
    """The single values of what was added or removed as a whole, be it items of a list."""
    if isinstance(edit.before, list) and isinstance(edit.after, list):
        for values, others, gone in ((edit.before, edit.after, True), (edit.after, edit.before, False)):
            for index, value in enumerate(values):
                if isinstance(value, dict) and not any(same(value, other) for other in others):
                    for steps, leaf in _leaves(value, (*edit.steps, index)):
                        yield Edit(steps, leaf, MISSING) if gone else Edit(steps, MISSING, leaf)
        return
    for side in ("before", "after"):
        value = getattr(edit, side)
        other = edit.after if side == "before" else edit.before
        if other is not MISSING or not isinstance(value, dict | list):
            continue
        for steps, leaf in _leaves(value, edit.steps):
            yield Edit(steps, leaf, MISSING) if side == "before" else Edit(steps, MISSING, leaf)


def _leaves(value: Json, steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], Json]]:
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from _leaves(child, (*steps, name))
    elif isinstance(value, list) and value:
        for index, child in enumerate(value):
            yield from _leaves(child, (*steps, index))
    else:
        yield steps, value


def rule_for(kind: str, edit: Edit) -> Rule | None:
    """The first row about an edit, None where the table does not speak of it."""
    path = path_of(kind, edit)
    return next((rule for rule in _about(kind) if rule.says(path, edit)), None)


@lru_cache(maxsize=1 << 10)
def _about(kind: str) -> tuple[Rule, ...]:
    """The rows about a kind, in order."""
    return tuple(rule for rule in rules() if rule.about(kind))


def row_for(kind: str, section: str) -> dict[str, Any] | None:
    """The row about the removal or arrival of a kind."""
    return next(
        (row for row in table("review_risks")[section] if any(fnmatchcase(kind, each) for each in row["kinds"])), None
    )


def later(pair: Pair, path: str) -> str:
    """When pods have what their template says, in brackets; "" where that is at once, or no pods are meant."""
    kind = pair.ref.kind_name
    for row in table("review_risks")["when"] if path.startswith("pod.") else ():
        if not any(fnmatchcase(kind, each) for each in row["kinds"]) or not fnmatchcase(path, row.get("path", "*")):
            continue
        if all(_at(pair.there.body, where) == value for where, value in row.get("beside", {}).items()):
            return f" ({row['say']})"
    return ""


def _at(body: Json, path: str) -> Json:
    for step in path.split("."):
        body = body.get(step) if isinstance(body, dict) else None
    return body


def stated(pair: Pair, risk: Risk, rule: str, words: str, *, path: str = "", source: str = "") -> Statement:
    """A statement about an object."""
    old, new = (manifest.source if manifest else None for manifest in (pair.old, pair.new))
    return Statement(risk, rule, words, pair.ref, pair.cluster, path, source, old, new)


def said(rule: Rule, edit: Edit) -> str:
    """The words of a row about an edit."""
    before, after = shown_pair(edit)
    order = ", ".join(names(edit.after)) or shown(edit.after)
    return rule.say.format(field=field(edit), before=before, after=after, item=item(edit), order=order)


def field(edit: Edit) -> str:
    """The field in words: names after the innermost item, at most three."""
    steps: list[str] = []
    for step in edit.steps:
        steps = [*steps, step] if isinstance(step, str) else []
    if not steps:
        steps = [step for step in edit.steps if isinstance(step, str)][-1:]
    dropped = {"spec", "template", "metadata", "labels", "annotations"} if len(steps) > 1 else set()
    kept = [name for name in steps if name not in dropped] or steps
    return ".".join(kept[-3:])


def item(edit: Edit) -> str:
    """The innermost named item on the way, "" where there is none."""
    for step in reversed(edit.steps):
        if isinstance(step, Item):
            return " ".join(str(value) for _, value in step.keys)
        if isinstance(step, Member):
            return shown(step.value)
    return ""


def written(edit: Edit) -> str:
    """The path of an edit as fields are written elsewhere, with the key of an item in brackets."""
    return keyed_path(edit.steps)
