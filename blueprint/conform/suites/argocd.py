"""Argo CD itself syncs the tree from a repository: in order, once, and without a fight with those who write, too."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from blueprint.catalog.gating import stalls
from blueprint.conform.argo import Argo, healthy, said, synced
from blueprint.conform.client import Target
from blueprint.conform.components.argocd import CONTROLLER, REDIS, REPOSITORY, base
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.components.rollouts import ROLLOUTS
from blueprint.conform.install import MANAGER, outside, volume_for
from blueprint.conform.player import Player
from blueprint.conform.repository import Bootstrap, Repository
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted
from blueprint.conform.suites.order import LATE, example, findings, volume
from blueprint.conform.tree import Tree
from blueprint.objects import Manifest
from blueprint.render.emit import emit
from blueprint.render.options import IGNORE
from blueprint.sync import WAVE

Body = dict[str, Any]

_STRETCH = 4
"""Times the patience of a stage: an Application waits for those of earlier waves, and for the delay between waves."""
_UNWORKED = frozenset({"LeaderWorkerSet", "TrainJob"})
_HANGS = 8.0
"""Seconds after which a sync that cannot go on counts as hanging; the same one, put right, ends in three."""


def run(stage: Stage) -> None:
    """Bootstrap Argo CD with the tree, then change the cluster and the repository under it."""
    repository = Repository(stage.folder)
    argo = Argo(stage, repository, stage.patience * _STRETCH)
    tree = Bootstrap(stage.tree, repository.url)
    with stage.case("the controller, the repository server and their cache start") as case:
        _start(stage, tree)
        repository.commit("render", tree.files)
        case.said = f"{len(tree.files)} files"
    with Player(stage.client, stage.tree, stage.local.runs) as player:
        _syncs(stage, argo, tree)
        _by_hand(stage, argo, tree)
        _again(stage, argo, tree)
        _heals(stage, argo, tree)
        _left_alone(stage, argo, tree)
        _pruned(stage, argo, tree)
        _hangs(stage, argo)
        if player.played:
            with stage.case("what was played") as case:
                case.said = ", ".join(sorted(player.played))


def _start(stage: Stage, tree: Bootstrap) -> None:
    bodies = stage.tree.bodies
    stage.local.create(outside(bodies))
    stage.local.create(m.body for m in example("good", "web") if m.kind == "StorageClass")
    # What a storage driver would make; before the claims, since the binder looks at a waiting claim only every 15 s.
    stage.local.create(volume_for(body) for body in bodies if body["kind"] == "PersistentVolumeClaim")
    stage.local.start(REDIS)
    stage.local.start(REPOSITORY)
    for body in base():
        accepted(stage.client.apply(body, manager="install"), f"{body['kind']} {body['metadata']['name']}")
    for body in tree.objects[:-1]:
        accepted(stage.client.apply(body), f"{body['kind']} {body['metadata']['name']}")
    stage.local.start(CONTROLLER)
    accepted(stage.client.apply(tree.root), "the root Application")


def _syncs(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    for child in tree.children:
        name = child["metadata"]["name"]
        held = _unworked(stage, child)
        if _automated(child) and held:
            with stage.case(f"{name} becomes Synced") as case:
                case.said = f"{said(argo.until(name, _written_down, f'{name} to be Synced'))}; nobody works on {held}"
        elif _automated(child):
            with stage.case(f"{name} becomes Synced and Healthy") as case:
                case.said = said(argo.until(name, healthy, f"{name} to be Synced and Healthy"))
        if not stage.record.cases[-1].passed:
            raise WrongAnswerError("the tree does not sync, so that nothing else can be shown")
    with stage.case("no Application is made before all of an earlier wave are healthy") as case:
        waves: dict[int, list[Body]] = {}
        for child in tree.children:
            number = int((child["metadata"].get("annotations") or {}).get(WAVE, "0"))
            waves.setdefault(number, []).append(argo.get(child["metadata"]["name"]))
        for earlier, later in zip(sorted(waves), sorted(waves)[1:], strict=False):
            done = max(_first_sync(body) for body in waves[earlier] if _automated(body))
            made = min(str(body["metadata"]["creationTimestamp"]) for body in waves[later])
            if made < done:
                raise WrongAnswerError(f"wave {later} began at {made}, wave {earlier} was done at {done}")
        case.said = f"{len(waves)} waves"


def _unworked(stage: Stage, child: Body) -> str:
    """Kinds in an Application that wait for a controller which does not run here, and is not played either."""
    manifests = stage.tree.applications[child["spec"]["source"]["path"].rpartition("/")[2]]
    return ", ".join(sorted({manifest.kind for manifest in manifests if stalls(manifest)} & _UNWORKED))


def _written_down(application: Body) -> bool:
    return synced(application) and application["status"]["health"]["status"] in ("Healthy", "Progressing", "Suspended")


def _first_sync(application: Body) -> str:
    history = application["status"].get("history") or [{"deployedAt": ""}]
    return str(history[0]["deployedAt"])


def _automated(application: Body) -> bool:
    return bool((application["spec"].get("syncPolicy") or {}).get("automated"))


def _by_hand(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    for child in tree.children:
        name = child["metadata"]["name"]
        if _automated(child):
            continue
        with stage.case(f"{name} waits for a person", negative=True) as case:
            before = argo.until(name, lambda b: "sync" in b.get("status", {}), f"{name} to be compared")
            if before["status"]["sync"]["status"] != "OutOfSync" or "operationState" in before["status"]:
                raise WrongAnswerError(said(before))
            case.said = said(before)
        with stage.case(f"{name} is synced by hand") as case:
            after = argo.sync(name)
            case.said = said(after)
            if after["status"]["operationState"]["phase"] != "Succeeded":
                raise WrongAnswerError(case.said)


def _again(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    with stage.case("a second sync of everything changes nothing") as case:
        # What Kueue writes into is compared by Argo CD itself, without those fields: see the runs below.
        manifests = [m for m in stage.tree.manifests if IGNORE not in (m.body["metadata"].get("annotations") or {})]
        before = [_written(stage, manifest) for manifest in manifests]
        begun = {child["metadata"]["name"]: argo.begin(child["metadata"]["name"]) for child in tree.children}
        for name, token in begun.items():
            after = argo.ended(name, token)
            if after["status"]["operationState"]["phase"] != "Succeeded":
                raise WrongAnswerError(f"{name}: {said(after)}")
        for manifest, then in zip(manifests, before, strict=True):
            if (now := _written(stage, manifest)) != then:
                raise WrongAnswerError(f"{manifest.ref}: {then} becomes {now}")
        case.said = f"{len(manifests)} objects of {len(tree.children)} Applications"
    with stage.case("the root is Synced, too") as case:
        name = tree.root["metadata"]["name"]
        case.said = said(argo.until(name, synced, f"{name} to be Synced"))


def _written(stage: Stage, manifest: Manifest) -> list[Body]:
    """What Argo CD has written into an object, and when it last changed that."""
    meta = accepted(stage.client.get(Target.of(manifest.body)), f"{manifest.ref}").body["metadata"]
    rows = [row for row in meta.get("managedFields") or () if row["manager"] == MANAGER]
    return [{"time": row.get("time"), "fields": row.get("fieldsV1")} for row in rows]


def _heals(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    name, manifest = _one(stage.tree, "LimitRange")
    target = Target.of(manifest.body)
    with stage.case("a label changed by hand is put back") as case:
        label = "app.kubernetes.io/managed-by"
        accepted(stage.client.patch(target, {"metadata": {"labels": {label: "hand"}}}), "a label")
        wanted = manifest.body["metadata"]["labels"][label]
        stage.client.until(
            target, lambda b: b["metadata"]["labels"][label] == wanted, argo.seconds, f"{manifest.ref} to be healed"
        )
        case.said = f"{manifest.ref}"
    with stage.case("an object deleted by hand comes back") as case:
        accepted(stage.client.delete(target), f"{manifest.ref}")
        stage.client.until(target, bool, argo.seconds, f"{manifest.ref} to come back")
        child = next(c for c in tree.children if c["metadata"]["name"].endswith(name))
        case.said = said(argo.until(child["metadata"]["name"], healthy, f"{name} to be Synced and Healthy"))


def _left_alone(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    """What others write by right, Argo CD must not see as drift, nor put back."""
    names = {c["spec"]["source"]["path"].rpartition("/")[2]: c["metadata"]["name"] for c in tree.children}
    with stage.case("Kueue starts the runs, and Argo CD neither sees drift nor stops them", negative=True) as case:
        words = []
        for application, manifest in _all(stage.tree, "PyTorchJob"):
            target = Target.of(manifest.body)
            stage.until(manifest.body, _unsuspended, argo.seconds, f"Kueue to start {manifest.ref}")
            _quiet(argo, names[application])
            after = argo.sync(names[application])
            body = accepted(stage.client.get(target), f"{manifest.ref}").body
            if not _unsuspended(body) or after["status"]["operationState"]["phase"] != "Succeeded":
                raise WrongAnswerError(f"a sync by hand stops {manifest.ref}: {said(after)}")
            words.append(manifest.ref.name)
        case.said = f"{', '.join(words)}; a sync by hand stops none either"
    with stage.case("an autoscaler's replicas stay", negative=True) as case:
        words = []
        for application, manifest in _all(stage.tree, "ScaledObject"):
            aim = manifest.body["spec"]["scaleTargetRef"]
            if aim["kind"] != "Deployment":
                continue
            target = Target(aim["apiVersion"], aim["kind"], manifest.ref.namespace, aim["name"])
            wanted = manifest.body["spec"]["minReplicaCount"] + 1
            accepted(
                stage.client.patch(target, {"spec": {"replicas": wanted}}, part="scale"), f"scale of {target.name}"
            )
            _quiet(argo, names[application])
            seen = accepted(stage.client.get(target), target.name).body["spec"]["replicas"]
            if seen != wanted:
                raise WrongAnswerError(f"{target.name}: {wanted} replicas become {seen}")
            words.append(f"{target.name} {seen}")
        case.said = ", ".join(words)
    _canary(stage, argo, tree, names)


def _canary(stage: Stage, argo: Argo, tree: Bootstrap, names: dict[str, str]) -> None:
    [(application, manifest), *_] = _all(stage.tree, "Rollout")
    [(_, route), *_] = [pair for pair in _all(stage.tree, "VirtualService") if pair[0] == application]
    with stage.case("a canary's weights stay while it runs", negative=True) as case:
        body = copy.deepcopy(manifest.body)
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["image"] = container["image"].rpartition(":")[0] + ":" + "1" * 64
        path = tree.path(application, body)
        argo.repository.commit("a new version", {**argo.repository.files, path: emit(body)})
        argo.refresh(names[application])
        before = _weights(route.body)
        if not stage.local.runs(ROLLOUTS.name):
            _shift(stage, route.body)
        moved = stage.until(route.body, lambda b: _weights(b) != before, argo.seconds, "the Rollout to shift weights")
        _quiet(argo, names[application])
        seen = _weights(accepted(stage.client.get(Target.of(route.body)), f"{route.ref}").body)
        if seen != _weights(moved):
            raise WrongAnswerError(f"weights {_weights(moved)} become {seen}")
        case.said = f"{before} becomes {seen}"


def _shift(stage: Stage, route: Body) -> None:
    """Write the weights of a first step, as the controller of Rollouts does where it runs."""
    spec = copy.deepcopy(route["spec"])
    for http in spec["http"]:
        for number, to in enumerate(http["route"]):
            to["weight"] = (95, 5)[number]
    accepted(stage.client.patch(Target.of(route), {"spec": spec}), "the weights")


def _weights(route: Body) -> list[int]:
    return [to.get("weight", 100) for http in route["spec"]["http"] for to in http["route"]]


def _unsuspended(job: Body) -> bool:
    return job["spec"]["runPolicy"].get("suspend") is False


def _quiet(argo: Argo, name: str) -> None:
    """Compared anew, it is Synced, and no operation has begun. Raises WrongAnswerError otherwise."""
    argo.until(name, synced, f"{name} to be Synced")
    begun = argo.get(name)["status"].get("operationState", {}).get("startedAt")
    for hard in (True, False):
        seen = argo.refresh(name, hard=hard)
        if not synced(seen) or seen["status"].get("operationState", {}).get("startedAt") != begun:
            raise WrongAnswerError(f"{name} fights: {said(seen)}")


def _pruned(stage: Stage, argo: Argo, tree: Bootstrap) -> None:
    names = {c["spec"]["source"]["path"].rpartition("/")[2]: c["metadata"]["name"] for c in tree.children}
    with stage.case("what leaves the tree is pruned") as case:
        application, manifest = _one(stage.tree, "LimitRange")
        files = {**argo.repository.files}
        text = files.pop(tree.path(application, manifest.body))
        argo.repository.commit("without a LimitRange", files)
        argo.refresh(names[application])
        target = Target.of(manifest.body)
        stage.client.until(target, lambda b: not b, argo.seconds, f"{manifest.ref} to be pruned")
        argo.repository.commit("with it", {**files, tree.path(application, manifest.body): text})
        argo.refresh(names[application])
        argo.until(names[application], healthy, f"{application} to be Synced and Healthy")
        case.said = f"{manifest.ref}"
    for kind in ("PersistentVolumeClaim", "ClusterQueue"):
        application, manifest = _one(stage.tree, kind)
        with stage.case(f"a {kind} that leaves the tree stays until somebody confirms", negative=True) as case:
            files = {**argo.repository.files}
            text = files.pop(tree.path(application, manifest.body))
            argo.repository.commit(f"without {manifest.ref.name}", files)
            argo.refresh(names[application])
            held = argo.until(names[application], _asks, "the question whether to prune")
            live = accepted(stage.client.get(Target.of(manifest.body)), f"{manifest.ref}").body
            if "deletionTimestamp" in live["metadata"]:
                raise WrongAnswerError(f"{manifest.ref} is deleted")
            case.said = str(held["status"]["operationState"]["message"])
            argo.terminate(names[application])
            argo.repository.commit("with it", {**files, tree.path(application, manifest.body): text})
            argo.refresh(names[application])
            argo.until(names[application], synced, f"{application} to be Synced")


def _asks(application: Body) -> bool:
    operation = application.get("status", {}).get("operationState") or {}
    return operation.get("phase") == "Running" and "pruning confirmation" in operation.get("message", "")


def _hangs(stage: Stage, argo: Argo) -> None:
    """The rule's own examples, and a field that no server takes: Argo CD stops where `check` says it will."""
    with stage.case("a wave that waits for its own successor hangs where check says", negative=True) as case:
        _example(stage, argo, "bad", "wrong-wave")
        argo.begin("wrong-wave")
        waits = argo.until("wrong-wave", _waits, "the sync to wait for the claim")
        later = Target("apps/v1", "Deployment", "wrong-wave", "server")
        try:
            argo.until("wrong-wave", synced, "a sync that cannot end", _HANGS)
        except WrongAnswerError:
            case.said = f"{LATE}; {waits['status']['operationState']['message']}"
        else:
            raise WrongAnswerError("it does not hang")
        if stage.client.get(later).ok:
            raise WrongAnswerError("the next wave was written")
        argo.terminate("wrong-wave")
    with stage.case("with its wave put right it does not") as case:
        _example(stage, argo, "good", "right-wave")
        argo.sync("right-wave")
        case.said = said(argo.until("right-wave", healthy, "the same with its wave put right to be Healthy"))
    with stage.case("a field that check does not know is refused before anything is written", negative=True) as case:
        found = [copy.deepcopy(manifest) for manifest in example("good", "misspelt")]
        deployment = next(manifest for manifest in found if manifest.kind == "Deployment")
        deployment.body["spec"]["replicaz"] = 1
        codes = sorted(code for code in findings(found) if code.startswith("SCH"))
        if not codes:
            raise WrongAnswerError("check does not find the misspelt field")
        _lay(stage, argo, "misspelt", found)
        after = argo.sync("misspelt")
        case.said = f"{', '.join(codes)}; {said(after)}"
        if after["status"]["operationState"]["phase"] != "Failed" or "replicaz" not in case.said:
            raise WrongAnswerError(case.said)


def _waits(application: Body) -> bool:
    message = (application.get("status", {}).get("operationState") or {}).get("message", "")
    return "waiting for healthy state" in message and "PersistentVolumeClaim" in message


def _example(stage: Stage, argo: Argo, which: str, name: str) -> None:
    found = example(which, name)
    if (LATE in findings(found)) is not (which == "bad"):
        raise WrongAnswerError(f"check says of the {which} example: {findings(found)}")
    _lay(stage, argo, name, found)


def _lay(stage: Stage, argo: Argo, name: str, manifests: list[Manifest]) -> None:
    """An Application of these objects, in a namespace of its name, with a volume for whichever claim comes."""
    stage.local.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, volume(name)])
    bodies = [m.body for m in manifests if m.kind not in ("StorageClass", "Namespace")]
    files = {f"{name}/{body['kind'].lower()}.yaml": emit(body) for body in bodies}
    argo.repository.commit(name, {**argo.repository.files, **files})
    argo.apply(name, name, name)


def _all(tree: Tree, kind: str) -> Iterator[tuple[str, Manifest]]:
    for application, manifests in tree.applications.items():
        yield from ((application, manifest) for manifest in manifests if manifest.kind == kind)


def _one(tree: Tree, kind: str) -> tuple[str, Manifest]:
    return next(_all(tree, kind))


def _unignored(tree: Tree) -> Tree:
    """Runs of which Argo CD is not told that Kueue starts them."""
    return tree.changed("PyTorchJob", lambda body: body["metadata"]["annotations"].pop(IGNORE))


SUITE = Suite(
    name="argocd",
    title="Argo CD itself, syncing the tree from a repository",
    run=run,
    needs=(KUEUE, TRAINING),
    uses=(ROLLOUTS,),
    starts=(REDIS, REPOSITORY, CONTROLLER),
    programs=("git",),
    faults=(Fault("runs without a word that Kueue starts them", _unignored, "Kueue starts the runs"),),
    alone=True,
    elsewhere="it starts its own Argo CD, which would write the whole tree",
)
