"""The annotations that Argo CD reads."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from blueprint.render.options import IGNORE, OPTIONS, annotated, json_size, too_large_to_remember
from blueprint.render.plan import Drift
from blueprint.sync import WAVE
from tests.render.plans import obj

GROUP_WITH_TEMPLATE = {"group": "example.com", "names": {"kind": "Widget"}}


def notes(manifest: Any, wave: int = 0, *drift: Drift) -> dict[str, str]:
    found: dict[str, str] = annotated(manifest, wave, drift).body["metadata"].get("annotations", {})
    return found


def test_only_a_wave_that_is_not_0_is_written() -> None:
    assert notes(obj("ConfigMap", "c")) == {}
    assert notes(obj("ConfigMap", "c"), 2) == {WAVE: "2"}
    assert notes(obj("ConfigMap", "c", annotations={WAVE: "7", "a": "b"}), 0) == {"a": "b"}


def test_the_object_given_stays_as_it_is() -> None:
    manifest = obj("Namespace", "team", annotations={"a": "b"})
    before = repr(manifest)
    after = annotated(manifest, 3)
    assert repr(manifest) == before
    assert after.source == manifest.source
    assert after.body["metadata"]["annotations"] is not manifest.body["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Namespace", "Prune=confirm,Delete=confirm"),
        ("PersistentVolumeClaim", "Prune=confirm,Delete=confirm"),
        ("ClusterQueue", "Prune=confirm,Delete=confirm"),
        ("LocalQueue", "Prune=confirm,Delete=confirm"),
        ("CustomResourceDefinition", "Prune=confirm,Delete=false"),
        ("K8sRequireTeam", "SkipDryRunOnMissingResource=true"),
        ("ConstraintTemplate", None),
        ("ResourceFlavor", None),
        ("Deployment", None),
    ],
)
def test_options_by_kind(kind: str, options: str | None) -> None:
    assert notes(obj(kind, "x")).get(OPTIONS) == options


def test_what_the_object_states_wins() -> None:
    stated = obj("Namespace", "team", annotations={OPTIONS: "Delete=false, Validate=false"})
    assert notes(stated)[OPTIONS] == "Delete=false,Validate=false,Prune=confirm"


def test_pointers_travel_and_jq_paths_do_not() -> None:
    found = notes(
        obj("Deployment", "d", "n"),
        0,
        Drift("scaled", pointers=("/spec/replicas",)),
        Drift("more", pointers=("/spec/paused", "/spec/replicas"), jq=(".spec.x[]",)),
    )
    assert yaml.safe_load(found[IGNORE]) == {"jsonPointers": ["/spec/paused", "/spec/replicas"]}
    assert notes(obj("Deployment", "d"), 0, Drift("jq only", jq=(".spec.x[]",))) == {}


class TestLastApplied:
    """The copy of an object in its own annotation has to stay under 262,144 bytes with all other annotations."""

    @staticmethod
    def crd(size: int, fill: str = "x") -> Any:
        return obj("CustomResourceDefinition", "w.example.com", spec={**GROUP_WITH_TEMPLATE, "x": fill * size})

    def test_a_large_object_is_applied_server_side(self) -> None:
        assert notes(self.crd(270_000))[OPTIONS] == "Prune=confirm,Delete=false,ServerSideApply=true"
        assert notes(self.crd(255_000))[OPTIONS] == "Prune=confirm,Delete=false"

    def test_brackets_take_six_bytes_in_the_copy(self) -> None:
        assert not too_large_to_remember(self.crd(50_000).body)
        assert too_large_to_remember(self.crd(50_000, "<").body)
        assert not too_large_to_remember(self.crd(40_000, "<").body)

    def test_other_annotations_count(self) -> None:
        body = self.crd(200_000).body
        assert not too_large_to_remember(body)
        body["metadata"]["annotations"] = {"note": "y" * 40_000}
        assert too_large_to_remember(body)

    def test_it_is_not_said_twice(self) -> None:
        manifest = self.crd(270_000)
        manifest.body["metadata"]["annotations"] = {OPTIONS: "ServerSideApply=true"}
        assert notes(manifest)[OPTIONS] == "ServerSideApply=true,Prune=confirm,Delete=false"

    def test_size_is_that_of_compact_json(self) -> None:
        assert json_size({"a": [1, "é"]}) == len('{"a":[1,"é"]}'.encode())
