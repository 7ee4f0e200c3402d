import re
from typing import Any

import pytest

from blueprint.catalog.metrics import platform_metric
from blueprint.render.observability import items
from tests.render.queries import selectors
from tests.render.sites import Objects, site

CPU_ONLY = {"nodePools": [{"name": "system", "nodes": 1, "cpu": 8, "memory": "32Gi"}]}


def rules(cluster: dict[str, Any] | None = None) -> list[dict[str, Any]]:
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
                series = {"exported_pod", "exported_namespace"} | set(metric.labels)
                assert set(one.labels) <= series, one


def test_labels_of_messages_are_labels_of_the_series() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", str(rule.get("annotations", {}))))
        metric = platform_metric(selectors(rule["expr"])[0].metric)
        if used and metric is not None:
            assert used <= {"exported_pod", "exported_namespace", *metric.labels}, rule["alert"]


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


@pytest.mark.parametrize(("scrape", "window"), [("15s", 1800), ("5m", 1800)])
def test_windows_hold_four_scrapes(scrape: str, window: int) -> None:
    windows = {
        one.window
        for rule in rules({"monitoring.scrapeInterval": scrape})
        for one in selectors(rule["expr"])
        if one.metric.endswith("_bucket")
    }
    assert windows == {window}
