"""How Argo CD syncs one Application: the order in which it writes, and what each wave waits for.

A model of gitops-engine v3.6.1 (pkg/sync/sync_tasks.go, sync_context.go, pkg/sync/syncwaves, pkg/sync/hook). It reads
plain objects with their annotations, so it says the same about a rendered tree and about anybody's manifests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

from blueprint.catalog.argocd import sync_rank
from blueprint.catalog.gating import Gate, Gates, stalls
from blueprint.finding import Ref
from blueprint.objects import Manifest

WAVE = "argocd.argoproj.io/sync-wave"
HOOK = "argocd.argoproj.io/hook"
SECONDS_BETWEEN_WAVES = 2
"""argo-cd v3.6.1 controller/sync.go delayBetweenSyncWaves: after each wave but the last."""

_PHASES = {"PreSync": -1, "Sync": 0, "PostSync": 1, "SyncFail": 2}
_HELM_PHASES = {
    "pre-install": "PreSync",
    "pre-upgrade": "PreSync",
    "post-install": "PostSync",
    "post-upgrade": "PostSync",
}
_NUMBER = re.compile(r"[+-]?[0-9]+")


class Verdict(StrEnum):
    """What one wave means for the next one."""

    GATES = "gates"  # the next wave starts when every object of this one is healthy or has nothing to wait for
    OPEN = "does not gate"  # at least one object counts as done the moment it is stored
    HANGS = "can hang"  # at least one object may never become Healthy by itself
    NOT_AWAITED = "not awaited"  # the last one, and no hook in it: the sync succeeds without looking at health


@dataclass(frozen=True, slots=True)
class Step:
    """One wave of a sync, its objects in the order in which they are written, and why the verdict is not `gates`."""

    phase: str
    wave: int
    objects: tuple[Manifest, ...]
    verdict: Verdict
    reasons: tuple[tuple[Ref, str], ...] = ()


def parse_wave(text: object) -> int | None:
    """A wave as Argo CD reads it (Go's strconv.Atoi); None where it silently falls back to another value."""
    if not isinstance(text, str) or not _NUMBER.fullmatch(text) or not text.isascii():
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def wave(body: Mapping[str, Any]) -> int:
    """The wave of an object: its annotation, else Helm's hook weight, else 0."""
    notes = _annotations(body)
    for key in (WAVE, "helm.sh/hook-weight"):
        number = parse_wave(notes.get(key))
        if number is not None:
            return number
    return 0


def simulate(
    manifests: Iterable[Manifest],
    gates: Gates,
    *,
    namespace: str = "",
    stalled: Callable[[Manifest], str] = stalls,
) -> tuple[Step, ...]:
    """The waves of a first sync of one Application, in order.

    `namespace` is the destination's; `stalled` says why an object may never become Healthy by itself ("" where it
    will). Two objects of the same phase, wave, kind and name have no defined order in Argo CD; here the namespace
    decides.
    """
    tasks = sorted(_tasks(manifests, namespace), key=_Task.key)
    tasks = _before_users(tasks, _namespace_made, lambda task: task.namespace)
    tasks = _before_users(tasks, _kind_made, lambda task: task.group_kind)
    waves = [(phase, number, list(group)) for (phase, number), group in groupby(tasks, key=lambda t: (t.phase, t.wave))]
    # SyncFail tasks only run when something failed: they are no step of a sync that goes well.
    waves = [entry for entry in waves if entry[0] != "SyncFail"]
    return tuple(
        _step(phase, number, group, gates, stalled, last=index == len(waves) - 1)
        for index, (phase, number, group) in enumerate(waves)
    )


def floor_seconds(steps: Sequence[Step]) -> int:
    """The shortest time that a sync of these steps can take, in seconds: the pause after each wave but the last."""
    return SECONDS_BETWEEN_WAVES * max(0, len(steps) - 1)


@dataclass(slots=True)
class _Task:
    manifest: Manifest
    phase: str
    wave: int
    hook: bool
    group_kind: str
    namespace: str
    name: str

    def key(self) -> tuple[int, int, int, str, str]:
        return _PHASES[self.phase], self.wave, sync_rank(self.manifest.kind), self.name, self.namespace


def _annotations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = body.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    return notes if isinstance(notes, dict) else {}


def _csv(value: object) -> list[str]:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else []


def _phases(body: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The phases in which an object is written, and whether it is a hook (pkg/sync/hook, sync_phase.go)."""
    notes = _annotations(body)
    helm = _csv(notes.get("helm.sh/hook"))
    kinds = [kind for kind in _csv(notes.get(HOOK)) if kind in _PHASES or kind == "Skip"]
    kinds = list(dict.fromkeys(kinds or [_HELM_PHASES[kind] for kind in helm if kind in _HELM_PHASES]))
    if kinds == ["Skip"]:
        return (), False
    if HOOK in notes or (helm and helm != ["crd-install"]):
        return tuple(kind for kind in kinds if kind in _PHASES), True
    return ("Sync",), False


def _tasks(manifests: Iterable[Manifest], namespace: str) -> Iterator[_Task]:
    for manifest in manifests:
        ref = manifest.ref
        phases, hook = _phases(manifest.body)
        for phase in phases:
            number = wave(manifest.body)
            kind = f"{ref.group}/{ref.kind}"
            yield _Task(manifest, phase, number, hook, kind, ref.namespace or namespace, ref.name)


def _namespace_made(task: _Task) -> str:
    return task.name if task.group_kind == "/Namespace" else ""


def _kind_made(task: _Task) -> str:
    if task.group_kind != "apiextensions.k8s.io/CustomResourceDefinition":
        return ""
    spec = task.manifest.body.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    return f"{spec.get('group')}/{names.get('kind')}" if isinstance(spec, dict) and isinstance(names, dict) else ""


def _before_users(tasks: list[_Task], made: Callable[[_Task], str], used: Callable[[_Task], str]) -> list[_Task]:
    """Move each Namespace or CRD in front of its first user; it takes that user's phase and wave (adjustDeps)."""
    first: dict[str, int] = {}
    moved = list(tasks)
    for index, task in enumerate(tasks):
        key = made(task)
        if key:
            place = first.get(key)
            if place is not None:
                task.wave, task.phase = moved[place].wave, moved[place].phase
                moved.insert(place, moved.pop(index))
                first = {user: at + 1 if at >= place else at for user, at in first.items()}
        elif used(task):
            first.setdefault(used(task), index)
    return moved


def _step(
    phase: str, number: int, tasks: list[_Task], gates: Gates, stalled: Callable[[Manifest], str], *, last: bool
) -> Step:
    objects = tuple(task.manifest for task in tasks)
    if last and not any(task.hook for task in tasks):
        return Step(phase, number, objects, Verdict.NOT_AWAITED)
    hanging: list[tuple[Ref, str]] = []
    unseen: list[tuple[Ref, str]] = []
    for task in tasks:
        ref = task.manifest.ref
        gate = gates.of(ref.group, ref.kind)
        if gate is Gate.WAITS:
            reason = stalled(task.manifest)
            if reason:
                hanging.append((ref, reason))
        elif gate is not Gate.WRITTEN:
            unseen.append((ref, "Argo CD has no health check for it"))
    verdict = Verdict.HANGS if hanging else Verdict.OPEN if unseen else Verdict.GATES
    return Step(phase, number, objects, verdict, tuple(hanging or unseen))
