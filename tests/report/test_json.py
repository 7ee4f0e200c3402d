# ruff: noqa: E501
import json

import jsonschema_rs
import pytest
from hypothesis import given, settings

from blueprint.finding import Edit, Finding, Report, Source
from blueprint.report import Application, Changes, Totals
from blueprint.report.json import document, dump, schema

from .findings import REPORT, RULES
from .wild import reports

VALIDATOR = jsonschema_rs.validator_for(schema())
SHORT = Report.of([f for f in REPORT.findings if f.code in {"KQ202", "NAM101"}])


def test_golden():
    value = document(
        SHORT,
        Totals(objects=12, clusters=2, silenced=1, files=7, documents=14, skipped=3),
        RULES,
        applications=[Application("prod-a", "argocd", 9, 1)],
        changes=Changes(("a",), (), ("b",), True),
    )
    assert (
        dump(value)
        == """\
{
  "schema": 1,
  "read": {
    "files": 7,
    "documents": 14,
    "objects": 12,
    "skipped": 3
  },
  "findings": [
    {
      "code": "NAM101",
      "name": "",
      "severity": "error",
      "confidence": "certain",
      "message": "no place, no object",
      "object": null,
      "source": null,
      "fix": ""
    },
    {
      "code": "KQ202",
      "name": "never-admitted",
      "severity": "error",
      "confidence": "certain",
      "message": "queue cannot ever admit this job\\nPyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)\\nh100-train   16 nominal + 4 borrowable = 20   \\u2190 binds: borrowingLimit 4",
      "object": {
        "group": "kubeflow.org",
        "kind": "PyTorchJob",
        "namespace": "search-ai",
        "name": "reranker-sft"
      },
      "source": {
        "file": "apps/search-ai/reranker-sft.yaml",
        "line": 14
      },
      "fix": "borrowingLimit 4 \\u2192 8"
    }
  ],
  "silenced": 1,
  "applications": [
    {
      "cluster": "prod-a",
      "name": "argocd",
      "objects": 9,
      "waves": 1
    }
  ],
  "changes": {
    "added": [
      "a"
    ],
    "changed": [],
    "removed": [
      "b"
    ],
    "lockChanged": true
  }
}
"""
    )


@settings(max_examples=50)
@given(reports)
def test_every_report_keeps_the_contract(report):
    value = document(report, Totals(), RULES, applications=[], changes=Changes())
    assert VALIDATOR.is_valid(value)
    assert json.loads(dump(value)) == value
    assert len(value["findings"]) == len(report.findings)


def test_what_a_verb_does_not_do_is_left_out():
    assert list(document(Report(), Totals(), {})) == ["schema", "read", "findings", "silenced"]


@pytest.mark.parametrize("key", ["schema", "read", "findings", "silenced"])
def test_the_schema_is_strict(key):
    value = document(SHORT, Totals(), RULES)
    assert VALIDATOR.is_valid(value)
    assert not VALIDATOR.is_valid({k: v for k, v in value.items() if k != key})
    assert not VALIDATOR.is_valid({**value, "surprise": 1})
    jsonschema_rs.meta.validate(schema())


def test_a_patch_is_json_patch() -> None:
    edits = (Edit("move", "/spec/cohortName", source="/spec/cohort"), Edit("replace", "/spec/x", '{"a": 1}'))
    with_patch = Finding("KQ701", "old", Source("a.yaml", 1), patch=edits)
    report = Report.of([with_patch, Finding("KQ102", "b")])
    assert not any("patch" in finding for finding in document(report, Totals(), {})["findings"])
    value = document(report, Totals(), {}, patches=True)
    VALIDATOR.validate(value)
    first, second = sorted(value["findings"], key=lambda finding: "patch" not in finding)
    assert first["patch"] == [
        {"op": "move", "path": "/spec/cohortName", "from": "/spec/cohort"},
        {"op": "replace", "path": "/spec/x", "value": {"a": 1}},
    ]
    assert "patch" not in second
