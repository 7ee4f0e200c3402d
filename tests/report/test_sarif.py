import gzip
import json
from dataclasses import replace
from urllib.parse import unquote

import jsonschema_rs
import pytest
from hypothesis import given, settings

from blueprint.finding import Finding, Report, Severity, Source
from blueprint.report.sarif import document

from .findings import REPORT, RULES
from .wild import reports

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}, "additionalProperties": False}  # noqa: E501  # fmt: skip
LEVEL = {"enum": ["none", "note", "warning", "error"]}
#: What the SARIF 2.1.0 schema asks of the parts that are written here, closed against any other property.
ESSENTIALS = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"$ref": "#/$defs/run"}},
    },
    "$defs": {
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "additionalProperties": False,
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "additionalProperties": False,
                    "properties": {"driver": {"$ref": "#/$defs/driver"}},
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "invocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["executionSuccessful"],
                        "properties": {
                            "executionSuccessful": {"type": "boolean"},
                            "toolExecutionNotifications": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "required": ["message"],
                                    "properties": {"message": TEXT, "level": LEVEL},
                                    "additionalProperties": False,
                                },
                            },
                        },
                        "additionalProperties": False,
                    },
                },
                "results": {"type": "array", "maxItems": 25_000, "items": {"$ref": "#/$defs/result"}},
            },
        },
        "driver": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "string"},
                            "name": {"type": "string", "pattern": "^[A-Za-z0-9]+$"},
                            "shortDescription": TEXT,
                            "fullDescription": TEXT,
                            "help": TEXT,
                            "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
                            "properties": {
                                "type": "object",
                                "properties": {
                                    "tags": {"type": "array", "uniqueItems": True, "maxItems": 10},
                                    "precision": {"enum": ["very-high", "high", "medium", "low"]},
                                    "problem.severity": {"enum": ["error", "warning", "recommendation"]},
                                },
                            },
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["message", "ruleId", "locations", "partialFingerprints"],
            "additionalProperties": False,
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": LEVEL,
                "message": TEXT,
                "locations": {"type": "array", "minItems": 1, "maxItems": 1, "items": {"$ref": "#/$defs/location"}},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                "properties": {"type": "object"},
            },
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "additionalProperties": False,
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "additionalProperties": False,
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri"],
                            "properties": {"uri": {"type": "string", "format": "uri-reference", "minLength": 1}},
                        },
                        "region": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            },
                        },
                    },
                },
                "logicalLocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "fullyQualifiedName": {"type": "string"},
                            "kind": {"type": "string"},
                        },
                        "additionalProperties": False,
                    },
                },
            },
        },
    },
}
VALIDATOR = jsonschema_rs.Draft202012Validator(ESSENTIALS, validate_formats=True)


def of(report, **options):
    value = document(report, RULES, "1.2.3", **options)
    VALIDATOR.validate(json.loads(json.dumps(value)))
    return value["runs"][0]


def test_results_point_at_rules_and_lines():
    run = of(REPORT)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["KQ202", "NAM101", "SPC101", "TRE203", "WAV103"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert rules[0]["name"] == "NeverAdmitted"
    assert "nodes: 9" in rules[0]["help"]["markdown"]
    assert rules[0]["properties"]["precision"] == "very-high"
    job = next(result for result in run["results"] if result["ruleId"] == "KQ202")
    (location,) = job["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "apps/search-ai/reranker-sft.yaml"},
        "region": {"startLine": 14},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "PyTorchJob.kubeflow.org search-ai/reranker-sft"
    assert job["message"]["text"].endswith("fix: borrowingLimit 4 → 8")


@settings(max_examples=50)
@given(reports)
def test_every_report_keeps_the_format(report):
    run = of(report)
    assert len(run["results"]) == len(report.findings)
    assert len({r["partialFingerprints"]["blueprint/v1"] for r in run["results"]}) == len(report.findings)


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("./a b/ü#1.yaml", "a%20b/%C3%BC%231.yaml"),
        ("/tmp/a b.yaml", "file:///tmp/a%20b.yaml"),
        ("..\\x.yaml", "../x.yaml"),
        ("", "."),
    ],
)
def test_files_become_uris(file, uri):
    run = of(Report.of([Finding("NAM101", "x", Source(file, 1))]))
    found = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert found == uri
    assert " " in unquote(uri) or "%20" not in uri


def test_fingerprints_survive_moved_lines():
    moved = Report.of([replace(f, source=f.source and f.source._replace(line=f.source.line + 9)) for f in REPORT.findings])  # noqa: E501  # fmt: skip
    one, other = ({r["partialFingerprints"]["blueprint/v1"] for r in of(each)["results"]} for each in (REPORT, moved))
    assert one == other


def test_of_too_many_the_worst_are_kept():
    notes = [Finding("NAM101", str(n), Source("a", n), Severity.NOTE) for n in range(50)]
    report = Report.of([*notes, Finding("NAM102", "bad", Source("z", 1))])
    run = of(report, most=10)
    assert len(run["results"]) == 10
    assert run["results"][-1]["ruleId"] == "NAM102"
    assert "41 findings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_the_largest_report_is_small_enough_for_github():
    report = Report.of([replace(REPORT.findings[-4], message=f"{n} " * 20, source=Source("a", n)) for n in range(26_000)])  # noqa: E501  # fmt: skip
    run = document(report, RULES, "1.2.3")
    assert len(run["runs"][0]["results"]) == 25_000
    assert len(gzip.compress(json.dumps(run).encode(), 1)) < 10_000_000
