"""Scaling: a ScaledObject that follows the recorded load of a service."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from blueprint.render import slo
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.served import Served

#: The longest stabilization window (k8s.io/kubernetes v1.35.4 pkg/apis/autoscaling/validation/validation.go).
_LONGEST = 3600
_SHORTEST = 300


def scaler(served: Served, api_version: str, kind: str, target: str) -> Iterator[Item]:
    """The ScaledObject of a workload whose replicas differ.

    The query gives one series for the whole service, so its value is divided by the replicas (AverageValue). Nothing
    instead of a number is an error, not zero, and then the number of replicas stays or rises to the least: a Prometheus
    that is away must not take GPUs from a service. Replicas come fast and go slowly, since loading takes minutes.
    """
    replicas = served.replicas
    record = slo.waiting_record(served) if replicas.scale_on == "waiting-requests" else slo.rate_record(served)
    load = served.spec.weights.load_time.total_seconds()
    yield served.item(
        "ScaledObject",
        name=name("ScaledObject", served.name),
        target={"apiVersion": api_version, "kind": kind, "name": target},
        least=replicas.min,
        most=replicas.max,
        address=served.site.cluster.spec.monitoring.address,
        query=f'sum({record}{{namespace="{served.namespace}",service="{served.name}"}})',
        threshold=_number(replicas.target),
        trigger=replicas.scale_on,
        settle=int(min(max(2 * load, _SHORTEST), _LONGEST)),
    )


def _number(target: Decimal | int | None) -> str:
    return str(target) if target is None or isinstance(target, int) else slo.plain(target)
