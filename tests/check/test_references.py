"""The same object more than once."""

from __future__ import annotations

from blueprint.check.references import repeated
from blueprint.finding import Source
from blueprint.objects import Manifest


def thing(file: str, name: str = "a", api: str = "v1", namespace: str = "n", line: int = 1) -> Manifest:
    body = {"apiVersion": api, "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    return Manifest(body, Source(file, line, 1))


def test_twice_in_a_folder() -> None:
    (finding,) = repeated([thing("x/b.yaml"), thing("x/a.yaml")])
    assert (finding.code, finding.source) == ("REF101", Source("x/b.yaml", 1, 1))
    assert "x/a.yaml:1:1" in finding.message


def test_twice_in_a_file() -> None:
    assert [f.source for f in repeated([thing("a.yaml"), thing("a.yaml", line=9)])] == [Source("a.yaml", 9, 1)]


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
