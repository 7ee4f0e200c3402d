"""The pods of a served model: one server on the GPUs of one node, or a leader and its workers on several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blueprint.catalog.vllm import ENGINE_NOTE, MODEL_NOTE, VERSION_NOTE
from blueprint.render import slo, traffic, vllm
from blueprint.render.names import name
from blueprint.render.queues import priority
from blueprint.render.served import LEAVE, ROLE, WEIGHTS_WAIT, Served
from blueprint.render.training import TAS, Volume

#: Names all files of a folder of weights with their digests; whoever brings weights writes it last.
MANIFEST = "SHA256SUMS"

#: Seconds beside those of leaving and draining, in which the engine frees its GPUs.
_EXIT = 15
_TMP, _CACHE, _ADAPTERS = "10Gi", "20Gi", "10Gi"
_INIT = {"cpu": "1", "memory": "1Gi"}

_SYNC = """\
waited=0
until [ -s "$1/$2" ]; do
  if [ "$waited" -ge "$3" ]; then
    echo "the claim has no complete weights in $1: $2 is missing" >&2
    exit 1
  fi
  sleep 10
  waited=$((waited + 10))
done
while read -r digest file || [ -n "$file" ]; do
  if [ ! -s "$1/${file#\\*}" ]; then
    echo "$2 names $file, which is missing or empty in $1" >&2
    exit 1
  fi
done < "$1/$2"
"""
_COPY = """\
from="$1" to="$2"
shift 2
while [ "$#" -gt 0 ]; do
  mkdir -p "$to/$1"
  cp -R "$from/$2/." "$to/$1/"
  shift 2
done
"""


@dataclass(frozen=True, slots=True)
class Step:
    """An init container: a shell script, its arguments, and what it mounts as (volume, path, read-only)."""

    name: str
    script: str
    args: Sequence[str]
    mounts: Sequence[Volume]


def pod(served: Served, *, worker: bool = False) -> dict[str, Any]:
    """The pod spec of a replica; with `worker` that of a pod which helps a leader and serves nothing.

    Requests are limits, so the pod is Guaranteed and the kubelet can give it whole cores of one NUMA node beside its
    GPUs (kubernetes.io docs/tasks/administer-cluster/topology-manager).
    """
    spec = served.spec
    resources = {"cpu": spec.gpus.cpu, "memory": spec.gpus.memory}
    if not served.by_claim:
        resources[served.resource] = str(spec.gpus.gpus_per_pod)
    bounds = slo.bounds(served)
    return served.site.templates.render(
        "ServingPod",
        source=served.document.source,
        service_account=served.account,
        priority_class=priority(spec.priority),
        grace=LEAVE + served.drain + _EXIT,
        claim=claim_template(served) if served.by_claim else None,
        selector=served.selector,
        init=_steps(served, worker),
        init_image=served.site.cluster.spec.tools_image or spec.engine.image,
        init_resources=_INIT,
        image=spec.engine.image,
        args=vllm.worker_arguments(served, bounds) if worker else vllm.arguments(served, bounds),
        env=vllm.environment(served),
        ports=None if worker else traffic.ports(served),
        serves=not worker,
        start_tries=served.start // 10,
        # Workers stay until the leader has answered what is under way.
        leave=LEAVE + served.drain if worker else LEAVE,
        resources=resources,
        volumes=_volumes(served, worker),
    )


def pod_labels(served: Served, *, worker: bool = False) -> dict[str, str]:
    """Labels of a pod. A group has the queue's on itself; a single pod stands in the queue by its own."""
    found = {**served.labels, **traffic.sidecar_labels(served, serves=not worker)}
    if served.grouped:
        return {**found, ROLE: "worker" if worker else "leader"}
    return {**found, **served.queued}


def pod_annotations(served: Served, *, worker: bool = False) -> dict[str, str]:
    """Annotations of a pod: what serves what, its sidecar, and its wish for a place where the pool knows racks.

    An image by digest and a folder of weights tell no reader of the tree what the server can do. A queue of a pool with
    racks takes no pod without a wish. Leader and workers are two pod sets that one group name places as one
    (kueue v0.17.0 pkg/controller/jobframework/tas_validation.go).
    """
    notes = {ENGINE_NOTE: "vllm", VERSION_NOTE: served.spec.engine.vllm, MODEL_NOTE: served.spec.model}
    notes |= {} if worker else traffic.sidecar_annotations(served)
    if served.pool.racks and served.grouped:
        rack = served.site.cluster.spec.topology.rack
        notes |= {f"{TAS}-preferred-topology": rack, f"{TAS}-group-name": "replica"}
    elif served.pool.racks:
        notes[f"{TAS}-unconstrained-topology"] = "true"
    return notes


def claim_template(served: Served) -> str:
    """The ResourceClaimTemplate of a service on a DRA pool."""
    return name("ResourceClaimTemplate", served.name, "gpus")


def _steps(served: Served, worker: bool) -> list[Step]:
    """First the weights of this very version, then each adapter's own copy."""
    weights = Volume("weights", vllm.WEIGHTS, read_only=True)
    steps = [Step("weights", _SYNC, [vllm.model_path(served), MANIFEST, str(WEIGHTS_WAIT)], [weights])]
    if served.spec.adapters and not worker:
        pairs = [text for adapter in served.spec.adapters for text in (adapter.name, adapter.path)]
        mounts = [weights, Volume("adapters", vllm.ADAPTERS)]
        steps.append(Step("adapters", _COPY, [vllm.WEIGHTS, vllm.ADAPTERS, *pairs], mounts))
    return steps


def _volumes(served: Served, worker: bool) -> list[Volume]:
    found = [
        Volume("weights", vllm.WEIGHTS, claim=served.spec.weights.claim, read_only=True),
        Volume("shm", "/dev/shm", size=served.shared_memory, memory=True),  # noqa: S108 - shared by the ranks
        Volume("tmp", "/tmp", size=_TMP),  # noqa: S108 - the root file system is read-only
        Volume("cache", vllm.CACHE, size=_CACHE),
    ]
    if served.spec.adapters and not worker:
        found.append(Volume("adapters", vllm.ADAPTERS, read_only=True, size=_ADAPTERS))
    return found
