"""Write a tree to a cluster as Argo CD does: its order, its gates, and the health that each wave must reach."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from blueprint.catalog.gating import Gate, stalls
from blueprint.conform import health
from blueprint.conform.client import Answer, Client, NotAnswered, Target
from blueprint.conform.stage import Stage, WrongAnswerError, accepted
from blueprint.objects import Manifest
from blueprint.render.health import gates
from blueprint.sync import Step, Verdict, simulate

Body = dict[str, Any]

MANAGER = "argocd-controller"
"""The field manager of Argo CD's server-side apply (argo-cd v3.6.1 common/common.go ArgoCDSSAManager)."""

_SECONDS = 60.0
_NAMESPACES_THAT_STAND = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


@dataclass(slots=True)
class Synced:
    """What a sync came to: waves done, and kinds whose controllers were played."""

    waves: int = 0
    objects: int = 0
    awaited: int = 0
    played: set[str] = field(default_factory=set)


class Hangs(WrongAnswerError):
    """A wave does not become healthy: the next one is never written."""


def sync(stage: Stage, manifests: Sequence[Manifest], *, seconds: float = 0, provision: bool = True) -> Synced:
    """Sync one Application: each wave in Argo CD's order, then its health.

    The last wave is awaited, too, as the root awaits a whole Application. An object that may stall by design must not
    be Degraded, and nobody waits for it. `provision` plays the storage driver. One object may take `seconds`, or the
    stage's patience. Raises WrongAnswerError where the server refuses an object, Hangs naming the object
    that keeps a wave from being healthy.
    """
    done = Synced()
    checks = gates()
    for step in simulate(manifests, checks):
        for manifest in step.objects:
            _write(stage, manifest.body, provision)
        done.waves += 1
        done.objects += len(step.objects)
        for manifest in step.objects:
            ref = manifest.ref
            if checks.of(ref.group, ref.kind) is Gate.WAITS:
                _await(stage, step, manifest, done, seconds or stage.patience)
    return done


def _await(stage: Stage, step: Step, manifest: Manifest, done: Synced, seconds: float) -> None:
    target = Target.of(manifest.body)
    if stalls(manifest):
        body = stage.client.get(target).body
        verdict = health.judge(body)
        if verdict.status == "Degraded":
            raise WrongAnswerError(f"{manifest.ref} is Degraded: {verdict.message}")
        return
    if played := _play(stage, target):
        done.played.add(played)
    what = f"wave {step.wave}: {manifest.ref} to be Healthy"
    last = health.Health("Missing")

    def healthy(body: Body) -> bool:
        nonlocal last
        last = health.judge(body) if body else health.Health("Missing")
        return last.status in ("Healthy", "Degraded")

    try:
        stage.client.until(target, healthy, seconds, what)
    except NotAnswered as error:
        raise Hangs(f"{error.message}; Argo CD says {last.status} {last.message}") from None
    if last.status == "Degraded":
        raise WrongAnswerError(f"{what}: it is Degraded: {last.message}")
    done.awaited += step.verdict is not Verdict.NOT_AWAITED


def _play(stage: Stage, target: Target) -> str:
    """Play the controller of an object, if it does not run here; before that the object must not be called healthy."""
    body = stage.client.get(target).body
    found = health.stand_in(body)
    if found is None or stage.local.runs(found.component):
        return ""
    before = health.judge(body)
    if before.status == "Healthy" and not body.get("status"):
        raise WrongAnswerError(f"{target.kind} {target.name} is Healthy before any controller has seen it")
    accepted(tell(stage.client, target, found.status), f"the status of {target.name}")
    return f"{target.kind} ({found.component})"


def tell(client: Client, target: Target, status: Body) -> Answer:
    """Write the status of an object, as its controller would."""
    answer = client.patch(target, {"status": status}, part="status")
    return client.patch(target, {"status": status}) if answer.status == 404 else answer  # an ordinary field


def _write(stage: Stage, body: Body, provision: bool) -> None:
    what = f"{body['kind']} {body['metadata']['name']}"
    if body["kind"] == "PersistentVolumeClaim" and provision:
        stage.client.create(volume_for(body))  # first: the binder looks at a waiting claim only every 15 s
    accepted(stage.client.apply(body, manager=MANAGER), what)
    if body["kind"] == "ConstraintTemplate" and not stage.local.runs("gatekeeper"):
        crd = health.constraint_crd(body)
        answer = stage.client.create(crd)
        if not answer.ok and answer.status != 409:
            raise WrongAnswerError(f"{crd['metadata']['name']} is refused: {answer.message}")
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        stage.client.until(Target.of(crd), _established, _SECONDS, f"{kind}.{group} to be served")


def _established(crd: Body) -> bool:
    rows = (crd.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in rows)


def volume_for(claim: Body) -> Body:
    """The volume that a storage driver would make for a claim, bound to it."""
    spec, meta = claim["spec"], claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{meta['namespace']}-{meta['name']}"},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": copy.deepcopy(spec["accessModes"]),
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "claimRef": {
                "apiVersion": "v1",
                "kind": claim["kind"],
                "name": meta["name"],
                "namespace": meta["namespace"],
            },
            "hostPath": {"path": "/nowhere"},
        },
    }


def outside(bodies: Iterable[Body]) -> Iterator[Body]:
    """Namespaces that the tree writes into and does not make: those of the components that it configures."""
    bodies = list(bodies)
    made = {body["metadata"]["name"] for body in bodies if body["kind"] == "Namespace"} | _NAMESPACES_THAT_STAND
    used = {body["metadata"].get("namespace", "") for body in bodies} - {""}
    for name in sorted(used - made):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
