import math
import re
from decimal import Decimal
from typing import Any

import pytest

from blueprint.catalog import vllm as facts
from blueprint.catalog.metrics import platform_metric
from blueprint.finding import Severity
from blueprint.render import slo, vllm
from blueprint.render.series import label, span
from blueprint.render.serving import items
from tests.render.queries import selectors
from tests.render.sites import Objects, one, rendered, site

PROMISES = {"firstToken": {"p90": "800ms"}, "latency": {"p95": "200ms"}, "outputRate": "120/s", "errors": "0.5%"}
FULL = {
    "slo": PROMISES,
    "rollout": {"canary": ["5%", "50%"], "pause": "10m"},
    "replicas": {"min": 1, "max": 3, "scaleOn": "waiting-requests", "target": 8},
}
MESHES: list[dict[str, Any]] = [{}, {"components": {"istio": None}, "gateway": None}]


def rules(objects: Objects) -> list[dict[str, Any]]:
    return [rule for group in objects["PrometheusRule"]["spec"]["groups"] for rule in group["rules"]]


def recorded(objects: Objects) -> set[str]:
    return {rule["record"] for rule in rules(objects) if "record" in rule}


def analysed(objects: Objects) -> dict[str, dict[str, Any]]:
    return {metric["name"]: metric for metric in objects["AnalysisTemplate"]["spec"]["metrics"]}


def query(metric: dict[str, Any]) -> str:
    return str(metric["provider"]["prometheus"]["query"])


def every_query(objects: Objects) -> list[str]:
    scaler = objects["ScaledObject"]["spec"]["triggers"][0]["metadata"]["query"]
    return [*(rule["expr"] for rule in rules(objects)), *map(query, analysed(objects).values()), scaler]


@pytest.mark.parametrize("cluster", MESHES)
def test_every_series_exists_in_the_pinned_versions(cluster: dict[str, Any]) -> None:
    objects = rendered(FULL, cluster=cluster)
    own = recorded(objects)
    for text in every_query(objects):
        for found in selectors(text):
            if found.metric.startswith("service:"):
                assert found.metric in own
                assert found.labels == {"namespace": "chat", "service": "chat"}
            elif found.metric.startswith("vllm:"):
                answer = facts.metric(found.metric, "0.33.0")
                assert answer.presence is facts.Presence.PRESENT, found.metric
                assert not any(metric.hidden for metric in answer.metrics)
            else:
                assert platform_metric(found.metric) is not None, found.metric


@pytest.mark.parametrize("cluster", MESHES)
def test_counters_are_rated_and_gauges_are_not(cluster: dict[str, Any]) -> None:
    for text in every_query(rendered(FULL, cluster=cluster)):
        for found in selectors(text):
            if found.metric.startswith("service:"):
                continue
            if found.metric.startswith("vllm:num_requests"):
                assert "rate" not in found.inside
            else:
                assert "rate" in found.inside, text


@pytest.mark.parametrize("scrape", ["5s", "15s", "30s", "2m"])
def test_windows_hold_four_scrapes(scrape: str) -> None:
    objects = rendered(FULL, cluster={"monitoring.scrapeInterval": scrape})
    interval = objects["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["interval"]
    assert interval == scrape
    seconds = {"5s": 5, "15s": 15, "30s": 30, "2m": 120}[scrape]
    windows = [found.window for text in every_query(objects) for found in selectors(text) if found.window]
    assert min(windows) >= 4 * seconds


def test_thresholds_are_buckets() -> None:
    objects = rendered(FULL)
    service = one(FULL)
    custom = vllm.custom_buckets(slo.bounds(service), "0.33.0")
    keys = {bound.metric: bound.buckets for bound in slo.bounds(service)}
    seen = set()
    for text in every_query(objects):
        for found in selectors(text):
            if "le" in found.labels:
                metric = found.metric.removesuffix("_bucket")
                assert found.labels["le"] in {vllm.le(b) for b in custom[keys[metric]]}
                seen.add(metric)
    assert len(seen) == 3


def test_an_output_rate_is_a_time_for_each_token_that_is_not_longer() -> None:
    [bound] = slo.bounds(one({"slo": {"outputRate": "120/s"}}))
    assert bound.seconds == 0.008333
    assert bound.seconds <= 1 / 120


@pytest.mark.parametrize(
    ("promise", "severities"),
    [
        ({"errors": "0.5%"}, ["page", "page", "ticket", "ticket"]),
        ({"firstToken": {"p95": "500ms"}}, ["page", "page", "ticket", "ticket"]),
        ({"firstToken": {"p90": "500ms"}}, ["page", "ticket", "ticket"]),  # 14.4 times 10 % is more than all
        ({"firstToken": {"p50": "500ms"}}, ["ticket"]),
        ({"errors": "0%"}, ["page", "page", "ticket", "ticket"]),
    ],
)
def test_only_rates_are_watched_at_which_a_budget_can_burn(promise: dict[str, Any], severities: list[str]) -> None:
    alerts = [rule for rule in rules(rendered({"slo": promise})) if rule.get("alert", "").endswith("BudgetBurns")]
    assert [alert["labels"]["severity"] for alert in alerts] == severities
    for alert in alerts:
        [long, short] = re.findall(r"ratio_rate\w+{[^}]*} > ([0-9.]+)", alert["expr"])
        assert long == short
        assert Decimal(long) < 1


def test_a_burn_is_seen_in_a_long_and_a_short_window_with_enough_requests() -> None:
    alert = next(
        rule for rule in rules(rendered({"slo": {"errors": "0.5%"}})) if rule.get("alert") == "ErrorsBudgetBurns"
    )
    names = [found.metric for found in selectors(alert["expr"])]
    assert names == [
        "service:failed_requests:ratio_rate1h",
        "service:failed_requests:ratio_rate5m",
        "service:requests:rate1h",
    ]
    assert "> 0.072" in alert["expr"]


def test_rules_carry_the_labels_by_which_others_find_them() -> None:
    objects = rendered(FULL)
    assert objects["PrometheusRule"]["metadata"]["labels"]["release"] == "monitoring"
    assert objects["PodMonitor"]["metadata"]["labels"]["release"] == "monitoring"
    for rule in rules(objects):
        assert rule["labels"].items() >= {"namespace": "chat", "service": "chat", "team": "chat"}.items()


@pytest.mark.parametrize("cluster", MESHES)
def test_the_analysis_sees_the_canary_only(cluster: dict[str, Any]) -> None:
    objects = rendered(FULL, cluster=cluster)
    [argument] = objects["AnalysisTemplate"]["spec"]["args"]
    targets = {label(key) for key in objects["PodMonitor"]["spec"]["podTargetLabels"]}
    for metric in analysed(objects).values():
        for found in selectors(query(metric)):
            assert found.labels["rollouts_pod_template_hash"] == "x"
            assert found.labels["app_kubernetes_io_name"] == "chat"
            assert {"rollouts_pod_template_hash", "app_kubernetes_io_name"} <= targets
        assert f"{{{{args.{argument['name']}}}}}" in query(metric)
    for step in objects["Rollout"]["spec"]["strategy"]["canary"]["steps"]:
        if "analysis" in step:
            assert step["analysis"]["args"] == [
                {"name": argument["name"], "valueFrom": {"podTemplateHashValue": "Latest"}}
            ]


def test_each_promise_is_judged_and_so_is_the_volume() -> None:
    assert list(analysed(rendered(FULL))) == ["volume", "first-token", "latency", "output-rate", "errors"]


def _holds(condition: str, result: list[float]) -> bool:
    text = condition.replace("&&", "and").replace("!isNaN", "not isNaN")
    return bool(eval(text, {"isNaN": math.isnan, "len": len}, {"result": result}))


@pytest.mark.parametrize("name", ["first-token", "latency", "output-rate", "errors"])
def test_a_broken_promise_fails_a_kept_one_succeeds_and_silence_decides_nothing(name: str) -> None:
    metric = analysed(rendered(FULL))[name]
    for result, verdict in (
        ([0.9], (False, True)),
        ([0.0], (True, False)),
        ([], (False, False)),
        ([math.nan], (False, False)),
    ):
        assert (_holds(metric["successCondition"], result), _holds(metric["failureCondition"], result)) == verdict


def test_little_traffic_is_no_verdict() -> None:
    metric = analysed(rendered(FULL))["volume"]
    for result in ([], [math.nan], [0.0], [3.0]):
        assert not _holds(metric["successCondition"], result)
        assert not _holds(metric["failureCondition"], result)
    assert _holds(metric["successCondition"], [50.0])


def test_no_failure_yet_is_a_share_of_zero_and_no_request_is_none() -> None:
    text = query(analysed(rendered(FULL))["errors"])
    assert "or vector(0)) /" in text
    assert text.count("vector(0)") == 1


@pytest.mark.parametrize("pause", ["1m", "3m", "5m", "10m", "1h"])
def test_an_analysis_can_fail_and_ends(pause: str) -> None:
    objects = rendered({**FULL, "rollout.pause": pause})
    for metric in analysed(objects).values():
        assert metric["count"] >= 3
        assert metric["failureLimit"] + 1 < metric["count"]
        assert metric["inconclusiveLimit"] + 1 < metric["count"]
        assert isinstance(metric["interval"], str)
        assert isinstance(metric["provider"]["prometheus"]["timeout"], int)


def test_a_step_lasts_about_as_long_as_it_is_said_to() -> None:
    trial = slo.trial(one(FULL))
    assert trial.window + trial.count * trial.interval == 600


@pytest.mark.parametrize(
    ("pause", "scrape", "says"),
    [
        ("30s", "15s", "takes 5m, not 30s: 2m in which the window of the rates fills, then 3 measurements"),
        ("1m", "15s", "takes 5m, not 1m"),
        ("3m", "15s", "takes 5m, not 3m"),
        ("5m", "15s", ""),
        ("330s", "15s", "takes 5m, not 330s"),
        ("10m", "15s", ""),
        ("5m", "30s", "takes 8m, not 5m"),
        ("8m", "30s", ""),
        (None, "30s", ""),  # not asked for
    ],
)
def test_a_step_of_another_length_than_asked_for_is_said(pause: str | None, scrape: str, says: str) -> None:
    where = site({**FULL, "rollout.pause": pause}, cluster={"monitoring.scrapeInterval": scrape})
    objects = Objects(items(where))
    found = [finding for finding in where.problems if finding.code == "SRV107"]
    assert [says in finding.message for finding in found] == [True] * bool(says)
    for finding in found:
        assert (finding.severity, finding.fails) == (Severity.NOTE, False)
        assert finding.source and finding.source.file == "chat.yaml#spec.rollout.pause"
        fixed = site({**FULL, "rollout.pause": finding.fix.split()[-1]}, cluster={"monitoring.scrapeInterval": scrape})
        assert Objects(items(fixed))["Rollout"] == objects["Rollout"]
        assert "SRV107" not in {problem.code for problem in fixed.problems}


def test_the_window_fills_before_the_first_measurement() -> None:
    steps = rendered(FULL)["Rollout"]["spec"]["strategy"]["canary"]["steps"]
    assert [next(iter(step)) for step in steps] == ["setWeight", "pause", "analysis"] * 2
    assert [step["setWeight"] for step in steps if "setWeight" in step] == [5, 50]
    windows = {f.window for m in analysed(rendered(FULL)).values() for f in selectors(query(m))}
    assert windows == {120}
    assert {step["pause"]["duration"] for step in steps if "pause" in step} == {span(120)}


def test_a_promise_that_no_bucket_can_keep_is_a_finding() -> None:
    def codes(version: str, bound: str) -> list[str]:
        service = one({"engine.vllm": version, "slo": {"firstToken": {"p90": bound}}})
        slo.measurable(service)
        assert all(finding.severity is Severity.ERROR for finding in service.site.problems)
        return [finding.code for finding in service.site.problems]

    assert codes("0.31.0", "800ms") == ["SRV102"]
    assert codes("0.31.0", "750ms") == []
    assert codes("0.33.0", "800ms") == []


def test_without_a_sidecar_the_server_counts_its_requests() -> None:
    meshed, plain = (rendered(FULL, cluster=cluster) for cluster in MESHES)
    [one_reporter] = {f.labels["reporter"] for f in selectors(query(analysed(meshed)["errors"]))}
    assert one_reporter == "destination"
    assert {f.metric for f in selectors(query(analysed(plain)["errors"]))} == {"http_requests_total"}
    assert plain["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["path"] == "/metrics"


def test_targets_have_a_budget_of_series() -> None:
    spec = rendered(FULL)["PodMonitor"]["spec"]
    assert 1000 < spec["sampleLimit"] <= 5000
    assert spec["labelValueLengthLimit"] <= 256
    keep, drop = spec["podMetricsEndpoints"][0]["metricRelabelings"]
    assert re.fullmatch(keep["regex"], "vllm:num_requests_waiting")
    assert not re.fullmatch(keep["regex"], "envoy_cluster_upstream_cx_total")
    assert re.fullmatch(drop["regex"], "vllm:lora_requests_info")
    assert re.fullmatch(drop["regex"], "vllm:generation_tokens_created")
    for text in every_query(rendered(FULL)):
        for found in selectors(text):
            assert found.metric.startswith("service:") or re.fullmatch(keep["regex"], found.metric)
            assert not re.fullmatch(drop["regex"], found.metric)


def test_silence_is_an_alarm() -> None:
    [alarm] = [rule for rule in rules(rendered()) if rule.get("alert") == "ServiceUnmeasured"]
    assert alarm["expr"].startswith("absent_over_time(")


def test_without_the_operator_nothing_is_watched() -> None:
    kinds = rendered({"slo": None}, cluster={"components": {"prometheusOperator": None}}).kinds()
    assert not kinds & {"PodMonitor", "PrometheusRule", "ScaledObject"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (259200, "3d"), (90, "90s"), (0.5, "500ms"), (480, "8m")]
)
def test_durations_are_written_in_their_largest_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text
