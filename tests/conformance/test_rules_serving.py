"""Rules about serving, analyses, scaling and queries against the real things.

Replayed here: queries by promtool (PQL101, PQL203, PQL304, PQL305, PQL307, PQL310, PQL317), Rollouts by the samples of
Argo Rollouts' own linter with its verdicts (ANA301 to ANA305), fields and groups that the API server refuses (ANA201,
SCL101, TRF201), KEDA's table by its schema. The rest of what is certain follows from the sources that each rule names.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from blueprint import promql
from blueprint.catalog.rules import rules
from blueprint.check.read import read
from blueprint.check.rules import across
from blueprint.conform.controlplane import ControlPlane
from blueprint.finding import Confidence, Finding, Severity
from scripts import keda_scalers
from tests.check.rules.cases import manifests

FAMILIES = ("SRV", "ANA", "SCL", "PQL", "MON", "TRF")


@cache
def module(path: str) -> Path:
    """A module in Go's cache; the test is skipped where it was never fetched."""
    cache_folder = subprocess.run(
        ["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    folder = Path(cache_folder) / path
    if not folder.is_dir():
        pytest.skip(f"{path} is not in the module cache")
    return folder


@cache
def ours(*folders: Path) -> list[Finding]:
    return [finding for finding in across(read(folders).manifests) if finding.code.startswith(FAMILIES)]


EVAL = re.compile(r"\s*eval(?:_\w+)?\s+(?:instant at \S+|range from \S+ to \S+ step \S+)\s+(.*)$")


def test_no_query_of_prometheus_own_tests_is_called_unreadable() -> None:
    folder = module("github.com/prometheus/prometheus@v0.316.0/promql/promqltest/testdata")
    wrong, count = [], 0
    for file in sorted(folder.glob("*.test")):
        for line in file.read_text("utf-8").splitlines():
            if match := EVAL.match(line):
                count += 1
                if promql.read(match[1]).error:
                    wrong.append(match[1])
    assert count > 2000
    assert not wrong


BROKEN = (
    "sum by (le (x)",
    "rate(x)",
    "1 +",
    "sum(x) by",
    "x{a=1}",
    "x[5m] + 1",
    "rate(x[5m]) and and y",
    'x{a="b"',
    "topk(x)",
)


@pytest.mark.parametrize("query", BROKEN)
def test_what_is_called_unreadable_promtool_refuses(query: str, promtool: Path, tmp_path: Path) -> None:
    assert promql.read(query).error
    rule = {"groups": [{"name": "g", "rules": [{"record": "a:b:c", "expr": query}]}]}
    (tmp_path / "r.yaml").write_text(json.dumps(rule))
    done = subprocess.run([promtool, "check", "rules", tmp_path / "r.yaml"], capture_output=True, check=False)
    assert done.returncode != 0


SERIES = [
    {"series": f'vllm:time_to_first_token_seconds_bucket{{le="{le}",pod="{pod}"}}', "values": f"0+{n}x60"}
    for pod in "ab"
    for le, n in (("1.0", 6), ("2.5", 9), ("+Inf", 10))
] + [{"series": f'vllm:iteration_tokens_total_count{{pod="{pod}"}}', "values": "0+5x60"} for pod in "ab"]
RATE = "rate(vllm:time_to_first_token_seconds_bucket[5m])"


@pytest.mark.parametrize(
    ("code", "query", "samples"),
    [
        ("PQL203", "vllm:iteration_tokens_total", []),
        ("PQL304", 'vllm:time_to_first_token_seconds_bucket{le="1"}', []),
        ("PQL304", 'vllm:time_to_first_token_seconds_bucket{le="2"}', []),
        ("PQL305", f"histogram_quantile(0.9, sum({RATE}))", []),
        ("PQL307", f"histogram_quantile(95, sum by (le) ({RATE}))", [{"labels": "{}", "value": math.inf}]),
        ("PQL310", f"sum by (pod) ({RATE}) / sum({RATE})", []),
        ("PQL317", f"histogram_quantile(0.99, sum by (le) ({RATE})) > 2560", []),
    ],
)
def test_prometheus_gives_what_the_rule_says(
    code: str, query: str, samples: list[Any], promtool: Path, tmp_path: Path
) -> None:
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "r"},
        "spec": {"groups": [{"name": "g", "rules": [{"alert": "A", "expr": query}]}]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "s", "image": "vllm/vllm-openai:v0.33.0", "args": ["--model=a/b"]}]},
    }
    assert code in {finding.code for finding in across(manifests(f"{json.dumps(rule)}\n---\n{json.dumps(pod)}"))}
    asked = {"expr": query, "eval_time": "10m", "exp_samples": samples}
    test = {"tests": [{"interval": "15s", "input_series": SERIES, "promql_expr_test": [asked]}]}
    (tmp_path / "t.yaml").write_text(json.dumps(test).replace("Infinity", ".inf"))
    done = subprocess.run([promtool, "test", "rules", tmp_path / "t.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def samples_of_the_linter() -> Iterator[Path]:
    path = "github.com/argoproj/argo-rollouts@v1.10.2/pkg/kubectl-argo-rollouts/cmd/lint/testdata"
    yield from sorted(module(path).glob("*.*"))


# The linter only looks at Ingresses that lead to the Service already; the controller takes the one that the Rollout
# names, and refuses it (pkg/apis/rollouts/validation/validation_references.go, validateNginxIngress).
PASSED_BY_THE_LINTER = {"valid-nginx-canary.yml": "ANA314"}


def test_the_linter_of_argo_rollouts_agrees() -> None:
    for file in samples_of_the_linter():
        found = [finding for finding in ours(file) if finding.severity is not Severity.NOTE]
        if file.name in PASSED_BY_THE_LINTER:
            assert [finding.code for finding in found] == [PASSED_BY_THE_LINTER[file.name]]
            continue
        # An unknown field is the schema's to say; the file has a fault of its own besides.
        assert bool(found) is file.name.startswith("invalid"), (file.name, found)


@pytest.mark.parametrize("code", ["ANA201", "SCL101", "TRF201"])
def test_the_server_refuses_the_bad_example(code: str, platform_plane: ControlPlane) -> None:
    platform_plane.namespace("serving")
    for example, refused in ((rules()[code].bad, True), (rules()[code].good, False)):
        answers = [platform_plane.client.create(each.body, dry_run=True) for each in manifests(example)]
        assert any(not answer.ok for answer in answers) is refused, [answer.message for answer in answers]


def test_the_table_of_scalers_is_that_of_keda() -> None:
    folder = module(f"github.com/kedacore/keda/v2@{keda_scalers.VERSION}")
    schema = json.loads((folder / "schema/generated/scalers-schema.json").read_text("utf-8"))
    assert keda_scalers.TABLE.read_text("utf-8") == keda_scalers.table(schema)
    assert len(yaml_rs.loads(keda_scalers.TABLE.read_text("utf-8"))["scalers"]) == len(schema["scalers"])


FOREIGN = (
    "github.com/argoproj/argo-rollouts@v1.10.2/examples",
    "github.com/kedacore/keda/v2@v2.21.0/config",
    "github.com/prometheus-operator/prometheus-operator@v0.93.1/example",
    "sigs.k8s.io/lws@v0.8.0/docs/examples",
    "sigs.k8s.io/kueue@v0.17.0/config",
    "sigs.k8s.io/jobset@v0.11.1/config",
    "github.com/argoproj/argo-cd/v3@v3.6.1/manifests",
    "github.com/ray-project/kuberay/ray-operator@v1.6.0/config/samples",
)

#: Errors in published examples, each read and found to be true.
TRUE_FAULTS = {
    ("ANA204", "pass"),  # one measurement and failureLimit 1: the sample that is meant to pass, and cannot do otherwise
    ("ANA204", "always-pass"),
    ("SCL107", "example-scaledobject"),  # `type: example-trigger` is no scaler
    ("SCL107", "scaledjob-sample"),
}


@pytest.mark.parametrize("folder", FOREIGN)
def test_published_examples_have_no_other_faults(folder: str) -> None:
    found = {(f.code, f.object.name): f for f in ours(module(folder)) if f.fails and f.object}
    assert not {key: f.message for key, f in found.items() if key not in TRUE_FAULTS}


@pytest.mark.parametrize("folder", FOREIGN)
def test_doubts_about_published_examples_are_few(folder: str) -> None:
    doubts = [f for f in ours(module(folder)) if f.severity is Severity.WARNING]
    assert all(finding.confidence is not Confidence.CERTAIN for finding in doubts), doubts
    assert len(doubts) <= 20, [str(finding) for finding in doubts]
