"""Volume claims that several pods mount, and that only one node, or one pod, may have.

Sources: k8s.io/api@v0.35.4 core/v1 types.go (ReadWriteOnce, ReadWriteOncePod); k8s.io/kubernetes@v1.35.4
pkg/controller/volume/attachdetach/reconciler (a volume of ReadWriteOnce is not attached to a second node),
pkg/scheduler/framework/plugins/volumerestrictions (ReadWriteOncePod).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, known, mapping, maps, number, text, texts
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_SCALED = frozenset({"Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "Rollout.argoproj.io"})
_HOST = "kubernetes.io/hostname"
_LOCAL = ("no-provisioner", "local", "hostpath", "host-path")
"""Parts of the names of provisioners whose volumes keep all their pods on the node where they are."""


def shared_claims(graph: Graph) -> Iterator[Finding]:
    """STO102: several replicas mount one claim that a single node, or a single pod, may have."""
    if len(graph.kind("Node")) == 1:
        return
    for manifest, pod in graph.pods:
        replicas = number(mapping(manifest.body.get("spec")).get("replicas"), 1) or 0
        if manifest.ref.kind_name not in _SCALED or replicas < 2:
            continue
        for index, volume in enumerate(maps(pod.spec.get("volumes"))):
            source = mapping(volume.get("persistentVolumeClaim"))
            claim = _claim(graph, manifest, known(source.get("claimName")))
            modes = set(texts(mapping(claim.body.get("spec")).get("accessModes"))) if claim else set()
            path = f"{pod.spec_path}.volumes[{index}].persistentVolumeClaim.claimName"
            name = source.get("claimName")
            if modes == {"ReadWriteOncePod"}:
                message = f"{replicas} pods mount claim {name}, which one pod may have (ReadWriteOncePod)"
                yield say("STO102", manifest, message, path, "one replica, or a claim for each: volumeClaimTemplates")
            elif claim and modes == {"ReadWriteOnce"} and not _on_one_node(pod) and not _stays(graph, claim):
                message = f"{replicas} pods mount claim {name}, which one node may have (ReadWriteOnce)"
                message += ": on another node they wait for it without end"
                fix = "ReadWriteMany, a claim for each pod (volumeClaimTemplates), or all pods on one node"
                yield warn("STO102", manifest, message, path, fix)


def _claim(graph: Graph, manifest: Manifest, name: str) -> Manifest | None:
    ref = Ref("", "PersistentVolumeClaim", manifest.ref.namespace, name)
    return graph.nearest(ref, manifest) if name else None


def _on_one_node(pod: PodTemplate) -> bool:
    """Whether the pods are held together: by the name of a node, or by an affinity to a pod on the same one."""
    affinity = mapping(pod.spec.get("affinity"))
    near = maps(mapping(affinity.get("podAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution"))
    together = any(term.get("topologyKey") == _HOST for term in near)
    named = _HOST in mapping(pod.spec.get("nodeSelector")) or bool(pod.spec.get("nodeName"))
    return together or named or _HOST in str(affinity.get("nodeAffinity"))


def _stays(graph: Graph, claim: Manifest) -> bool:
    """Whether the volume may keep its pods on its node, or be shared in truth: one that is named, local, or files."""
    spec: Body = mapping(claim.body.get("spec"))
    if spec.get("volumeName") or spec.get("selector"):
        return True
    name = text(spec.get("storageClassName"))
    found = graph.get(Ref("storage.k8s.io", "StorageClass", "", name)) if name else None
    words = f"{name} {text(found.body.get('provisioner')) if found else ''}".lower()
    return any(part in words for part in _LOCAL) or any(part in words for part in ("nfs", "efs", "cephfs", "file"))


RULES = (shared_claims,)
TREE = ()
