"""Objects of strangers: `check` is silent where a real API server takes them, and speaks where it refuses.

foreign/valid.yaml holds forms that are in use (charts, dumps, odd YAML, lists, resources of other projects),
foreign/broken.yaml the mistakes that people make.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.documents import documents
from blueprint.check.read import Reading, read_bytes
from blueprint.conform.controlplane import ControlPlane
from blueprint.finding import Finding
from tests.conformance.published.faults import Server

HERE = Path(__file__).parent / "foreign"
PACK = SchemaPack.shipped()
FOR_ANOTHER_TOOL = ("sops:",)
"""What marks a document that only its own tool makes into an object, so that no server is asked."""


def texts(name: str) -> list[object]:
    """The documents of a file, by the line where each starts."""
    found = documents((HERE / name).read_text("utf-8"))
    return [pytest.param(text, id=f"{name}:{start + 1}") for start, text, _ in found]


def said(text: str) -> tuple[Reading, list[Finding]]:
    """What is read, and what fails a run."""
    reading = Reading()
    read_bytes(text.encode(), "objects.yaml", reading)
    found = validate([*reading.manifests, *reading.aside], PACK, tree_rules=tree_rules()).findings
    return reading, [finding for finding in (*reading.findings, *found) if finding.fails]


@pytest.mark.parametrize("text", texts("valid.yaml"))
def test_nothing_is_said_of_what_the_server_takes(text: str, platform_plane: ControlPlane) -> None:
    reading, failing = said(text)
    assert failing == []
    for manifest in reading.manifests:
        known = PACK.kind(manifest.api_version, manifest.kind) is not None
        if known and not any(mark in text for mark in FOR_ANOTHER_TOOL):
            assert Server(platform_plane.client).refuses(manifest) == ""


@pytest.mark.parametrize("text", texts("broken.yaml"))
def test_something_is_said_of_what_the_server_refuses(text: str, platform_plane: ControlPlane) -> None:
    reading, failing = said(text)
    (manifest,) = reading.manifests
    assert not platform_plane.client.create(manifest.body, dry_run=True).ok
    assert failing
