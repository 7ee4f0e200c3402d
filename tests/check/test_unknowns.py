"""Findings about objects with unknown fields hold whatever will stand there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from blueprint.check.unknowns import bare, of_all, of_one
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.objects import EVERYTHING, Manifest, Steps


def queue(unknown: Iterable[Steps] = (), file: str = "a.yaml", **spec: object) -> Manifest:
    body = {"apiVersion": "v1", "kind": "Queue", "metadata": {"name": file}, "spec": dict(spec)}
    return Manifest(body, Source(file, 1), frozenset(unknown))


def too_many(manifest: Manifest) -> list[Finding]:
    """Finds that `a` and `b` together are more than ten; of a text it knows no number."""
    spec = manifest.body.get("spec", {})
    total = sum(99 if isinstance(spec.get(key), str) else spec.get(key, 0) for key in ("a", "b"))
    found = [Finding("SIZ101", "too many", manifest.source, object=manifest.ref, path="spec")] if total > 10 else []
    return found + [Finding("SCH104", "unknown field", path=f"spec.{key}") for key in spec if key == "c"]


def test_what_depends_on_the_unknown_is_not_told() -> None:
    assert of_one(queue(a="${A}", b=1), too_many)
    assert not of_one(queue([("spec", "a")], a="${A}", b=1), too_many)
    assert of_one(queue([("spec", "a")], a="${A}", b=11), too_many)


def test_a_field_that_does_not_exist_is_told_whatever_its_value() -> None:
    assert [f.code for f in of_one(queue([("spec", "c")], c="${C}"), too_many)] == ["SCH104"]
    assert not of_one(queue([("spec",)], c="${C}"), too_many)


def test_of_a_draft_nothing_is_certain_and_what_is_missing_may_still_come() -> None:
    draft = replace(queue(a=99), draft=True)

    def both(manifest: Manifest) -> list[Finding]:
        return [*too_many(manifest), Finding("SCH105", "`b` is required", manifest.source, path="spec.b")]

    assert [(f.code, f.severity, f.confidence) for f in of_one(draft, both)] == [
        ("SIZ101", Severity.ERROR, Confidence.LIKELY),
        ("SCH105", Severity.WARNING, Confidence.LIKELY),
    ]


def test_of_an_object_of_which_nothing_is_known_nothing_is_told() -> None:
    assert not of_one(queue(EVERYTHING, a=99, c=1), too_many)
    assert bare(queue(EVERYTHING, a=99)).body == {"apiVersion": "v1", "kind": "Queue", "metadata": {"name": "a.yaml"}}


def test_leaving_out_keeps_identity_and_places() -> None:
    unknown = [("metadata", "name"), ("spec", "a"), ("spec", "list", 0), ("spec", "list", 1, "x")]
    left = bare(queue(unknown, a="${A}", list=["${B}", {"x": "${C}", "y": 1}]))
    assert left.body["metadata"] == {"name": "a.yaml"}
    assert left.body["spec"] == {"list": ["${B}", {"y": 1}]}
    assert bare(queue(a=1)).body["spec"] == {"a": 1}


def all_together(manifests: Sequence[Manifest]) -> Iterable[Finding]:
    """Finds each object that is more than ten with all others."""
    specs = [manifest.body.get("spec", {}) for manifest in manifests]
    total = sum(99 if isinstance(spec.get("a"), str) else spec.get("a", 0) for spec in specs)
    if total > 10:
        yield from (Finding("SIZ101", f"{total}", m.source, object=m.ref, path="spec.b") for m in manifests)


def test_findings_across_objects_hold_too() -> None:
    known, unknown = queue(a=4), queue([("spec", "a")], "b.yaml", a="${A}")
    assert len(of_all([known, queue(a="x", file="b.yaml")], all_together)) == 2
    assert of_all([known, unknown], all_together) == []
    assert len(of_all([queue(a=11), unknown], all_together)) == 2
    partial = queue(EVERYTHING, "b.yaml", a=1)
    assert [f.source for f in of_all([queue(a=11), partial], all_together)] == [Source("a.yaml", 1)]


def test_a_draft_is_judged_by_itself_alone() -> None:
    draft = replace(queue(a=11), draft=True)
    assert of_one(draft, too_many)
    assert of_all([draft], all_together) == []
    assert of_all([queue(a=11), replace(queue(a=1, file="b.yaml"), draft=True)], all_together) != []
