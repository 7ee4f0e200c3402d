"""Ask the checker and a real API server about the same broken objects, and sort what they disagree about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from blueprint.catalog.schemas import Kind
from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.mutate import Label, Mutation, mutations
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

UNKNOWN_KIND = "SCH101"
_AT_ONCE = 4


class Judge(Protocol):
    """Our side: what would be refused when an object is created, or when it replaces another."""

    def create(self, manifest: Manifest) -> list[Finding]:
        """Findings about a new object."""

    def update(self, new: Manifest, old: Manifest) -> list[Finding]:
        """Findings about a change."""


class Layer(StrEnum):
    """Which part of a server refused, told by its words."""

    ACCEPTED = "accepted"
    DECODE = "decode"
    SCHEMA = "schema"
    LIST = "list"
    CEL = "cel"
    NAME = "name"
    NATIVE = "native"
    SCOPE = "scope"
    VERSION = "version"
    ADMISSION = "admission"


@dataclass(frozen=True, slots=True)
class Case:
    """One mutation and both verdicts."""

    kind: Kind
    mutation: Mutation
    findings: tuple[Finding, ...]
    answer: Answer
    layer: Layer

    @property
    def unknown(self) -> bool:
        """We say that we do not know the kind, which is no verdict."""
        return any(finding.code == UNKNOWN_KIND for finding in self.findings)

    @property
    def lax(self) -> bool:
        """We say nothing that fails a run, the server refuses."""
        return not (self.answer.ok or self.unknown or any(finding.fails for finding in self.findings))

    @property
    def strict(self) -> bool:
        """We are certain of an error, the server accepts. A guess that is called likely is no disagreement."""
        return self.answer.ok and any(
            f.severity is Severity.ERROR and f.confidence is Confidence.CERTAIN for f in self.findings
        )

    @property
    def classed(self) -> tuple[str, Layer, Label, str]:
        """The class of a disagreement: direction, layer of the server, what was done, kind of object."""
        return ("lax" if self.lax else "strict", self.layer, self.mutation.label, self.kind.kind)

    def __str__(self) -> str:
        said = "; ".join(f"{f.code} {f.path}: {f.message}" for f in self.findings if f.fails) or "nothing"
        server = "accepts" if self.answer.ok else f"refuses ({self.layer}): {self.answer.message[:300]}"
        where = f"{self.kind.api_version} {self.kind.kind}"
        return f"{where} {self.mutation}\n    server {server}\n    we say {said}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Every case; `spoilt` names objects that could not be mutated, because one side refuses them whole, and why."""

    cases: tuple[Case, ...]
    spoilt: tuple[str, ...]

    @property
    def disagreements(self) -> list[Case]:
        """The cases in which the verdicts differ."""
        return [case for case in self.cases if case.lax or case.strict]

    def classes(self) -> Counter[tuple[str, Layer, Label, str]]:
        """How many disagreements of each class."""
        return Counter(case.classed for case in self.disagreements)

    def verdicts(self) -> Counter[tuple[Label, Layer]]:
        """How often the server answered with each layer to each kind of mutation."""
        return Counter((case.mutation.label, case.layer) for case in self.cases)


def agreement(
    objects: Iterable[tuple[Manifest, Kind]], judge: Judge, client: Client, *, seed: int, each: int
) -> Agreement:
    """Mutate every object, ask both sides, compare.

    Creations are dry runs; their namespaces must exist, the objects must not. One with immutable fields is applied
    for the time of its updates, which are server-side applies as a GitOps tool sends them, dry run.
    """
    cases: list[Case] = []
    spoilt: list[str] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for manifest, kind in objects:
            if trouble := _trouble(manifest, judge, client):
                spoilt.append(f"{manifest.ref}: {trouble}")
                continue
            drawn = mutations(manifest.body, kind, seed=seed, each=each)
            target = Target.of(manifest.body)
            creations = [mutation for mutation in drawn if not mutation.update]
            answers = pool.map(lambda m, at=target: client.create(m.body, at=_place(m, at), dry_run=True), creations)
            for mutation, answer in zip(creations, answers, strict=True):
                findings = judge.create(Manifest(mutation.body, manifest.source))
                cases.append(_case(kind, mutation, findings, answer))
            updates = [mutation for mutation in drawn if mutation.update]
            if updates:
                found, trouble = _updates(manifest, kind, updates, judge, client)
                cases += found
                spoilt += [f"{manifest.ref}: {trouble}"] if trouble else []
    return Agreement(tuple(cases), tuple(spoilt))


def layer(answer: Answer, kind: Kind) -> Layer:
    """Which layer an answer comes from.

    The words are those of k8s.io/apiserver@v0.35.4 pkg/endpoints/handlers, k8s.io/apimachinery@v0.35.4
    pkg/api/validation and k8s.io/apiextensions-apiserver@v0.35.4 pkg/registry/customresource and pkg/apiserver/schema.
    """
    if answer.ok:
        return Layer.ACCEPTED
    message, causes = answer.message, answer.causes
    if answer.status == 404 or "does not match the expected API version" in message or "no kind" in message:
        return Layer.VERSION
    if "the namespace of the provided object" in message or "Object 'Kind' is missing" in message:
        return Layer.SCOPE
    if answer.status == 403:
        return Layer.ADMISSION
    if answer.status == 400:
        return Layer.DECODE
    fields = [cause.get("field", "") for cause in causes]
    if any(field.startswith("metadata") for field in fields) or "metadata.name" in message:
        return Layer.NAME
    if any(cause.get("reason") == "FieldValueDuplicate" for cause in causes):
        return Layer.LIST
    if kind.core:
        return Layer.NATIVE
    ours = {rule.message for rule in kind.rules} | {rule.rule for rule in kind.rules}
    for cause in causes:
        words = cause.get("message", "")
        if "failed rule" in words or any(said and said in words for said in ours) or "no such key" in words:
            return Layer.CEL
    return Layer.SCHEMA


def _place(mutation: Mutation, whole: Target) -> Target:
    """Where a client would send it: to the version, kind and namespace that it names, else to where the whole goes."""
    return Target.of(mutation.body) if mutation.label is Label.SCOPE else whole


def _case(kind: Kind, mutation: Mutation, findings: Sequence[Finding], answer: Answer) -> Case:
    return Case(kind, mutation, tuple(findings), answer, layer(answer, kind))


def _trouble(manifest: Manifest, judge: Judge, client: Client) -> str:
    """Why the whole object is no ground to stand on, "" if both sides take it."""
    answer = client.create(manifest.body, dry_run=True)
    if not answer.ok:
        return f"the server refuses it whole: {answer.message}"
    failing = [finding for finding in judge.create(manifest) if finding.fails]
    return f"we refuse it whole: {failing[0].code} {failing[0].path} {failing[0].message}" if failing else ""


def _updates(
    manifest: Manifest, kind: Kind, updates: Sequence[Mutation], judge: Judge, client: Client
) -> tuple[list[Case], str]:
    """Apply the object, try each change against it as a second apply, delete it."""
    target = Target.of(manifest.body)
    applied = client.apply(manifest.body)
    if not applied.ok:
        return [], f"cannot be applied: {applied.message}"
    try:
        cases = []
        for mutation in updates:
            answer = client.apply(mutation.body, at=target, dry_run=True)
            findings = judge.update(Manifest(mutation.body, manifest.source), manifest)
            cases.append(_case(kind, mutation, findings, answer))
        return cases, ""
    finally:
        client.delete(target)
