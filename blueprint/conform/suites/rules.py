"""PromQL: Prometheus reads every rule, recordings give series of the metrics that they name, and silence is silent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.conform import programs
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError
from blueprint.conform.tree import Tree
from blueprint.finding import Severity
from blueprint.promql import Aggregate, Binary, Select, read, selects, walk

Body = dict[str, Any]

_SECONDS = 120
_FAMILY = "PQL"
"""Rules on queries. A name that is not in the catalog is a warning to a stranger; here every name must be known."""

_KINDS = frozenset({"PrometheusRule", "AnalysisTemplate", "ScaledObject", "PodMonitor"})
_LONG = "2h"
_SAMPLES = 240


def run(stage: Stage) -> None:
    """Each rule file by itself, then the metrics and labels that all queries name."""
    for body in stage.tree.of_kind("PrometheusRule"):
        name = f"{body['metadata'].get('namespace', '')}/{body['metadata']['name']}"
        groups = body["spec"]["groups"]
        with stage.case(f"{name}: promtool reads it, without a warning") as case:
            _write(stage, {"groups": groups})
            case.said = (
                _promtool(stage, "check", "rules", "--lint-fatal", "rules.json").strip().splitlines()[-1].strip()
            )
        recorded = [rule["record"] for group in groups for rule in group["rules"] if "record" in rule]
        if recorded:
            with stage.case(f"{name}: every recording gives a series of the metrics that it names") as case:
                series = sorted(
                    {line for group in groups for rule in group["rules"] for line in _series(rule, recorded)}
                )
                case.said = f"{len(set(recorded))} recordings of {len(series)} series"
                expectations = [
                    {
                        "expr": f"count({each}) > bool 0",
                        "eval_time": _LONG,
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                    for each in sorted(set(recorded))
                ]
                _tested(stage, groups, series, expectations)
        with stage.case(f"{name}: without series only alerts about absence fire", negative=True) as case:
            absent = sorted({rule["alert"] for group in groups for rule in group["rules"] if "absent" in rule["expr"]})
            expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in absent]
            firing = {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": _LONG}
            _tested(stage, groups, [], [{**firing, "exp_samples": expected}])
            alerts = sum("alert" in rule for group in groups for rule in group["rules"])
            case.said = f"{len(absent)} of {alerts} alerts are about absence"
    with stage.case("every metric and label that a query names is known for the pinned versions") as case:
        found = [
            f"{finding.code} {finding.object}: {finding.message}"
            for finding in validate(list(stage.tree.manifests), SchemaPack.shipped(), tree_rules=tree_rules()).findings
            if finding.code.startswith(_FAMILY) and finding.severity is not Severity.NOTE
        ]
        if found:
            raise WrongAnswerError("; ".join(found[:5]))
        case.said = f"{sum(len(stage.tree.of_kind(kind)) for kind in _KINDS)} objects with queries"


def _series(rule: Body, recorded: list[str]) -> Iterator[str]:
    """Series of each metric that a rule reads and none records, with the labels that it selects and groups by."""
    query = read(rule["expr"])
    if query.tree is None or "record" not in rule:
        return
    grouped = {
        label
        for node, _ in walk(query.tree)
        for label in (
            *((node.by or ()) if isinstance(node, Aggregate) else ()),
            *(((node.on or ()) + node.included) if isinstance(node, Binary) else ()),
        )
    }
    for select, _ in selects(query.tree):
        if select.metric in recorded:
            continue
        labels = {**dict.fromkeys(sorted(grouped), "x"), **_selected(select)}
        for bound in ("1", "+Inf") if select.metric.endswith("_bucket") else ("",):
            shown = {**labels, **({"le": bound} if bound and "le" not in _selected(select) else {})}
            text = ",".join(f'{key}="{shown[key]}"' for key in sorted(shown) if shown[key])
            yield f"{select.metric}{{{text}}}"


def _selected(select: Select) -> dict[str, str]:
    """Labels that a selector takes: its equalities, the first choice of a pattern, anything that is not excluded."""
    labels: dict[str, str] = {}
    for matcher in select.matchers:
        if matcher.op == "=":
            labels[matcher.label] = matcher.value
        elif matcher.op == "=~":
            first = matcher.value.strip("()").split("|")[0]
            labels[matcher.label] = first.replace(".+", "x").replace(".*", "x").replace("..", "03").replace(".", "0")
        elif matcher.op == "!=":
            labels.setdefault(matcher.label, "x")
    return labels


def _tested(stage: Stage, groups: list[Body], series: list[str], expectations: list[Body]) -> None:
    """Run promtool's own unit test of the groups."""
    _write(stage, {"groups": groups})
    inputs = [{"series": line, "values": f"1+10x{_SAMPLES}"} for line in series]
    test = {"interval": "30s", "input_series": inputs, "promql_expr_test": expectations}
    document = {"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": [test]}
    (stage.folder / "test.json").write_text(json.dumps(document), "utf-8")
    _promtool(stage, "test", "rules", "test.json")


def _write(stage: Stage, document: Body) -> None:
    (stage.folder / "rules.json").write_text(json.dumps(document), "utf-8")


def _promtool(stage: Stage, *words: str) -> str:
    program: Path = programs.find("promtool").path
    done = subprocess.run(
        [program, *words], cwd=stage.folder, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        raise WrongAnswerError(f"promtool {' '.join(words)}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout


def _misspelt(tree: Tree) -> Tree:
    """A metric that no version exposes."""

    def put(body: Body) -> None:
        rules = body["spec"]["groups"][0]["rules"]
        rules[0]["expr"] = "sum by (cluster_queue) (kueue_pending_workload)"

    return tree.changed("PrometheusRule", put, "platform-queues")


SUITE = Suite(
    name="rules",
    title="Queries, recordings and alerts, read by Prometheus",
    run=run,
    programs=("promtool",),
    bare=True,
    faults=(Fault("a metric misspelt", _misspelt, "every metric and label"),),
    elsewhere=run,
)
