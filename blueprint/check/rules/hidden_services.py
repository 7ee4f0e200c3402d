"""Services that controllers make for the pods of a set, and whose names somebody else has taken.

Sources: jobset v0.11.1 pkg/controllers/jobset_controller.go (createHeadlessSvcIfNecessary, GetSubdomain), lws v0.8.0
pkg/utils/controller/controller_utils.go (CreateHeadlessServiceIfNotExists): a Service of that name is left as it is,
whatever it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from blueprint.check.graph import Graph
from blueprint.check.pods import pod_templates
from blueprint.check.rules.say import say
from blueprint.check.shapes import Body, known, mapping, text
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_JOBSET, _TRAINJOB = "JobSet.jobset.x-k8s.io", "TrainJob.trainer.kubeflow.org"
_GROUPS = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
_CONTROLLERS = (".sigs.k8s.io", ".kubernetes.io", ".x-k8s.io")
_JOBSET_NAME, _GROUPS_NAME = "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name"


class _Wish(NamedTuple):
    """The name of the Service, the labels of the pods that it is to find, and who else may say what labels they have.

    `holders` are the objects with the pod templates.
    """

    name: str
    label: str
    holders: tuple[Manifest, ...]


def taken(graph: Graph) -> Iterator[Finding]:
    """REF108: a Service that is not the headless one which a controller looks for under that name."""
    for manifest in graph.kind(_JOBSET, _TRAINJOB, _GROUPS):
        wish = _wish(graph, manifest)
        if wish is None or not known(wish.name):
            continue
        service = graph.meant(Ref("", "Service", manifest.ref.namespace, wish.name), manifest)
        if service is None:
            continue
        problem = _problem(mapping(service.body.get("spec")), manifest.ref.name, wish)
        if problem:
            message = (
                f"{manifest.kind} {manifest.ref.name} needs a headless Service of this name for its pods and keeps "
                f"the one that is there, {problem}: they do not find each other by name"
            )
            yield say("REF108", service, message, "metadata.name", f"rename one: the Service or the {manifest.kind}")


def _wish(graph: Graph, manifest: Manifest) -> _Wish | None:
    spec, name = mapping(manifest.body.get("spec")), manifest.ref.name
    if manifest.ref.kind_name == _GROUPS:
        shared = mapping(spec.get("networkConfig")).get("subdomainPolicy", "Shared") == "Shared"
        return _Wish(name, _GROUPS_NAME, (manifest,)) if shared else None
    holders: tuple[Manifest, ...] = (manifest,)
    if manifest.ref.kind_name == _TRAINJOB:
        runtime = _runtime(graph, manifest, mapping(spec.get("runtimeRef")))
        holders = (runtime,) if runtime else ()
        body = mapping(runtime.body.get("spec")) if runtime else {}
        spec = mapping(mapping(body.get("template")).get("spec"))
    network = mapping(spec.get("network"))
    if network.get("enableDNSHostnames") is False:
        return None
    return _Wish(text(network.get("subdomain")) or name, _JOBSET_NAME, holders)


def _runtime(graph: Graph, job: Manifest, ref: Body) -> Manifest | None:
    kind = text(ref.get("kind")) or "ClusterTrainingRuntime"
    namespace = job.ref.namespace if kind == "TrainingRuntime" else ""
    return graph.meant(Ref("trainer.kubeflow.org", kind, namespace, text(ref.get("name"))), job)


def _problem(service: Body, name: str, wish: _Wish) -> str:
    """Why the Service does not do what is needed of it, "" if it may."""
    if service.get("clusterIP") != "None":
        return "which is not headless"
    selector = mapping(service.get("selector"))
    if not selector:
        return ""  # somebody else may keep its endpoints
    if not wish.holders:
        # The labels of the pods are in a runtime that is not here: only a label of the set itself can be judged.
        return "which selects other pods" if selector.get(wish.label, name) != name else ""
    pods = [mapping(pod.metadata.get("labels")) for holder in wish.holders for pod in pod_templates(holder)]
    own = any(_selects(selector, {**labels, wish.label: name}) for labels in pods or [{}])
    return "" if own else "which selects other pods"


def _selects(selector: Body, labels: Body) -> bool:
    """Whether it selects pods with these labels; controllers may add labels of their own domains to them."""
    return all(
        labels[key] == value if key in labels else str(key).partition("/")[0].endswith(_CONTROLLERS)
        for key, value in selector.items()
    )


RULES = (taken,)
TREE = ()
