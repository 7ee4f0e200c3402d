"""Canary: the Rollouts controller asks a real Prometheus, by the tree's own analysis, about versions of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from blueprint.conform.client import Target
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.components.rollouts import PROMETHEUS, ROLLOUTS
from blueprint.conform.exporter import shortened
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted
from blueprint.conform.tree import Tree
from blueprint.conform.vllm import Mode, Simulator, Version

Body = dict[str, Any]

_SPACE = "conform-canary"
_WINDOW = "10s"
_COUNT = 3
_FULL = "full"
_STRETCH = 3
"""Times the patience of a stage: a canary waits for its window to fill, and for several measurements."""


def run(stage: Stage) -> None:
    """Five canaries at once: what each version does decides what becomes of it."""
    [template] = stage.tree.of_kind("AnalysisTemplate")[:1]
    stage.local.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SPACE}}])
    with stage.case("the controller and Prometheus start") as case:
        stage.local.start(PROMETHEUS)
        stage.local.start(ROLLOUTS)
        case.said = "argo-rollouts, prometheus"
    address = f"http://127.0.0.1:{stage.local.ground('prometheus').ports['serve']}"
    queries = tuple(m["provider"]["prometheus"]["query"] for m in template["spec"]["metrics"])
    names = [*Mode, _FULL]
    exporter = stage.local.ground("prometheus").ports["exporter"]
    with Simulator(exporter, tuple(shortened(query, _WINDOW) for query in queries)) as simulator:
        with stage.case("a first version of each runs") as case:
            accepted(stage.client.create(_analysis(template, address)), "the tree's analysis")
            for name in names:
                accepted(stage.client.create(_rollout(template, str(name), "1")), f"Rollout {name}")
            for name in names:
                _until(stage, str(name), _stable, "its first version to be Healthy")
            case.said = f"{len(names)} Rollouts"
        for name in names:
            change = {"spec": {"template": _pod(str(name), "2")}}
            accepted(stage.client.patch(Target.of(_rollout(template, str(name), "2")), change), f"version 2 of {name}")
        for name in names:
            body = _until(stage, str(name), _new, "its canary to be made")
            mode = Mode.GOOD if name == _FULL else Mode(name)
            service = {"rollouts_pod_template_hash": body["status"]["currentPodHash"]}
            simulator.versions.append(Version(service, mode))
        _outcomes(stage)


def _outcomes(stage: Stage) -> None:
    expected: dict[str, tuple[str, bool, Callable[[Body], bool]]] = {
        Mode.GOOD: ("a good version is promoted", False, _promoted),
        Mode.SLOW: ("a slow version is aborted, and never promoted", True, _aborted),
        Mode.FAILING: ("a version that fails is aborted, and never promoted", True, _aborted),
        Mode.IDLE: ("without traffic nothing is decided: the canary waits for a person", True, _undecided),
        _FULL: ("a canary that finds no room ends by its deadline", True, _aborted),
    }
    for name, (title, negative, ends) in expected.items():
        with stage.case(title, negative=negative) as case:
            body = _until(stage, str(name), _decided, "a decision")
            runs = [r for r in stage.client.every("argoproj.io/v1alpha1", "AnalysisRun", _SPACE) if _of(r, str(name))]
            case.said = f"{body['status'].get('phase')}: {body['status'].get('message', '')}; " + ", ".join(
                f"analysis {stage.saw(r)['status']['phase']}" for r in runs
            )
            if not ends(body):
                raise WrongAnswerError(case.said)


def _of(run: Body, name: str) -> bool:
    return any(owner["name"] == name for owner in run["metadata"].get("ownerReferences") or ())


def _until(stage: Stage, name: str, holds: Callable[[Body], bool], what: str) -> Body:
    target = Target("argoproj.io/v1alpha1", "Rollout", _SPACE, name)
    seconds = _STRETCH * max(stage.patience, 30)
    return stage.saw(stage.client.until(target, lambda b: bool(b) and holds(b), seconds, f"Rollout {name}: {what}"))


def _stable(body: Body) -> bool:
    status = body.get("status") or {}
    return status.get("phase") == "Healthy" and status.get("stableRS") == status.get("currentPodHash")


def _new(body: Body) -> bool:
    status = body.get("status") or {}
    return bool(status.get("currentPodHash")) and status.get("stableRS") != status.get("currentPodHash")


def _promoted(body: Body) -> bool:
    return _stable(body) and not body["status"].get("abort")


def _aborted(body: Body) -> bool:
    return bool(body["status"].get("abort")) and not _stable(body)


def _undecided(body: Body) -> bool:
    reasons = {row["reason"] for row in body["status"].get("pauseConditions") or ()}
    return "InconclusiveAnalysisRun" in reasons


def _decided(body: Body) -> bool:
    return _promoted(body) or _aborted(body) or _undecided(body)


def _analysis(template: Body, address: str) -> Body:
    """The tree's analysis: its queries, conditions and limits; only time is shorter, and Prometheus elsewhere."""
    made = copy.deepcopy(template)
    made["metadata"] = {"name": template["metadata"]["name"], "namespace": _SPACE}
    for metric in made["spec"]["metrics"]:
        metric |= {"interval": "2s", "count": _COUNT}
        source = metric["provider"]["prometheus"]
        source |= {"address": address, "query": shortened(source["query"], _WINDOW)}
    return made


def _pod(name: str, version: str) -> Body:
    """A pod without devices; version 2 of the one for a full pool asks more than any node has."""
    image = f"registry.example.com/serving/vllm@sha256:{version * 64}"
    container: Body = {"name": "c", "image": image}
    if name == _FULL and version == "2":
        container["resources"] = {"requests": {"cpu": "100000"}}
    tolerations = [{"operator": "Exists"}]
    labels = {"app": name, "version": version}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": tolerations}}


def _rollout(template: Body, name: str, version: str) -> Body:
    argument = {"name": "canary-hash", "valueFrom": {"podTemplateHashValue": "Latest"}}
    analysis = {"templates": [{"templateName": template["metadata"]["name"]}], "args": [argument]}
    steps = [{"setWeight": 50}, {"pause": {"duration": "15s"}}, {"analysis": analysis}]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": _SPACE},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": _pod(name, version),
            "progressDeadlineSeconds": 20,
            "progressDeadlineAbort": True,
            "strategy": {"canary": {"steps": steps}},
        },
    }


def _blind(tree: Tree) -> Tree:
    """An analysis that cannot fail: it may fail more often than it measures."""

    def put(body: Body) -> None:
        for metric in body["spec"]["metrics"]:
            metric["failureLimit"] = _COUNT

    return tree.changed("AnalysisTemplate", put)


SUITE = Suite(
    name="canary",
    title="Canaries are promoted, aborted and held by the tree's own analysis",
    run=run,
    needs=(KUEUE, TRAINING),
    starts=(PROMETHEUS, ROLLOUTS),
    faults=(Fault("an analysis that cannot fail", _blind, "a slow version is aborted"),),
    elsewhere="it starts its own controller and Prometheus",
)
