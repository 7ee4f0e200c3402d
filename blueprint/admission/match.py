"""Taints and tolerations, label selectors and node affinity, as Kubernetes compares them.

Source: k8s.io/api v0.35.3 core/v1/toleration.go `ToleratesTaint`; k8s.io/component-helpers v0.35.3 scheduling/corev1
(`FindMatchingUntoleratedTaint`, nodeaffinity); k8s.io/apimachinery v0.35.3 pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from blueprint.admission.body import Body, labels, mapping, rows, text, texts

HOSTNAME = "kubernetes.io/hostname"

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node or of a flavor."""

    key: str
    value: str
    effect: str

    @property
    def blocks(self) -> bool:
        """Whether pods without toleration stay away; PreferNoSchedule only ranks nodes."""
        return self.effect in ("NoSchedule", "NoExecute")

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration; "" matches every key and every effect."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it covers the taint."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt":
                mine, theirs = _number(self.value), _number(taint.value)
                if mine is None or theirs is None:
                    return False
                return theirs < mine if self.operator == "Lt" else theirs > mine
        return False


def taints(value: object, *path: str) -> tuple[Taint, ...]:
    """The taints in a list of a manifest."""
    return tuple(Taint(text(t, "key"), text(t, "value"), text(t, "effect")) for t in rows(value, *path))


def tolerations(value: object, *path: str) -> tuple[Toleration, ...]:
    """The tolerations in a list of a manifest."""
    return tuple(
        Toleration(text(t, "key"), text(t, "operator"), text(t, "value"), text(t, "effect")) for t in rows(value, *path)
    )


def untolerated(given: Iterable[Taint], by: Collection[Toleration]) -> Taint | None:
    """The first taint that keeps the pod away, None where there is none."""
    return next((t for t in given if t.blocks and not any(each.tolerates(t) for each in by)), None)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a selector."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, given: Mapping[str, str]) -> bool:
        """Whether labels satisfy it. An absent key satisfies NotIn and DoesNotExist only."""
        value = given.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                mine = _number(value) if value is not None else None
                bound = _number(self.values[0]) if len(self.values) == 1 else None
                if mine is None or bound is None:
                    return False
                return mine > bound if self.operator == "Gt" else mine < bound
        return False


def _requirements(value: object, *path: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(text(e, "key"), text(e, "operator"), tuple(texts(e, "values"))) for e in rows(value, *path)
    )


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A metav1.LabelSelector; empty matches everything."""

    requirements: tuple[Requirement, ...]

    @classmethod
    def of(cls, value: Body) -> LabelSelector:
        """Read `matchLabels` and `matchExpressions`."""
        exact = tuple(Requirement(k, "In", (v,)) for k, v in labels(value, "matchLabels").items())
        return cls((*exact, *_requirements(value, "matchExpressions")))

    def matches(self, given: Mapping[str, str]) -> bool:
        """Whether labels satisfy all of it."""
        return all(each.matches(given) for each in self.requirements)

    def __str__(self) -> str:
        return ", ".join(f"{r.key} {r.operator} {' | '.join(r.values)}".rstrip() for r in self.requirements)


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a required node affinity: labels, and fields of the node (only its name can be asked for)."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the pods of a pod set may run: node selector, required node affinity, tolerations.

    `terms` is None without required affinity; the terms are ORed, and a list without usable terms matches no node.
    """

    selector: Mapping[str, str]
    terms: tuple[Term, ...] | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, spec: Body) -> Placement:
        """Read a pod spec."""
        required = mapping(spec, "affinity", "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
        terms = None
        if isinstance(required, dict):
            terms = tuple(
                Term(_requirements(t, "matchExpressions"), _requirements(t, "matchFields"))
                for t in rows(required, "nodeSelectorTerms")
            )
        return cls(labels(spec, "nodeSelector"), terms, tolerations(spec, "tolerations"))

    def selects(self, given: Mapping[str, str]) -> bool:
        """Whether the node selector matches a node's labels."""
        return all(given.get(key) == value for key, value in self.selector.items())

    def attracts(self, given: Mapping[str, str], node: str) -> bool:
        """Whether the required affinity admits a node of these labels and this name."""
        if self.terms is None:
            return True
        name = {"metadata.name": node}
        return any(
            all(e.matches(given) for e in term.expressions) and all(f.matches(name) for f in term.fields)
            for term in self.terms
            if term.expressions or term.fields
        )

    def accepts_flavor(self, given: Mapping[str, str], known: Collection[str]) -> bool:
        """Whether a flavor's labels satisfy selector and affinity, reduced to the keys in `known`.

        A term that says nothing of those keys leaves the affinity without effect, since terms are ORed; fields are
        not looked at. Source: kueue v0.17.0 pkg/scheduler/flavorassigner/flavorassigner.go `flavorSelector`.
        """
        if any(key in known and given.get(key) != value for key, value in self.selector.items()):
            return False
        reduced = [tuple(e for e in term.expressions if e.key in known) for term in self.terms or ()]
        return not all(reduced) or not reduced or any(all(e.matches(given) for e in term) for term in reduced)


def _number(value: str) -> int | None:
    return int(value) if _INTEGER.fullmatch(value) else None
