"""Autoscalers as objects: what a ScaledObject or HorizontalPodAutoscaler scales, between which numbers, on what.

Source: keda v2.21.0 apis/keda/v1alpha1/scaledobject_types.go; k8s.io/kubernetes@v1.35.4 pkg/apis/autoscaling/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from blueprint.check.allowances import accelerators
from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.rollouts import Rollout
from blueprint.check.shapes import Body, known, mapping, maps, number, placeholder, text
from blueprint.finding import Ref
from blueprint.objects import Manifest

SCALED_OBJECT = "ScaledObject.keda.sh"
AUTOSCALER = "HorizontalPodAutoscaler.autoscaling"


class Scaler:
    """One autoscaler."""

    def __init__(self, graph: Graph, manifest: Manifest) -> None:
        self._graph = graph
        self.manifest = manifest
        self.spec = mapping(manifest.body.get("spec"))
        self.by_keda = manifest.kind == "ScaledObject"

    @property
    def target_api(self) -> str:
        """The apiVersion of what is scaled, "" where it is not known."""
        written = mapping(self.spec.get("scaleTargetRef")).get("apiVersion")
        return ("apps/v1" if self.by_keda and not written else known(written)) or ""

    @property
    def target(self) -> Ref | None:
        """The identity of what is scaled, None where it is not known."""
        ref = mapping(self.spec.get("scaleTargetRef"))
        name, kind = known(ref.get("name")), known(ref.get("kind")) or ("Deployment" if self.by_keda else "")
        group, slash, _ = self.target_api.partition("/")
        if not name or not kind or placeholder(ref.get("apiVersion")):
            return None
        return Ref(group if slash else "", kind, self.manifest.ref.namespace, name)

    @cached_property
    def workload(self) -> Manifest | None:
        """The object that is scaled, where the tree has it."""
        return self._graph.nearest(self.target, self.manifest) if self.target else None

    @property
    def most(self) -> int | None:
        """The greatest number of replicas."""
        return (
            number(self.spec.get("maxReplicaCount"), None if "maxReplicaCount" in self.spec else 100)
            if self.by_keda
            else number(self.spec.get("maxReplicas"))
        )

    @property
    def least(self) -> int | None:
        """The least number of replicas."""
        name, default = ("minReplicaCount", 0) if self.by_keda else ("minReplicas", 1)
        return number(self.spec.get(name), None if name in self.spec else default)

    @property
    def triggers(self) -> Sequence[Body]:
        """The triggers of a ScaledObject."""
        return maps(self.spec.get("triggers")) if self.by_keda else []

    @cached_property
    def pods(self) -> list[PodTemplate]:
        """The pods that are scaled; those of the Deployment that a Rollout takes its pods from, too."""
        if self.workload is None:
            return []
        owner = self.workload
        if owner.kind == "Rollout" and mapping(mapping(owner.body.get("spec")).get("workloadRef")):
            named = Rollout(self._graph, owner).workload
            return list(pod_templates(named)) if named else []
        return list(pod_templates(owner))

    @property
    def accelerators(self) -> Mapping[str, int]:
        """How many of each accelerator one replica asks for."""
        return accelerators(self.pods)


def scalers(graph: Graph) -> list[Scaler]:
    """Every autoscaler of a tree, read once for each graph."""
    return graph.derived(_scalers)


def _scalers(graph: Graph) -> list[Scaler]:
    return [Scaler(graph, manifest) for manifest in graph.kind(SCALED_OBJECT, AUTOSCALER)]


def metric_type(trigger: Body) -> str:
    """How the value of a trigger is compared: AverageValue divides it by the replicas."""
    return text(trigger.get("metricType")) or "AverageValue"
