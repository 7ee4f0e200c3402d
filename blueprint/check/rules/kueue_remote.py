"""MultiKueue: worker clusters that a configuration names and the manager does not have.

Source: kueue v0.19.2 pkg/controller/admissionchecks/multikueue/admissioncheck.go (SomeActiveClusters and
NoUsableClusters).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph
from blueprint.check.rules.kueue_paths import closest
from blueprint.check.rules.say import say
from blueprint.check.shapes import known, mapping, texts
from blueprint.finding import Finding

_CLUSTER, _CONFIG = "MultiKueueCluster.kueue.x-k8s.io", "MultiKueueConfig.kueue.x-k8s.io"


def missing_clusters(graph: Graph) -> Iterator[Finding]:
    """KQ808: a MultiKueueConfig names a MultiKueueCluster that is not there, though others are."""
    if not graph.closed(_CLUSTER):
        return
    there = {manifest.ref.name for manifest in graph.kind(_CLUSTER)}
    for manifest in graph.kind(_CONFIG):
        names = texts(mapping(manifest.body.get("spec")).get("clusters"))
        missing = [name for name in names if known(name) and name not in there]
        for index, name in enumerate(names):
            if name in missing:
                message = f"there is no MultiKueueCluster {name}: no job is sent to it"
                if len(missing) == len(names):
                    message += ", and the admission check has no usable cluster (NoUsableClusters)"
                fix = closest(name, [*there]) or "add the MultiKueueCluster"
                yield say("KQ808", manifest, message, f"spec.clusters[{index}]", fix)


RULES = (missing_clusters,)
TREE = ()
