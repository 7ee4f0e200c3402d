"""Rules for the machines of a cluster: broken and wasted GPUs, and how well the queues use them. See also `kernel`.

Metrics of DCGM exporter and their units, and those of Kueue 0.17 and kube-state-metrics, are in the table `metrics`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.render import kernel
from blueprint.render.alerts import alert
from blueprint.render.plan import Item
from blueprint.render.site import MANAGED_BY, Site

APPLICATION = "observability"

#: Xid numbers after which a GPU needs a reset, a drain or a repair, whatever ran on it: double-bit and uncontained ECC
#: errors, failed row remapping, NVLink, a GPU that fell off the bus, GSP (docs.nvidia.com/deploy/xid-errors).
_FATAL_XIDS = (48, 64, 74, 79, 95, 119, 120)
#: The GPU's own limit is near 90 °C; a server's fans hold it below 80 °C.
_HOT = 87
#: vLLM fills its part by design: only what is above leaves no room for the next allocation.
_FULL = "0.98"
_IDLE = "0.02"
#: Of waits in a queue, of which there are few; a spec's longest scrape interval (5m) fits in it more than four times.
_WINDOW = "30m"


def items(site: Site) -> Iterator[Item]:
    """A PrometheusRule each for queues, GPUs and the kernels of nodes, where the Prometheus that reads them is."""
    spec = site.cluster.spec
    if spec.components.prometheus_operator is None:
        return
    groups = {"queues": list(_queues())}
    if any(pool.gpus for pool in spec.node_pools):
        groups["gpus"] = [{"name": "gpus", "rules": list(_gpus())}]
        groups["queues"] += list(_nodes())
    if kernels := list(kernel.groups(site)):
        groups["kernels"] = kernels
    for name, content in groups.items():
        yield site.item(
            APPLICATION,
            "PrometheusRule",
            site.document.source,
            name=f"platform-{name}",
            namespace=spec.monitoring.namespace,
            labels={**MANAGED_BY, **spec.monitoring.labels},
            groups=content,
        )


def _gpus() -> Iterator[dict[str, Any]]:
    """Alerts on single GPUs. DCGM_FI_DEV_XID_ERRORS is the number of the last error, and stays until the next."""
    where = "GPU {{ $labels.gpu }} of {{ $labels.hostname }}"
    fatal = " or ".join(f"DCGM_FI_DEV_XID_ERRORS == {number}" for number in _FATAL_XIDS)
    yield alert(
        "GpuBroken",
        fatal,
        "1m",
        "page",
        f"{where} reports Xid {{{{ $value }}}}",
        "Drain the node: what runs on this GPU fails or gives wrong results until it is reset or repaired.",
    )
    yield alert(
        "GpuErrors",
        "changes(DCGM_FI_DEV_XID_ERRORS[15m]) > 0 and DCGM_FI_DEV_XID_ERRORS > 0",
        "0m",
        "ticket",
        f"{where} reports new errors",
        "Xids 13, 31 and 43 come from the program that runs there; see the node's kernel log.",
    )
    yield alert(
        "GpuRowsNotRemapped",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        "5m",
        "page",
        f"{where} has no spare rows of memory left",
        "The GPU is due for replacement.",
    )
    yield alert(
        "GpuHot",
        f"DCGM_FI_DEV_GPU_TEMP > {_HOT}",
        "10m",
        "ticket",
        f"{where} is {{{{ $value }}}} degrees Celsius hot",
        "It lowers its clock, and every other GPU of the same job waits for it.",
    )
    used, free, kept = (f"DCGM_FI_DEV_FB_{part}" for part in ("USED", "FREE", "RESERVED"))
    yield alert(
        "GpuMemoryFull",
        f"{used} / ({used} + {free} + {kept}) > {_FULL}",
        "15m",
        "ticket",
        f"{where} has no memory left",
        "The next allocation of what runs there may fail.",
    )
    yield alert(
        "GpuHeldIdle",
        f'max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{exported_pod!=""}}[2h]) < {_IDLE}',
        "30m",
        "ticket",
        f"{where} has been idle for two hours and is held",
        "{{ $labels.exported_namespace }}/{{ $labels.exported_pod }} holds it.",
    )


def _queues() -> Iterator[dict[str, Any]]:
    """How long work waits, how much quota is used, and why work is thrown out."""
    gpus = 'resource!~"cpu|memory"'
    # The largest, not the sum: each replica of Kueue reports (label replica_role).
    by = "max by (cluster_queue, flavor, resource)"
    reserved = f"{by} (kueue_cluster_queue_resource_reservation{{{gpus}}})"
    nominal = f"{by} (kueue_cluster_queue_nominal_quota{{{gpus}}})"
    rules: list[dict[str, Any]] = [
        _quantile("cluster_queue:admission_wait_seconds", "kueue_admission_wait_time_seconds"),
        _quantile("cluster_queue:start_seconds", "kueue_admitted_until_ready_wait_time_seconds"),
        {"record": "cluster_queue:reserved_gpus:max", "expr": reserved},
        {"record": "cluster_queue:nominal_gpus:max", "expr": nominal},
        {
            "record": "flavor:reserved_gpus:ratio",
            "expr": "sum by (flavor, resource) (cluster_queue:reserved_gpus:max) / "
            "sum by (flavor, resource) (cluster_queue:nominal_gpus:max)",
        },
        {
            "record": "cluster_queue:evictions:rate1h",
            "expr": "sum by (cluster_queue, reason, underlying_cause) (rate(kueue_evicted_workloads_total[1h]))",
        },
        alert(
            "GpusIdleWhileWorkWaits",
            'max by (cluster_queue) (kueue_pending_workloads{status="active"}) > 0 and on (cluster_queue) '
            "max by (cluster_queue) (cluster_queue:nominal_gpus:max - cluster_queue:reserved_gpus:max) > 0",
            "2h",
            "ticket",
            "work waits in {{ $labels.cluster_queue }} although it has quota left",
            "What waits asks for more than what is free, or for free GPUs that are not on one node or in one rack.",
        ),
        alert(
            "QueueStuck",
            'max by (cluster_queue) (kueue_pending_workloads{status="inadmissible"}) > 0',
            "1d",
            "ticket",
            "work in {{ $labels.cluster_queue }} cannot be admitted for a day",
            "Ask Kueue for the reason: the condition QuotaReserved of the Workload.",
        ),
    ]
    yield {"name": "queues", "rules": rules}


def _quantile(record: str, histogram: str) -> dict[str, Any]:
    return {
        "record": f"{record}:p90",
        "expr": f"histogram_quantile(0.9, sum by (cluster_queue, le) (rate({histogram}_bucket[{_WINDOW}])))",
    }


def _nodes() -> Iterator[dict[str, Any]]:
    """GPUs that are free, and those of them on nodes where others are taken: a job of whole nodes cannot use them."""
    resource = 'resource="nvidia_com_gpu"'
    running = '(kube_pod_status_phase{phase=~"Pending|Running"} == 1)'
    requests = f"kube_pod_container_resource_requests{{{resource}}}"
    taken = f"sum by (node) ({requests} * on (namespace, pod) group_left () max by (namespace, pod) {running})"
    there = f"sum by (node) (kube_node_status_allocatable{{{resource}}})"
    yield {
        "name": "nodes",
        "rules": [
            {"record": "node:gpus:sum", "expr": there},
            {"record": "node:free_gpus:sum", "expr": f"node:gpus:sum - ({taken} or node:gpus:sum * 0)"},
            {
                "record": "cluster:split_gpus:sum",
                "expr": "sum(node:free_gpus:sum and (node:free_gpus:sum < node:gpus:sum)) or vector(0)",
            },
            {"record": "cluster:free_gpus:sum", "expr": "sum(node:free_gpus:sum)"},
        ],
    }
