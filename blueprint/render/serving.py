"""Served models: what runs the pods of each, and what stands around them, in one Application a service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.finding import Ref
from blueprint.quantity import parse_quantity
from blueprint.render import capacity, replica, scaling, series, slo, speed, traffic, vllm
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.pools import device_class
from blueprint.render.served import Served, served
from blueprint.render.site import Site
from blueprint.render.tenancy import data_application, team_labels
from blueprint.spec import Document, InferenceService, Team

#: What runs the pods: API version and kind.
ROLLOUT = ("argoproj.io/v1alpha1", "Rollout")
DEPLOYMENT = ("apps/v1", "Deployment")
GROUPS = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")

_PORTS = [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "http"}]


def items(site: Site) -> Iterator[Item]:
    """Claims of weights, each once for its team, and the objects of each service."""
    yield from _claims(site)
    demand = capacity.demand(site)
    for service in served(site):
        yield from _service(service, capacity.room(service, demand))


def _claims(site: Site) -> Iterator[Item]:
    """One claim for all services that name it, as large as the largest wish, for many nodes at once."""
    claims: dict[tuple[str, str], tuple[Team, Document[InferenceService]]] = {}
    for service in served(site):
        weights = service.spec.weights
        key = (service.namespace, weights.claim)
        held = claims.get(key)
        if held is None or parse_quantity(weights.size) > parse_quantity(held[1].model.spec.weights.size):
            claims[key] = (service.team, service.document)
    for (namespace, claim), (team, document) in sorted(claims.items(), key=lambda pair: pair[0]):
        yield site.item(
            data_application(team),
            "PersistentVolumeClaim",
            document.source,
            name=claim,
            namespace=namespace,
            labels=team_labels(team),
            modes=["ReadWriteMany"],
            storage_class=site.cluster.spec.storage.shared,
            size=document.model.spec.weights.size,
        )


def _service(service: Served, room: capacity.Room) -> Iterator[Item]:
    plan = capacity.update(service, room)
    capacity.judge(service, room, plan)
    vllm.judge(service)
    speed.judge(service)
    yield service.item("ServiceAccount", name=service.account)
    yield service.item("Service", selector=service.entrance, ports=_PORTS)
    if service.routed:
        yield service.item("Service", name=service.canary_name, selector=service.entrance, ports=_PORTS)
    # One at a time: with one replica a drain of its node still goes on, and the service is away for a start.
    yield service.item("PodDisruptionBudget", selector=service.selector, unavailable=1)
    yield from traffic.objects(service)
    if service.by_claim:
        yield service.item(
            "ResourceClaimTemplate",
            name=replica.claim_template(service),
            device_class=device_class(service.pool),
            count=service.spec.gpus.gpus_per_pod,
        )
    if service.watched:
        slo.measurable(service)
        yield from series.monitor(service)
        yield from slo.rules(service)
    api_version, kind = _kind(service)
    workload = workload_name(service)
    if kind == "LeaderWorkerSet":
        yield _groups(service, plan, workload)
    elif kind == "Rollout":
        slo.judge_pause(service)
        yield from slo.analysis(service)
        yield _rollout(service, plan, workload)
    else:
        yield service.item("Deployment", **_common(service, workload), surge=plan.surge, gap=plan.gap)
    if service.scaled:
        yield from scaling.scaler(service, api_version, kind, workload)


def _kind(service: Served) -> tuple[str, str]:
    if service.grouped:
        return GROUPS
    return ROLLOUT if service.rollout else DEPLOYMENT


def workload_name(service: Served) -> str:
    """The name of what runs the pods.

    LeaderWorkerSet makes a headless Service of its own name for its pods (lws v0.7.0 pkg/utils/controller), so it must
    not have the name of ours.
    """
    _, kind = _kind(service)
    return name(kind, service.name, "group") if service.grouped else name(kind, service.name)


def _common(service: Served, workload: str) -> dict[str, Any]:
    """What a Rollout and a Deployment have in common; a number of replicas that load decides is not written."""
    return {
        "name": workload,
        "replicas": None if service.scaled else service.replicas.min,
        "deadline": service.deadline,
        "selector": service.selector,
        "pod_labels": replica.pod_labels(service),
        "pod_annotations": replica.pod_annotations(service),
        "pod": replica.pod(service),
        "needs": _queue(service),
    }


def _queue(service: Served) -> tuple[Ref, ...]:
    """The queue and priority that the pods' labels name."""
    queue, level = service.queued.values()
    group = "kueue.x-k8s.io"
    return (
        Ref(group, "LocalQueue", service.namespace, queue),
        Ref(group, "WorkloadPriorityClass", "", level),
    )


def _rollout(service: Served, plan: capacity.Update, workload: str) -> Item:
    """A canary: at each share the window fills, then the analysis decides; without verdict it waits for a person.

    It is aborted, too, when its pods do not come in time, and traffic goes back to the stable version at once.
    """
    trial = slo.trial(service)
    shares = service.rollout.canary if service.rollout else ()
    return service.item(
        "Rollout",
        **_common(service, workload),
        stable=service.name if service.routed else None,
        canary=service.canary_name if service.routed else None,
        route={"name": service.name, "routes": [traffic.ROUTE]} if service.routed else None,
        dynamic=True if plan.dynamic else None,
        surge=None if service.routed else plan.surge,
        gap=None if service.routed else plan.gap,
        weights=capacity.percents(shares),
        fill=series.span(trial.window),
        analysis=slo.analysis_name(service),
        argument=slo.CANARY_HASH,
    )


def _groups(service: Served, plan: capacity.Update, workload: str) -> Item:
    """A LeaderWorkerSet: each replica is a leader with its workers, admitted, started and restarted as one."""
    return service.item(
        "LeaderWorkerSet",
        name=workload,
        labels={**service.labels, **service.queued},
        replicas=None if service.scaled else service.replicas.min,
        size=service.spec.gpus.nodes,
        surge=plan.surge,
        gap=plan.gap,
        leader_labels=replica.pod_labels(service),
        leader_annotations=replica.pod_annotations(service),
        leader=replica.pod(service),
        worker_labels=replica.pod_labels(service, worker=True),
        worker_annotations=replica.pod_annotations(service, worker=True),
        worker=replica.pod(service, worker=True),
    )
