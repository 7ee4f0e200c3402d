"""Pods that the server refuses because a ResourceQuota of their namespace counts what they do not state.

Sources: k8s.io/kubernetes v1.35.4 pkg/quota/v1/evaluator/core/pods.go (Constraints, podMatchesScopeFunc),
plugin/pkg/admission/limitranger/admission.go (defaults come first).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate, containers
from blueprint.check.rules.say import say
from blueprint.check.shapes import Body, mapping, maps, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_COUNTED = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    **{f"{part}.{name}": (part, name) for part in ("requests", "limits") for name in ("cpu", "memory")},
}
"""What of a pod's containers each key of a quota demands: storage and devices need not be stated."""
_GIVES = (("limits", ("default", "max")), ("requests", ("defaultRequest", "default", "max", "min")))
_COMPLETED = frozenset({"TrainingRuntime", "PodTemplate", "TrainJob"})
"""Templates to which somebody else adds, before there is a pod."""
_MUTATE = (
    *("MutatingPolicy.policies.kyverno.io", "NamespacedMutatingPolicy.policies.kyverno.io"),
    *("MutatingAdmissionPolicy.admissionregistration.k8s.io", "VerticalPodAutoscaler.autoscaling.k8s.io"),
    *("Assign.mutations.gatekeeper.sh", "ModifySet.mutations.gatekeeper.sh"),
)


def unstated(graph: Graph) -> Iterator[Finding]:
    """TEN112: a quota counts a request or limit that a pod of its namespace does not state, and nothing gives it."""
    demands: dict[str, list[tuple[Manifest, str]]] = {}
    for quota in graph.kind("ResourceQuota"):
        spec = mapping(quota.body.get("spec"))
        if quota.ref.namespace and not spec.get("scopes") and not spec.get("scopeSelector") and not quota.unknown:
            hard = [str(key) for key in mapping(spec.get("hard")) if key in _COUNTED]
            demands.setdefault(quota.ref.namespace, []).extend((quota, key) for key in hard)
    if not any(demands.values()) or graph.generated("LimitRange") or _mutated(graph):
        return
    given = _defaults(graph)
    for manifest, pod in graph.pods:
        wanted = demands.get(manifest.ref.namespace)
        if wanted and not manifest.unknown and not manifest.draft and manifest.kind not in _COMPLETED:
            yield from _of_pod(manifest, pod, wanted, given.get(manifest.ref.namespace, {}))


def _mutated(graph: Graph) -> bool:
    """Whether something here may write requests into pods."""
    old = graph.kind("ClusterPolicy.kyverno.io", "Policy.kyverno.io")
    rules = (rule for policy in old for rule in maps(mapping(policy.body.get("spec")).get("rules")))
    return bool(graph.kind(*_MUTATE)) or any("mutate" in rule for rule in rules)


def _defaults(graph: Graph) -> dict[str, dict[tuple[str, str], object]]:
    """What LimitRanges give to containers that do not say, by namespace."""
    found: dict[str, dict[tuple[str, str], object]] = {}
    for limits in graph.kind("LimitRange"):
        for row in maps(mapping(limits.body.get("spec")).get("limits")):
            if row.get("type") != "Container":
                continue
            here = found.setdefault(limits.ref.namespace, {})
            # A maximum is the default where there is none, and a default limit is the default request.
            for part, names in _GIVES:
                for name in names:
                    here.update({(part, str(key)): value for key, value in mapping(row.get(name)).items()})
    return found


def _of_pod(
    manifest: Manifest,
    pod: PodTemplate,
    wanted: Sequence[tuple[Manifest, str]],
    given: Mapping[tuple[str, str], object],
) -> Iterator[Finding]:
    whole = mapping(pod.spec.get("resources"))
    if whole.get("requests") or whole.get("limits"):
        return  # resources of the whole pod: then nothing is asked of its containers
    for path, container in containers(pod.spec):
        if path.startswith("ephemeral"):
            continue
        stated = mapping(container.get("resources"))
        missing = [
            (quota, key) for quota, key in wanted if _COUNTED[key] not in given and not _states(stated, *_COUNTED[key])
        ]
        if missing and not placeholder(container.get("resources")):
            names = list(dict.fromkeys(key for _, key in missing))
            quota = missing[0][0].ref.name
            what = f"{' and '.join(names[:3])}, which {text(container.get('name'))} does not state"
            fix = "state it, or give a default with a LimitRange"
            where = f"{pod.spec_path}.{path}.resources"
            yield say("TEN112", manifest, f"the quota {quota} counts {what}: the server refuses the pod", where, fix)
            return


def _states(resources: Body, part: str, name: str) -> bool:
    """Whether an amount is stated; a limit is the request where that is not."""
    return mapping(resources.get(part)).get(name) is not None or (
        part == "requests" and mapping(resources.get("limits")).get(name) is not None
    )


RULES = (unstated,)
TREE = ()
