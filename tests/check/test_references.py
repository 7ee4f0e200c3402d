"""The same object more than once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from blueprint.check.references import repeated
from blueprint.finding import Confidence, Severity, Source
from blueprint.objects import Manifest


def thing(file: str, name: str = "a", api: str = "v1", namespace: str = "n", line: int = 1) -> Manifest:
    body = {"apiVersion": api, "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    return Manifest(body, Source(file, line, 1))


def test_twice_in_a_folder() -> None:
    (finding,) = repeated([thing("x/b.yaml"), thing("x/a.yaml")])
    assert (finding.code, finding.source) == ("REF101", Source("x/b.yaml", 1, 1))
    assert "x/a.yaml:1:1" in finding.message


def test_twice_in_a_file() -> None:
    (finding,) = repeated([thing("a.yaml"), thing("a.yaml", line=9)])
    assert finding.source == Source("a.yaml", 9, 1)
    assert finding.fails and finding.confidence is Confidence.CERTAIN


def application(**source: Any) -> Manifest:
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": {"source": source}}
    return Manifest(body, Source("argocd/a.yaml", 1, 1))


@pytest.mark.parametrize(
    ("source", "certain"),
    [
        (None, False),  # one of the files may be a variant of the other
        ({"path": "deploy/x"}, True),
        ({"path": "./deploy/x/"}, True),
        ({"path": "y"}, False),
        ({"path": "deploy/x", "directory": {"include": "a.yaml"}}, False),
        ({"path": "deploy/x", "helm": {}}, False),
    ],
)
def test_two_files_are_certain_where_an_application_reads_both(source: dict[str, Any] | None, certain: bool) -> None:
    twice = [thing("deploy/x/b.yaml"), thing("deploy/x/a.yaml")]
    (finding,) = repeated([*twice, *([application(**source)] if source is not None else [])])
    assert finding.fails is certain
    assert (finding.severity, finding.confidence) == (
        (Severity.ERROR, Confidence.CERTAIN) if certain else (Severity.WARNING, Confidence.LIKELY)
    )


def test_what_one_root_makes_is_applied_together() -> None:
    first, second = (replace(thing(f"deploy/x/{name}.yaml"), root="deploy") for name in "ab")
    assert [finding.fails for finding in repeated([first, second])] == [True]


def test_elsewhere_or_otherwise_called_is_another_object() -> None:
    assert not list(
        repeated([thing("x/a.yaml"), thing("y/a.yaml"), thing("x/b.yaml", "b"), thing("x/c.yaml", namespace="m")])
    )


def test_two_versions_are_one_object() -> None:
    first, second = thing("a.yaml", api="kueue.x-k8s.io/v1beta1"), thing("b.yaml", api="kueue.x-k8s.io/v1beta2")
    assert [f.code for f in repeated([first, second])] == ["REF102"]
    assert not list(repeated([first, thing("b.yaml", api="other.io/v1beta1")]))


def test_objects_without_names_are_not_compared() -> None:
    assert not list(repeated([thing("a.yaml", ""), thing("a.yaml", "")]))
