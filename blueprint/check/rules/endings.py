"""How pods end: a hook that sleeps for longer than the pod gets.

Source: k8s.io/kubernetes v1.35.4 pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer: the hook runs within
the grace period, and then the container is killed).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph, labels_of
from blueprint.check.hooks import sleeps
from blueprint.check.pods import containers
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import mapping, number, placeholder
from blueprint.finding import Finding

_GRACE = 30
_QUEUE = "kueue.x-k8s.io/queue-name"


def short_grace(graph: Graph) -> Iterator[Finding]:
    """NAT119: the hook before the end sleeps for as long as the pod gets to end; of queued jobs KQ218 tells."""
    for manifest, pod in graph.pods:
        written = pod.spec.get("terminationGracePeriodSeconds")
        grace = number(written, _GRACE)
        if placeholder(written) or grace is None or _QUEUE in labels_of(manifest.body):
            continue
        for place, container in containers(pod.spec):
            hook = mapping(mapping(container.get("lifecycle")).get("preStop"))
            seconds = sleeps(hook) if hook else None
            if seconds is None or seconds < grace or (number(mapping(hook.get("sleep")).get("seconds")) or 0) > grace:
                continue  # the API server itself refuses the last (NAT107)
            message = f"preStop sleeps for {seconds} s and the pod gets {grace} s to end: the process is killed"
            path = f"{pod.spec_path}.{place}.lifecycle.preStop"
            how = say if seconds > grace else warn
            yield how("NAT119", manifest, message, path, f"terminationGracePeriodSeconds above {seconds}")


RULES = (short_grace,)
TREE = ()
