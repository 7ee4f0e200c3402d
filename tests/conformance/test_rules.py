"""Prometheus itself reads the rules of a served model, and they say what they should of invented series."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from blueprint.render import observability
from tests.render.sites import Objects, rendered, site

SERVICE = {
    "slo": {"firstToken": {"p90": "750ms"}, "errors": "0.5%"},
    "replicas": {"min": 1, "max": 3, "scaleOn": "waiting-requests", "target": 8},
}
POD = 'namespace="chat",app_kubernetes_io_name="chat",pod="a"'
LABELS = 'namespace="chat",service="chat",team="chat"'


def _groups(objects: Objects) -> list[dict[str, Any]]:
    return [group for body in objects.all("PrometheusRule") for group in body["spec"]["groups"]]


def _run(promtool: Path, folder: Path, groups: list[dict[str, Any]], **case: Any) -> None:
    (folder / "rules.yaml").write_text(json.dumps({"groups": groups}))
    subprocess.run([promtool, "check", "rules", "--lint-fatal", folder / "rules.yaml"], check=True, capture_output=True)
    test = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": [{"interval": "15s", **case}]}
    (folder / "test.yaml").write_text(json.dumps(test))
    done = subprocess.run(
        [promtool, "test", "rules", folder / "test.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _traffic(good: int, bad: int) -> list[dict[str, str]]:
    """Answers of each kind in 15 s, for two hours."""
    return [
        {
            "series": f'istio_requests_total{{{POD},reporter="destination",response_code="{code}"}}',
            "values": f"0+{n}x480",
        }
        for code, n in (("200", good), ("503", bad))
        if n
    ] + [{"series": f"vllm:num_requests_running{{{POD}}}", "values": "1x480"}]


@pytest.mark.parametrize(
    ("good", "bad", "severities"),
    [
        (90, 10, ["page", "page", "ticket", "ticket"]),  # 10 % is twenty times the budget
        (198, 2, ["ticket"]),  # 1 % is twice the budget: slow, but it will not last the month
        (1000, 1, []),
        (0, 0, []),
    ],
)
def test_alerts_follow_the_rate_at_which_the_budget_burns(
    promtool: Path, tmp_path: Path, good: int, bad: int, severities: list[str]
) -> None:
    rule = next(
        rule
        for group in _groups(rendered(SERVICE))
        for rule in group["rules"]
        if rule.get("alert") == "ErrorsBudgetBurns"
    )
    alerts = [
        f'ALERTS{{alertname="{rule["alert"]}",alertstate="firing",severity="{severity}",window="{window}",{LABELS}}}'
        for severity, window in zip(severities, ["1h", "6h", "1d", "3d"][4 - len(severities) :], strict=True)
    ]
    expected = [{"labels": alert, "value": 1} for alert in alerts]
    expression = 'ALERTS{alertname="ErrorsBudgetBurns",alertstate="firing"}'
    case = {"expr": expression, "eval_time": "100m", "exp_samples": expected}
    _run(promtool, tmp_path, _groups(rendered(SERVICE)), input_series=_traffic(good, bad), promql_expr_test=[case])


def test_load_is_one_number_for_all_pods(promtool: Path, tmp_path: Path) -> None:
    other = POD.replace('pod="a"', 'pod="b"')
    series = [
        {"series": f"vllm:num_requests_waiting{{{POD}}}", "values": "10x40"},
        {"series": f"vllm:num_requests_waiting{{{other}}}", "values": "6x40"},
    ]
    query = rendered(SERVICE)["ScaledObject"]["spec"]["triggers"][0]["metadata"]["query"]
    cases = [
        {"expr": query, "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": 16}]},
        # A minute after the last reading there is no number, which is not zero.
        {"expr": query, "eval_time": "30m", "exp_samples": []},
    ]
    _run(promtool, tmp_path, _groups(rendered(SERVICE)), input_series=series, promql_expr_test=cases)


def test_a_canary_without_failures_or_without_requests(promtool: Path, tmp_path: Path) -> None:
    metrics = rendered({**SERVICE, "rollout": {"canary": ["50%"]}})["AnalysisTemplate"]["spec"]["metrics"]
    queries = {m["name"]: m["provider"]["prometheus"]["query"].replace("{{args.canary-hash}}", "new") for m in metrics}
    of = f'{POD},rollouts_pod_template_hash="new"'
    stable = f'{POD},rollouts_pod_template_hash="old"'
    series = [
        {"series": f'istio_requests_total{{{of},reporter="destination",response_code="200"}}', "values": "0+15x40"},
        {"series": f'istio_requests_total{{{stable},reporter="destination",response_code="500"}}', "values": "0+99x40"},
        {"series": f'vllm:time_to_first_token_seconds_bucket{{{of},le="0.75"}}', "values": "0+12x40"},
        {"series": f"vllm:time_to_first_token_seconds_count{{{of}}}", "values": "0+15x40"},
    ]
    cases = [
        {
            "expr": f"round({queries['volume']}, 0.001)",
            "eval_time": "5m",
            "exp_samples": [{"labels": "{}", "value": 120}],
        },
        {"expr": queries["errors"], "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": 0}]},
        {
            "expr": f"round({queries['first-token']}, 0.001)",
            "eval_time": "5m",
            "exp_samples": [{"labels": "{}", "value": 0.2}],
        },
        *({"expr": query, "eval_time": "30m", "exp_samples": []} for query in queries.values()),
    ]
    _run(promtool, tmp_path, [], input_series=series, promql_expr_test=cases)


def test_free_gpus_beside_taken_ones_are_split(promtool: Path, tmp_path: Path) -> None:
    where = 'resource="nvidia_com_gpu"'
    series = [
        *({"series": f'kube_node_status_allocatable{{{where},node="{n}"}}', "values": "8x40"} for n in ("a", "b", "c")),
        {"series": f'kube_pod_container_resource_requests{{{where},node="a",namespace="x",pod="p"}}', "values": "5x40"},
        {"series": f'kube_pod_container_resource_requests{{{where},node="b",namespace="x",pod="q"}}', "values": "8x40"},
        {"series": f'kube_pod_container_resource_requests{{{where},node="c",namespace="x",pod="r"}}', "values": "8x40"},
        {"series": 'kube_pod_status_phase{namespace="x",pod="p",phase="Running"}', "values": "1x40"},
        {"series": 'kube_pod_status_phase{namespace="x",pod="q",phase="Running"}', "values": "1x40"},
        {"series": 'kube_pod_status_phase{namespace="x",pod="r",phase="Succeeded"}', "values": "1x40"},
        {"series": 'kube_pod_status_phase{namespace="x",pod="r",phase="Running"}', "values": "0x40"},
    ]
    cases = [
        {
            "expr": "cluster:free_gpus:sum",
            "eval_time": "5m",
            "exp_samples": [{"labels": "cluster:free_gpus:sum", "value": 11}],
        },
        {
            "expr": "cluster:split_gpus:sum",
            "eval_time": "5m",
            "exp_samples": [{"labels": "cluster:split_gpus:sum", "value": 3}],
        },
    ]
    groups = _groups(Objects(observability.items(site({}))))
    _run(promtool, tmp_path, groups, input_series=series, promql_expr_test=cases)
