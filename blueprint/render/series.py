"""The series of a served model: how they are scraped, and the PromQL that selects and counts them.

The pods of a service are found by their own labels, which the monitor puts on every series; the hash of the pod
template tells a canary from the stable version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.catalog.series import label_name
from blueprint.render.plan import Item
from blueprint.render.pools import TEAM_LABEL
from blueprint.render.served import APP, COMPONENT, Served

HASH = "rollouts-pod-template-hash"

#: One engine exposes some 350 series; with a sidecar each client workload adds some 150 for each class of answer. A
#: target above the limit fails as a whole, which its alert says: better than a Prometheus that falls over.
_SAMPLES = {False: 1500, True: 5000}
_LABELS = 64
#: Longer than any name of ours and shorter than a prompt.
_VALUE_LENGTH = 256
#: What is kept; a sidecar and the Python runtime expose more.
_KEPT = "(vllm:|http_|istio_|process_).*"
#: Each combination of adapters under way would be a series of its own, and creation times are a third of all series.
_DROPPED = "vllm:lora_requests_info|.*_created"


def monitor(served: Served) -> Iterator[Item]:
    """The PodMonitor; the pods of a group that serve nothing have no metrics."""
    monitoring = served.site.cluster.spec.monitoring
    yield served.item(
        "PodMonitor",
        labels={**served.labels, **monitoring.labels},
        selector=served.entrance,
        pod_labels=[APP, COMPONENT, TEAM_LABEL, *([HASH] if served.rollout else [])],
        samples=_SAMPLES[served.meshed],
        label_limit=_LABELS,
        value_length=_VALUE_LENGTH,
        port="metrics" if served.meshed else "http",
        path="/stats/prometheus" if served.meshed else "/metrics",
        interval=span(monitoring.scrape_interval.total_seconds()),
        relabelings=[
            {"action": "keep", "sourceLabels": ["__name__"], "regex": _KEPT},
            {"action": "drop", "sourceLabels": ["__name__"], "regex": _DROPPED},
        ],
    )


def span(seconds: float) -> str:
    """A duration in PromQL's form, in the largest unit that divides it: 5m, 1h, 3d, 500ms."""
    milliseconds = round(seconds * 1000)
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % length == 0:
            return f"{milliseconds // length}{unit}"
    return f"{milliseconds}ms"


@dataclass(frozen=True, slots=True)
class Selector:
    """Label matchers; `str` writes them with their braces, so that they stand behind a metric's name."""

    matchers: tuple[str, ...]

    def __str__(self) -> str:
        return "{" + ",".join(self.matchers) + "}"

    def having(self, *more: str) -> Selector:
        """The same with more matchers."""
        return Selector((*self.matchers, *more))


def label(key: str) -> str:
    """The label of a series that a pod's label becomes: every other character is an underscore."""
    return label_name(key)


def pods(served: Served) -> Selector:
    """The series of all pods of the service."""
    return Selector((f'namespace="{served.namespace}"', f'{label(APP)}="{served.name}"'))


def canary(served: Served, argument: str) -> Selector:
    """The series of the version on trial; Argo Rollouts puts the hash in the place of the argument."""
    return pods(served).having(f'{label(HASH)}="{{{{args.{argument}}}}}"')


@dataclass(frozen=True, slots=True)
class Requests:
    """The counter of answered requests, and the matchers that pick ours, and the failed ones among them."""

    metric: str
    ours: tuple[str, ...]
    failed: str

    def rate(self, of: Selector, window: str, *, failed: bool = False) -> str:
        """Requests per second, as one series without labels."""
        chosen = of.having(*self.ours, *([self.failed] if failed else []))
        return f"sum(rate({self.metric}{chosen}[{window}]))"


def requests(served: Served) -> Requests:
    """With a sidecar its own count, by the one reporter that sees each request once; else that of vLLM's HTTP server.

    `vllm:request_success_total` counts requests that ended, in whatever way, and none that was refused.
    """
    if served.meshed:
        return Requests("istio_requests_total", ('reporter="destination"',), 'response_code=~"5.."')
    return Requests("http_requests_total", ('handler=~"/v1/.*"',), 'status="5xx"')
