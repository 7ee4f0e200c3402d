import json

import jsonschema_rs
from hypothesis import given, settings

from blueprint.finding import Finding, Report, Source
from blueprint.report.gitlab import document

from .findings import REPORT, RULES
from .wild import reports

VALIDATOR = jsonschema_rs.Draft202012Validator(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "additionalProperties": False,
            "properties": {
                "description": {"type": "string"},
                "check_name": {"type": "string", "minLength": 1},
                "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "minLength": 1, "not": {"pattern": "^\\./"}},
                        "lines": {"type": "object", "properties": {"begin": {"type": "integer", "minimum": 1}}},
                    },
                },
            },
        },
    }
)


def test_an_entry():
    job = next(each for each in document(REPORT, RULES) if each["check_name"].startswith("KQ202"))
    assert job["check_name"] == "KQ202 never-admitted"
    assert job["severity"] == "critical"
    assert job["location"] == {"path": "apps/search-ai/reranker-sft.yaml", "lines": {"begin": 14}}
    assert job["description"].startswith("queue cannot ever admit this job — PyTorchJob")


@settings(max_examples=50)
@given(reports)
def test_every_report_keeps_the_format(report):
    value = document(report, RULES)
    VALIDATOR.validate(json.loads(json.dumps(value)))
    assert len({entry["fingerprint"] for entry in value}) == len(report.findings)


def test_paths_are_relative_without_a_dot():
    (entry,) = document(Report.of([Finding("NAM101", "x", Source("./a/b.yaml"))]), RULES)
    assert entry["location"]["path"] == "a/b.yaml"
