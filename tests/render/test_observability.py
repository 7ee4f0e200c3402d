import re
from typing import Any

import pytest

from blueprint.catalog.metrics import platform_metric
from blueprint.render.observability import items
from tests.render.queries import selectors
from tests.render.sites import Objects, site

CPU_ONLY = {"nodePools": [{"name": "system", "nodes": 1, "cpu": 8, "memory": "32Gi"}]}


def rules(cluster: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    cluster = {"components": {"cilium": "1.20.2"}} if cluster is None else cluster
    found = Objects(items(site({}, cluster=cluster))).all("PrometheusRule")
    return [rule for body in found for group in body["spec"]["groups"] for rule in group["rules"]]


def test_every_metric_exists() -> None:
    own = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        found = selectors(rule["expr"])
        assert found
        for one in found:
            if one.metric not in own:
                metric = platform_metric(one.metric)
                assert metric is not None, one.metric
                assert ("rate" in one.inside) == (metric.type in ("counter", "histogram")), one.metric
                series = {"exported_pod", "exported_namespace", "instance"} | set(metric.labels)
                assert set(one.labels) <= series, one


def test_labels_of_messages_are_labels_of_the_series() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", str(rule.get("annotations", {}))))
        metric = platform_metric(selectors(rule["expr"])[0].metric)
        if used and metric is not None:
            assert used <= {"exported_pod", "exported_namespace", "instance", *metric.labels}, rule["alert"]


def test_an_xid_is_a_number_and_not_a_count() -> None:
    for rule in rules():
        for one in selectors(rule["expr"]):
            if one.metric == "DCGM_FI_DEV_XID_ERRORS":
                assert not {"rate", "increase", "sum"} & set(one.inside)
    [broken] = [rule for rule in rules() if rule.get("alert") == "GpuBroken"]
    assert "== 79" in broken["expr"]
    assert "== 31" not in broken["expr"]  # a page fault of the program


def test_thresholds_are_in_the_units_of_the_metrics() -> None:
    by_name = {rule["alert"]: rule["expr"] for rule in rules() if "alert" in rule}
    assert float(by_name["GpuHeldIdle"].rpartition("<")[2]) < 1  # a ratio, not a percentage
    assert float(by_name["GpuMemoryFull"].rpartition(">")[2]) < 1  # MiB by MiB
    assert 80 < float(by_name["GpuHot"].rpartition(">")[2]) < 95


def test_several_replicas_of_kueue_do_not_count_twice() -> None:
    for rule in rules():
        for one in selectors(rule["expr"]):
            metric = platform_metric(one.metric)
            if metric and metric.family.name == "kueue" and metric.type == "gauge":
                assert one.inside[-1] == "max", rule


def test_rules_stand_where_prometheus_reads_them() -> None:
    for body in Objects(items(site({}, cluster={"monitoring.namespace": "watch"}))).all("PrometheusRule"):
        assert body["metadata"]["namespace"] == "watch"
        assert body["metadata"]["labels"]["release"] == "monitoring"


def test_without_gpus_there_is_nothing_to_say_of_them() -> None:
    for rule in rules(CPU_ONLY):
        assert not any(one.metric.startswith(("DCGM", "kube_")) for one in selectors(rule["expr"]))
    assert rules(CPU_ONLY)


def test_without_the_operator_there_is_nothing() -> None:
    assert rules({"components": {"prometheusOperator": None}}) == []


@pytest.mark.parametrize("scrape", ["15s", "2m", "5m"])
def test_windows_hold_four_scrapes(scrape: str) -> None:
    cluster = {"monitoring.scrapeInterval": scrape, "components": {"cilium": "1.20.2"}}
    windows = {
        one.window
        for rule in rules(cluster)
        for one in selectors(rule["expr"])
        if {"rate", "increase"} & set(one.inside)
    }
    assert min(windows) >= 4 * {"15s": 15, "2m": 120, "5m": 300}[scrape]


def test_a_switch_of_threads_is_waited_for_no_longer_than_15_ms() -> None:
    recorded = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
    waits = recorded["instance:cpu_wait_seconds:mean"]
    assert [one.metric for one in selectors(waits)] == [
        "node_schedstat_waiting_seconds_total",
        "node_schedstat_timeslices_total",
    ]
    [alert] = [rule for rule in rules() if rule.get("alert") == "CpuWaitLong"]
    assert alert["expr"] == "instance:cpu_wait_seconds:mean > 0.015"  # both sides in seconds


def test_the_datapath_is_watched_only_where_it_is_cilium() -> None:
    ebpf = {"PacketsDropped", "EbpfMapFull"}
    assert ebpf <= {rule.get("alert") for rule in rules()}
    assert not ebpf & {rule.get("alert") for rule in rules({})}
    [dropped] = [rule for rule in rules() if rule.get("alert") == "PacketsDropped"]
    assert 'reason!~"Policy denied.*"' in dropped["expr"]  # what a policy refuses is meant to be dropped
