"""Files that hold no object which shows their change: a review never takes them for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.review import review
from blueprint.review.model import Risk

CHART = {
    "shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
    "shop/values.yaml": "replicas: 3\n",
    "shop/templates/web.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
        "spec:\n  replicas: {{ .Values.replicas }}\n  selector: {matchLabels: {app: web}}\n"
    ),
    "plain/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n",
}


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The chart twice, where no program builds charts."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    for side in ("base", "head"):
        for name, text in CHART.items():
            path = tmp_path / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path / "base", tmp_path / "head"


def test_values_of_a_chart_that_could_not_be_built(trees: tuple[Path, Path]) -> None:
    base, head = trees
    (head / "shop/values.yaml").write_text("replicas: 0\n")
    found = review(str(base), str(head), findings=False)
    assert found.risk is Risk.UNKNOWN
    (said,) = found.meanings
    assert said.words == "shop/values.yaml changed: shop could not be built here, and what it makes is not judged"


def test_several_files_of_one_chart_are_one_row(trees: tuple[Path, Path]) -> None:
    base, head = trees
    (head / "shop/values.yaml").write_text("replicas: 0\n")
    (head / "shop/Chart.yaml").write_text(CHART["shop/Chart.yaml"].replace("0.1.0", "0.2.0"))
    (said,) = review(str(base), str(head), findings=False).meanings
    assert said.words.startswith("shop/Chart.yaml and 1 more changed: shop could not be built here")


def test_files_beside_the_chart_are_judged_as_ever(trees: tuple[Path, Path]) -> None:
    base, head = trees
    (head / "plain/a.yaml").write_text("# a\n" + CHART["plain/a.yaml"])
    found = review(str(base), str(head), findings=False)
    assert (found.risk, found.meanings) == (Risk.NONE, ())
