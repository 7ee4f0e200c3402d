"""Rules of delivery that take many objects to show."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.rules import across
from blueprint.finding import Severity, Source
from blueprint.objects import Manifest


def application(number: int, **annotations: str) -> Manifest:
    body: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": f"app-{number}", "namespace": "argocd", "annotations": annotations},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.com/p.git", "path": f"tree/{number}"},
            "destination": {"name": "prod"},
        },
    }
    return Manifest(body, Source("apps.yaml", number + 1))


def maps(count: int, text: str = "x") -> list[Manifest]:
    return [
        Manifest(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"c{n}", "namespace": "web"},
                "data": {"a": text},
            },
            Source(f"tree/0/c{n}.yaml", 1),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("objects", "severity"),
    [
        (maps(1000), None),
        (maps(1001), Severity.WARNING),
        (maps(2501), Severity.ERROR),
        (maps(300, "x" * 30_000), Severity.ERROR),
    ],
)
def test_an_application_can_hold_too_much(objects: list[Manifest], severity: Severity | None) -> None:
    found = [finding for finding in across([application(0), *objects]) if finding.code == "ARG205"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_many_applications_of_one_repository_say_what_they_read() -> None:
    def found(count: int, **annotations: str) -> list[str]:
        apps = [application(number, **annotations) for number in range(count)]
        return [finding.code for finding in across(apps) if finding.code == "ARG208"]

    assert found(9) == []
    assert found(64) == ["ARG208"]
    assert found(64, **{"argocd.argoproj.io/manifest-generate-paths": "."}) == []
