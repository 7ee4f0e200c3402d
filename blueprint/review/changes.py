"""One pair of objects to statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from blueprint.check import Validator
from blueprint.check.applications import sync_options
from blueprint.check.shapes import mapping
from blueprint.finding import Finding
from blueprint.objects import Manifest
from blueprint.review import access, lost, serving
from blueprint.review.around import Around
from blueprint.review.arrivals import opened_by
from blueprint.review.diff import MISSING, Difference, Edit, Item, diff
from blueprint.review.form import form, lists, secret
from blueprint.review.model import Pair, Risk, Statement
from blueprint.review.pairs import called
from blueprint.review.risks import (
    field,
    item,
    later,
    leaves,
    path_of,
    row_for,
    rule_for,
    said,
    stated,
    written,
)
from blueprint.review.special import CODES, Case
from blueprint.review.words import shown

_HASHED = ("Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Rollout.argoproj.io")
"""Kinds whose pods are made anew when anything in the template differs, the order of a list, too.

Source: k8s.io/kubernetes v1.35.4 pkg/controller/deployment/util/deployment_util.go EqualIgnoreHash.
"""


class Judge:
    """Turns pairs into statements; keeps what is compiled for all of them."""

    def __init__(self, around: Around) -> None:
        self.around = around
        self._validator = Validator(around.pack, rules=())

    def statements(self, pair: Pair) -> list[Statement]:
        """Everything that happens to one object; empty where its meaning is the same."""
        if pair.old is None:
            return [self._added(pair), *serving.arrived(pair), *opened_by(pair, self.around)]
        if pair.new is None:
            return list(self._removed(pair))
        found = self._renamed(pair) if pair.renamed else list(self._changed(pair))
        return list(dict.fromkeys(found))

    def difference(self, pair: Pair) -> Difference:
        """What differs in the one form of both objects."""
        assert pair.old is not None and pair.new is not None  # noqa: S101 - asked of changed objects alone
        kinds = [self.around.pack.kind(each.api_version, each.kind) for each in (pair.old, pair.new)]
        old, new = form(pair.old, kinds[0]), form(pair.new, kinds[1])
        if pair.old.api_version != pair.new.api_version and kinds[0] is not None and kinds[1] is not None:
            old = _translated(old, new)
        return diff(old, new, lists(kinds[1], pair.new, self.around.pack))

    def _added(self, pair: Pair) -> Statement:
        row = row_for(pair.ref.kind_name, "added")
        if row is None:
            return stated(pair, Risk.UNKNOWN, "added", f"new: nothing is known of what a {pair.ref.kind} does")
        words = row["say"]
        if "{rights}" in words:
            told = access.rights(pair, None, self.around)
            words = words.format(rights=told[1] if told else "")
        if "{selected}" in words:
            names, pods = self._selected(pair)
            words = words.format(selected=f"{pods} pods of {', '.join(names[:2])} are" if names else "objects are")
        words = words.replace("{asks}", lost.asks(pair.there))
        return stated(pair, Risk[row["class"].upper()], "added", words, source=row.get("source", ""))

    def _selected(self, pair: Pair) -> tuple[list[str], int]:
        selector = mapping(pair.there.body.get("spec")).get("podSelector")
        return self.around.selected(pair.cluster, pair.ref.namespace, selector)

    def _removed(self, pair: Pair) -> Iterator[Statement]:
        assert pair.old is not None  # noqa: S101 - it is the side that is there
        kept = sync_options(pair.old) & {"Prune=false"}
        row = row_for(pair.ref.kind_name, "removed")
        if kept:
            yield stated(pair, Risk.NONE, "removed", "removed from Git, and stays in the cluster: Prune=false")
            return
        if row is None:
            words = f"removed: nothing is known of what the loss of a {pair.ref.kind} means"
            yield stated(pair, Risk.UNKNOWN, "removed", words)
            return
        risk = Risk[row["class"].upper()]
        words, risk = lost.told(pair, row["say"], risk, self.around)
        if "Prune=confirm" in sync_options(pair.old):
            words += " (Argo CD asks first: Prune=confirm)"
        yield stated(pair, risk, "removed", words, source=row.get("source", ""))

    def _renamed(self, pair: Pair) -> list[Statement]:
        assert pair.old is not None  # noqa: S101 - a renamed object has both
        row = row_for(pair.old.ref.kind_name, "removed")
        risk = Risk[row["class"].upper()] if row else Risk.UNKNOWN
        old, new = pair.old.ref, pair.ref
        if old.group != new.group:
            words = f"moves from {old.group or 'the core group'} to {new.group}: deleted and made anew"
        elif old.namespace != new.namespace:
            before, after = (each.namespace or "whatever it is applied to" for each in (old, new))
            words = f"moves from namespace {before} to {after}: deleted and made anew"
        else:
            words = f"renamed from {old.name}: deleted and made anew"
        if row and risk is Risk.DESTRUCTIVE:
            words += f"; {lost.told(Pair(pair.cluster, pair.old, None), row['say'], risk, self.around)[0]}"
        return [stated(pair, risk, "renamed", words.replace("; removed: ", "; ")), *self._besides(pair)]

    def _besides(self, pair: Pair) -> Iterator[Statement]:
        """What changes together with the name: a new name must not hide it."""
        assert pair.old is not None and pair.new is not None  # noqa: S101 - a renamed object has both
        if pair.old.ref.group != pair.new.ref.group:
            return
        served = serving.told(pair)
        yield from served.statements
        for edit in self.difference(replace(pair, old=called(pair.old, pair.new))).edits:
            for statement in self._edit(pair, pair.ref.kind_name, served.hidden(edit)):
                if statement.risk is not Risk.NONE:
                    yield statement

    def _changed(self, pair: Pair) -> Iterator[Statement]:
        assert pair.old is not None and pair.new is not None  # noqa: S101 - asked of changed objects alone
        difference = self.difference(pair)
        edited = [written(edit) for edit in difference.edits]
        for finding in self._refused(pair):
            judged = finding.fails and finding.code != "SCH115"
            if not judged and not any(path.startswith(finding.path) for path in edited):
                continue  # what differs is what the server fills in
            words = f"the API server refuses the update: {finding.path or finding.code} {_because(finding)}"
            yield stated(pair, Risk.DESTRUCTIVE, "immutable", words, path=finding.path, source=finding.code)
        kind = pair.ref.kind_name
        served = serving.told(pair)
        yield from served.statements
        for edit in difference.edits:
            if not served.explains(edit):
                yield from self._edit(pair, kind, served.hidden(edit))
        if difference.reordered and not difference.edits:
            yield from self._reordered(pair, kind, difference)
        yield from lost.moved(pair, self.around)

    def _edit(self, pair: Pair, kind: str, edit: Edit) -> Iterator[Statement]:
        first = self._judged(pair, kind, edit)
        said = {first.rule: first.risk.rank}
        louder: list[Statement] = []
        for leaf in leaves(edit):
            statement = self._judged(pair, kind, leaf)
            rank = statement.risk.rank
            if rank > first.risk.rank and rank > said.get(statement.rule, -1):
                said[statement.rule] = rank
                louder.append(statement)
        if first.risk is not Risk.NONE or not louder:
            yield first
        yield from louder

    def _judged(self, pair: Pair, kind: str, edit: Edit) -> Statement:
        path = path_of(kind, edit)
        rule = rule_for(kind, edit)
        if rule is None:
            words = f"{written(edit)}: {_plainly(edit)}"
            return stated(pair, Risk.UNKNOWN, "no-row", words, path=written(edit))
        if rule.code:
            told = CODES[rule.code](Case(pair, edit, self.around))
            if told is not None:
                risk, words = told
                words += later(pair, path) if risk is Risk.RESTART else ""
                return stated(pair, risk, rule.id, words, path=written(edit), source=rule.source)
        words = said(rule, edit) if rule.say else f"{field(edit)} {_plainly(edit)}"
        if rule.id == "resources":
            words = f"{item(edit)}: {_resource(edit)} {_plainly(edit)}".removeprefix(": ")
        elif rule.id == "pod" and edit.steps and isinstance(edit.steps[-1], Item):
            words = f"{path.split('.')[-2]} {item(edit)} {'comes' if edit.before is MISSING else 'goes'}"
        words += later(pair, path) if rule.risk is Risk.RESTART else ""
        return stated(pair, rule.risk, rule.id, words, path=written(edit), source=rule.source)

    def _reordered(self, pair: Pair, kind: str, difference: Difference) -> Iterator[Statement]:
        if kind not in _HASHED:
            return
        inside = [steps for steps in difference.reordered if path_of(kind, Edit(steps, 0, 0)).startswith("pod.")]
        if inside:
            words = f"the order of {field(Edit(inside[0], 0, 0))} alone: the same pods, and all of them are made anew"
            source = "k8s.io/kubernetes v1.35.4 pkg/controller/deployment/util/deployment_util.go EqualIgnoreHash"
            yield stated(pair, Risk.RESTART, "order", words, source=source)

    def _refused(self, pair: Pair) -> list[Finding]:
        """What the server refuses about the update, and would not about a new object."""
        assert pair.old is not None and pair.new is not None  # noqa: S101 - asked of changed objects alone
        if pair.old.api_version != pair.new.api_version:
            return []
        kind = self.around.pack.kind(pair.new.api_version, pair.new.kind)
        if kind is None or not (kind.immutable or any(rule.transition for rule in kind.rules)):
            return []
        old, new = _kept(pair.old), _kept(pair.new)
        alone = {(f.code, f.path, f.message) for f in self._validator.create(new)}
        found = [f for f in self._validator.update(new, old) if f.fails or f.code == "SCH115"]
        return [f for f in found if (f.code, f.path, f.message) not in alone]


def _kept(manifest: Manifest) -> Manifest:
    """As the server keeps it: a Secret's plain words among its data."""
    return replace(manifest, body=secret(manifest.body)) if manifest.ref.kind_name == "Secret" else manifest


def _because(finding: Finding) -> str:
    return "cannot be changed; delete it and make it anew" if finding.code == "SCH115" else f"({finding.message})"


def _plainly(edit: Edit) -> str:
    return f"{shown(edit.before)} → {shown(edit.after)}"


def _resource(edit: Edit) -> str:
    """`nvidia.com/gpu` for a limit and its request: both say the same."""
    names = [step for step in edit.steps if isinstance(step, str)]
    last = names[-1] if names else ""
    return last if last not in ("resources", "limits", "requests") else f"resources.{last}".removesuffix(".resources")


def _translated(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The old body under the names of the new version, where a table of renames says so (Kueue's v1beta1)."""
    spec = mapping(old.get("spec"))
    if old.get("kind") in ("ClusterQueue",) and "cohort" in spec and "cohortName" in mapping(new.get("spec")):
        spec = {("cohortName" if name == "cohort" else name): value for name, value in spec.items()}
    if old.get("kind") == "Cohort" and "parent" in spec and "parentName" in mapping(new.get("spec")):
        spec = {("parentName" if name == "parent" else name): value for name, value in spec.items()}
    return {**old, "spec": spec} if spec else old
