"""Order: the whole tree is written wave by wave as Argo CD does it, and a wave that cannot be healthy stops it."""

from __future__ import annotations

from typing import Any

import yaml

from blueprint.catalog.rules import rules
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.conform.client import Target
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.health import judge
from blueprint.conform.install import Hangs, outside, sync, volume_for
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError
from blueprint.conform.tree import Tree
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.sync import WAVE

Body = dict[str, Any]

_PATIENCE = 4.0
"""Seconds after which a wave that cannot be healthy counts as hanging; a healthy one of these takes under one."""

LATE = "WAV202"
"""The rule about a claim that binds on first use, in a wave before its pod."""


def run(stage: Stage) -> None:
    """Lay the platform, then show what a wrong wave does."""
    stage.local.create(outside(stage.tree.bodies))
    # A class is older than its claims; one that the binder has not seen yet would let a claim bind at once.
    stage.local.create(manifest.body for manifest in example("good", "web") if manifest.kind == "StorageClass")
    for name, manifests in stage.tree.applications.items():
        with stage.case(f"{name} syncs wave by wave") as case:
            done = sync(stage, manifests)
            case.said = f"{done.objects} objects in {done.waves} waves"
            if done.played:
                case.said += f"; played: {', '.join(sorted(done.played))}"
    _wrong_wave(stage)
    with stage.case("without our scripts a queue counts as healthy before Kueue has seen it", negative=True) as case:
        queue = stage.tree.of_kind("ClusterQueue")[0]
        ours, without = judge(queue), judge(queue, scripted=False)
        if ours.status == "Healthy" or without.status != "Healthy":
            raise WrongAnswerError(f"with the script {ours.status}, without it {without.status}")
        case.said = f"with the script {ours.status}, without it {without.status}"


def _wrong_wave(stage: Stage) -> None:
    """The rule's own examples: a claim that binds on first use, in a wave before its pod and in the same wave."""
    with stage.case("a wave that waits for its own successor hangs where check says", negative=True) as case:
        stage.local.create([{**_SPACE, "metadata": {"name": "web"}}, volume("web")])
        bad = example("bad", "web")
        if LATE not in findings(bad):
            raise WrongAnswerError(f"check does not say {LATE}")
        try:
            sync(stage, bad, seconds=_PATIENCE, provision=False)
        except Hangs as error:
            if "PersistentVolumeClaim" not in str(error):
                raise WrongAnswerError(f"it hangs elsewhere: {error}") from None
            case.said = f"{LATE}; {error}"
        else:
            raise WrongAnswerError("it does not hang")
        if stage.client.get(Target("apps/v1", "Deployment", "web", "server")).ok:
            raise WrongAnswerError("the next wave was written")
    with stage.case("with its wave put right it does not, and check is silent") as case:
        stage.local.create([{**_SPACE, "metadata": {"name": "web-right"}}, volume("web-right")])
        good = example("good", "web-right")
        if LATE in findings(good):
            raise WrongAnswerError(f"check says {LATE}")
        done = sync(stage, good, provision=False)
        case.said = f"{done.objects} objects in {done.waves} wave"


_SPACE: Body = {"apiVersion": "v1", "kind": "Namespace"}
_CLAIM: Body = {
    "storageClassName": "local",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Ti"}},
}


def volume(name: str) -> Body:
    """A volume that any claim of the class may have."""
    made = volume_for({"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "any"}, "spec": _CLAIM})
    del made["spec"]["claimRef"]
    return made


def example(which: str, namespace: str) -> list[Manifest]:
    """The bad or the good example of the rule LATE, in a namespace of its own."""
    rule = rules()[LATE]
    bodies = list(yaml.safe_load_all(rule.bad if which == "bad" else rule.good))
    for body in bodies:
        if "namespace" in body["metadata"]:
            body["metadata"]["namespace"] = namespace
    return [Manifest(body, Source(f"{LATE}.yaml", 1)) for body in bodies]


def findings(manifests: list[Manifest]) -> set[str]:
    """The codes that `check` finds in objects."""
    outcome = validate(manifests, SchemaPack.shipped(), tree_rules=tree_rules())
    return {finding.code for finding in outcome.findings}


def _later(tree: Tree) -> Tree:
    """The accounts of services in a wave after the Deployments that run as them."""

    def put(body: Body) -> None:
        body["metadata"].setdefault("annotations", {})[WAVE] = "5"

    return tree.changed("ServiceAccount", put)


SUITE = Suite(
    name="order",
    title="Order of sync waves, and the health that gates them",
    run=run,
    needs=(KUEUE, TRAINING),
    faults=(Fault("service accounts in a wave after their Deployments", _later, "syncs wave by wave"),),
    elsewhere="its policies would judge everybody's objects there",
)
