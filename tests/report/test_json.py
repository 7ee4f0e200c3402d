# ruff: noqa: E501
import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source
from blueprint.report import Application, Changes, Totals
from blueprint.report.json import document, dump, schema

from .findings import REPORT

VALIDATOR = jsonschema_rs.validator_for(schema())
SHORT = Report.of([f for f in REPORT.findings if f.code in {"KQ202", "NAM101"}])


def test_golden():
    value = document(
        SHORT,
        Totals(12, 2, 1),
        applications=[Application("prod-a", "argocd", 9, 1)],
        changes=Changes(("a",), (), ("b",), True),
    )
    assert (
        dump(value)
        == """\
{
  "version": 1,
  "failed": true,
  "totals": {
    "objects": 12,
    "clusters": 2,
    "silenced": 1,
    "findings": {
      "error": 2,
      "warning": 0,
      "note": 0
    }
  },
  "findings": [
    {
      "code": "NAM101",
      "severity": "error",
      "confidence": "certain",
      "message": "no place, no object",
      "source": null,
      "object": null,
      "path": "",
      "fix": ""
    },
    {
      "code": "KQ202",
      "severity": "error",
      "confidence": "certain",
      "message": "queue cannot ever admit this job\\nPyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)\\nh100-train   16 nominal + 4 borrowable = 20   \\u2190 binds: borrowingLimit 4",
      "source": {
        "file": "apps/search-ai/reranker-sft.yaml",
        "line": 14,
        "column": 0
      },
      "object": {
        "group": "kubeflow.org",
        "kind": "PyTorchJob",
        "namespace": "search-ai",
        "name": "reranker-sft"
      },
      "path": "spec.pytorchReplicaSpecs",
      "fix": "borrowingLimit 4 \\u2192 8"
    }
  ],
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


texts = st.text(max_size=5)
findings = st.builds(
    Finding,
    st.from_regex(r"[A-Z]{2,4}[0-9]{3}", fullmatch=True),
    texts,
    st.none() | st.builds(Source, texts, st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from(Severity),
    st.sampled_from(Confidence),
    st.none() | st.builds(Ref, texts, texts, texts, texts),
    texts,
    texts,
)


@given(st.lists(findings, max_size=4))
def test_every_report_keeps_the_contract(found):
    report = Report.of(found)
    value = document(report, Totals(), applications=[], changes=Changes())
    assert VALIDATOR.is_valid(value)
    assert json.loads(dump(value)) == value
    assert sum(value["totals"]["findings"].values()) == len(value["findings"])
    assert value["failed"] == any(f["severity"] == "error" and f["confidence"] != "style" for f in value["findings"])


def test_what_a_verb_does_not_do_is_left_out():
    assert document(Report(), Totals()).keys() == {"version", "failed", "totals", "findings"}


@pytest.mark.parametrize("key", ["version", "failed", "totals", "findings"])
def test_the_schema_is_strict(key):
    value = document(SHORT, Totals())
    assert not VALIDATOR.is_valid({k: v for k, v in value.items() if k != key})
    assert not VALIDATOR.is_valid({**value, "surprise": 1})
    jsonschema_rs.meta.validate(schema())
