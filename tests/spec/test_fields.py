"""What is said of single fields, where the table of bad specs does not reach."""

from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.finding import Finding
from blueprint.spec.load import load
from tests.spec.conftest import JOB, SERVICE

Put = Callable[[str, str | bytes], Path]


def _one(platform: Path, put: Put, text: str) -> Finding:
    put("apps/x.yaml", text)
    [finding] = load(platform).findings
    return finding


@pytest.mark.parametrize(
    ("line", "path", "says"),
    [
        ("Nodes: 2", "spec.Nodes", "did you mean nodes"),
        ("max-runtime: 1h", "spec.max-runtime", "did you mean maxRuntime"),
        ("everySteps: 5", "spec.everySteps", "belongs in spec.checkpoint"),
        ("groupSize: 5", "spec.groupSize", "belongs in spec.placement"),
        ('"a.b": 5', 'spec["a.b"]', "unknown field a.b"),
        ("checkpoint: {sise: 1Gi}", "spec.checkpoint.sise", "did you mean size"),
        ("datasets: [{nam: a, name: b, claim: c, path: /d}]", "spec.datasets[0].nam", "did you mean name"),
        ("env: {A: [x]}", "spec.env.A", "not a list"),
        ("env: {A: ~}", "spec.env.A", "nothing is given"),
        ("env: []", "spec.env", "a mapping is expected, not a list"),
        ("checkpoint: 5", "spec.checkpoint", "a mapping is expected, not 5"),
        ("args: {a: b}", "spec.args", "a list is expected, not a mapping"),
        ("nodes: two", "spec.nodes", 'a whole number is expected, not "two"'),
        ("nodes: true", "spec.nodes", "a whole number is expected, not true"),
        ("checkpoint: {path: data}", "spec.checkpoint.path", "write an absolute path"),
        ("maxRuntime: 1h30", "spec.maxRuntime", "such as 800ms or 1h30m"),
        ("maxRuntime: ١٠m", "spec.maxRuntime", "not a duration"),
        ("placement: {required: rack, groupSize: 2}", "spec.placement.groupSize", "must divide nodes 1"),
    ],
)  # fmt: skip
def test_a_field_of_a_job(platform: Path, put: Put, line: str, path: str, says: str) -> None:
    finding = _one(platform, put, f"{JOB}  {line}\n")
    assert finding.path == path
    assert says in f"{finding.message} {finding.fix}"


def test_a_union_says_one_thing(platform: Path, put: Put) -> None:
    finding = _one(platform, put, f"{SERVICE}  replicas: {{max: 2, scaleOn: request-rate, target: fast}}\n")
    assert (finding.code, finding.path) == ("SPC136", "spec.replicas.target")


def test_a_long_value_is_cut(platform: Path, put: Put) -> None:
    finding = _one(platform, put, f"{JOB}  maxRuntime: {'x' * 10_000}\n")
    assert len(finding.message) < 250


def test_each_field_of_a_document_is_said_once_and_all_are(platform: Path, put: Put) -> None:
    put("apps/x.yaml", JOB.replace("64Gi", "64").replace("[prod]", "prod") + "  gpuz: 1\n  cpu: x\n  priority: top\n")
    assert [(f.path, f.code) for f in load(platform).findings] == [
        ("spec.clusters", "SPC133"),
        ("spec.memory", "SPC136"),
        ("spec.gpuz", "SPC131"),
        ("spec.cpu", "SPC136"),
        ("spec.priority", "SPC134"),
    ]


def test_a_list_with_a_bad_entry_is_not_said_to_be_short(platform: Path, put: Put) -> None:
    finding = _one(platform, put, JOB.replace("[prod]", "[PROD]"))
    assert (finding.code, finding.path) == ("SPC136", "spec.clusters[0]")
