"""Rules for the kernels of a cluster's nodes: how long threads wait for a CPU, and what programs in eBPF throw away.

A switch from one thread to another has no duration that a kernel counts. What it counts, for each CPU, is the time
that runnable threads waited and the number of times that one got its turn (`/proc/schedstat`): their ratio is how long
a switch is waited for. Cilium's datapath is made of eBPF programs, and counts what it drops. For the GPU itself there
is nothing of the kind: nvidia-uvm has no tracepoints, so that its limits are those of DCGM (`observability`).

Sources: prometheus/node_exporter collector/schedstat_linux.go; github.com/cilium/cilium@v1.20.2
pkg/maps/metricsmap/metricsmap.go, pkg/metrics/metrics.go, pkg/monitor/api/drop.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.render.alerts import alert
from blueprint.render.series import span
from blueprint.render.site import Site

#: Seconds that a thread may wait for its turn, on average over a node.
_LONGEST_WAIT = "0.015"
#: Share of packets that may be dropped, without those that a policy refuses: these are meant to be.
_DROPPED = "0.01"
_REFUSED = "Policy denied.*"
#: A full map of eBPF is one in which new connections, or rules, have no place.
_FULL_MAP = "0.9"


def groups(site: Site) -> Iterator[dict[str, Any]]:
    """Groups of rules: for every cluster with GPUs the waits, and with Cilium its datapath."""
    spec = site.cluster.spec
    window = span(max(300, 4 * spec.monitoring.scrape_interval.total_seconds()))
    if any(pool.gpus for pool in spec.node_pools):
        yield {"name": "cpu", "rules": list(_waits(window))}
    if spec.components.cilium:
        yield {"name": "ebpf", "rules": list(_datapath(window))}


def _waits(window: str) -> Iterator[dict[str, Any]]:
    waited, turns = (
        f"sum by (instance) (rate(node_schedstat_{what}_total[{window}]))" for what in ("waiting_seconds", "timeslices")
    )
    yield {"record": "instance:cpu_wait_seconds:mean", "expr": f"{waited} / {turns}"}
    yield alert(
        "CpuWaitLong",
        f"instance:cpu_wait_seconds:mean > {_LONGEST_WAIT}",
        "10m",
        "ticket",
        "threads on {{ $labels.instance }} wait {{ $value | humanizeDuration }} for a CPU",
        "GPUs idle while the thread that feeds them waits: more runs there than the node has cores.",
    )


def _datapath(window: str) -> Iterator[dict[str, Any]]:
    dropped = f'sum by (instance) (rate(cilium_drop_count_total{{reason!~"{_REFUSED}"}}[{window}]))'
    forwarded = f"sum by (instance) (rate(cilium_forward_count_total[{window}]))"
    yield alert(
        "PacketsDropped",
        f"{dropped} / ({dropped} + {forwarded}) > {_DROPPED}",
        "10m",
        "ticket",
        "the network of {{ $labels.instance }} drops {{ $value | humanizePercentage }} of its packets",
        "No policy refuses them: see the label reason of cilium_drop_count_total.",
    )
    yield alert(
        "EbpfMapFull",
        f"max by (instance, map_name) (cilium_bpf_map_pressure) > {_FULL_MAP}",
        "10m",
        "page",
        "the map {{ $labels.map_name }} on {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
        "When it is full, new connections or rules have no place: make it larger in Cilium's configuration.",
    )
