"""What an update needs at its peak: old and new pods side by side, against the quota that they share.

Sources: argo-rollouts v1.10.2 utils/replicaset/canary.go (CalculateReplicaCountsForTrafficRoutedCanary),
rollout/bluegreen.go; k8s.io/kubernetes@v1.35.4 pkg/controller/deployment/util/deployment_util.go ResolveFenceposts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from blueprint.check.allowances import accelerators, limits, plain
from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.rollouts import Rollout, rollouts
from blueprint.check.rules.say import say
from blueprint.check.shapes import Body, mapping, number, text
from blueprint.finding import Finding
from blueprint.objects import Manifest


def above_quota(graph: Graph) -> Iterator[Finding]:
    """ANA311: replicas that fit, and an update that needs more beside them than there can ever be."""
    for rollout in rollouts(graph):
        if rollout.template:
            pods = list(pod_templates(rollout.workload or rollout.manifest))
            yield from _judged(graph, rollout.manifest, pods, _of_rollout(rollout))
    for deployment in graph.kind("Deployment.apps"):
        yield from _judged(graph, deployment, list(pod_templates(deployment)), _of_deployment(deployment))


def peak(manifest: Manifest) -> tuple[int, int, str] | None:
    """Replicas of a Rollout or Deployment, the most pods at once in an update, and why so many; None for others."""
    if manifest.kind == "Deployment":
        return _of_deployment(manifest)
    return next((_of_rollout(rollout) for rollout in rollouts(Graph([manifest])) if rollout.template), None)


def _judged(
    graph: Graph, manifest: Manifest, pods: Sequence[PodTemplate], most: tuple[int, int, str]
) -> Iterator[Finding]:
    replicas, peak, how = most
    for resource, each in accelerators(pods).items() if peak > replicas else ():
        for limit, where in limits(graph, manifest, pods, resource):
            if replicas * each <= limit < peak * each:
                message = (
                    f"{replicas} replicas have {replicas * each} {resource}, and an update needs {peak * each} for "
                    f"{peak} of them ({how}): {where} has {plain(limit)}, so new pods wait until it has failed"
                )
                fix = f"a quota of {peak * each}, fewer replicas, or an update that takes old pods away first"
                yield say("ANA311", manifest, message, "spec.strategy", fix)
                break


def _of_rollout(rollout: Rollout) -> tuple[int, int, str]:
    """Replicas, the most pods at once, and why so many."""
    replicas = number(rollout.spec.get("replicas"), 1) or 0
    blue = mapping(rollout.strategy.get("blueGreen"))
    if blue:
        return replicas, 2 * replicas, "blue and green"
    if not rollout.routing:
        return replicas, replicas + _surge(rollout.canary, replicas), "maxSurge"
    if rollout.canary.get("dynamicStableScale") is not True:
        return replicas, 2 * replicas, "behind a traffic router the stable pods stay until the canary has all traffic"
    weights = [number(step.get("setWeight")) for step in rollout.steps]
    parts = [0, *(weight for weight in weights if weight is not None), 100]
    peaks = [math.ceil(replicas * (100 - old) / 100) + math.ceil(replicas * new / 100) for old, new in pairwise(parts)]
    return replicas, max(peaks), "the stable pods go only when the canary's are ready"


def _of_deployment(deployment: Manifest) -> tuple[int, int, str]:
    spec = mapping(deployment.body.get("spec"))
    replicas = number(spec.get("replicas"), 1) or 0
    strategy = mapping(spec.get("strategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    if text(strategy.get("type")) == "Recreate" or _amount(rolling.get("maxUnavailable", "25%"), replicas, up=False):
        return replicas, replicas, ""  # an old pod may go before the new one is there
    return replicas, replicas + _surge(rolling, replicas), "maxSurge, and no pod may be missing"


def _surge(strategy: Body, replicas: int) -> int:
    if "maxUnavailable" in strategy and _amount(strategy["maxUnavailable"], replicas, up=False):
        return 0
    if "maxUnavailable" not in strategy and _amount("25%", replicas, up=False):
        return 0
    return _amount(strategy.get("maxSurge", "25%"), replicas, up=True)


def _amount(value: object, of: int, *, up: bool) -> int:
    """A number of pods, or a share of them; 0 where it cannot be read."""
    share = text(value).removesuffix("%")
    if text(value).endswith("%") and share.isdigit():
        exact = of * int(share) / 100
        return math.ceil(exact) if up else math.floor(exact)
    return number(value, 0) or 0


RULES = (above_quota,)
TREE = ()
