"""One control plane for the whole suite, and the CRDs of every pinned module.

Without the built programs the suite is skipped in one line; with BLUEPRINT_CONFORMANCE=required (CI) that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.catalog.schemas import SchemaPack
from blueprint.conform import programs
from blueprint.conform.controlplane import ControlPlane
from blueprint.errors import EnvironmentLacks
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates
from blueprint.spec.load import load

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


class _Loader(yaml.CSafeLoader):
    """Reads `=` and timestamps as strings, as Go does."""


for _tag in ("value", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", lambda _, node: node.value)


def lacks() -> str:
    """What the machine lacks for this suite, "" for nothing."""
    try:
        for name in ("etcd", "kube-apiserver"):
            programs.find(name)
    except EnvironmentLacks as error:
        return f"{error.message} ({error.hint})"
    return "" if shutil.which("go") else "Go is missing, which finds the modules with the CRDs (https://go.dev/dl)"


def program(name: str) -> Path:
    """A built program beyond the API server; without it the test is skipped, in CI it fails.

    BLUEPRINT_LACKS names programs (separated by blanks) that CI could not build in time.
    """
    try:
        return programs.find(name).path
    except EnvironmentLacks as error:
        lacking = os.environ.get("BLUEPRINT_LACKS", "").split()
        if os.environ.get("BLUEPRINT_CONFORMANCE") == "required" and name not in lacking:
            pytest.fail(error.diagnostics(), pytrace=False)
        pytest.skip(f"{error.message} ({error.hint})")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here. Where something is missing, one test stands for all, so that the summary has one line."""
    mine = [item for item in items if HERE in item.path.parents]
    for item in mine:
        item.add_marker(pytest.mark.conformance)
    if mine and os.environ.get("BLUEPRINT_CONFORMANCE") != "required" and (reason := lacks()):
        mine[0].add_marker(pytest.mark.skip(reason=f"{len(mine)} conformance tests: {reason}"))
        config.hook.pytest_deselected(items=mine[1:])
        items[:] = [item for item in items if item not in set(mine[1:])]


@pytest.fixture(scope="session", autouse=True)
def equipment() -> None:
    """Fail in plain words where the suite must run and cannot."""
    if reason := lacks():
        pytest.fail(f"conformance is required, but {reason}", pytrace=False)


@pytest.fixture(scope="session")
def crds() -> list[dict[str, Any]]:
    """Every CustomResourceDefinition that the schema pack is made from, as its project ships it."""
    sources = [s for s in tomllib.loads((ROOT / "scripts/schemas.toml").read_text())["source"] if "crds" in s]
    environment = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    command = ["go", "mod", "download", "-json", *(source["module"] for source in sources)]
    done = subprocess.run(command, cwd=ROOT / "tools/crds", env=environment, capture_output=True, text=True, check=True)
    modules = {found["Path"]: Path(found["Dir"]) for found in _stream(done.stdout)}
    files = [
        file for s in sources for folder in s["crds"] for file in sorted((modules[s["module"]] / folder).glob("*.yaml"))
    ]
    documents = [d for file in files for d in yaml.load_all(file.read_text("utf-8"), _Loader)]
    return [d for d in documents if d and d["kind"] == "CustomResourceDefinition"]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A running API server without CRDs; a test that writes takes a namespace of its own, or a dry run."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture(scope="session")
def platform_plane(control_plane: ControlPlane, crds: list[dict[str, Any]]) -> ControlPlane:
    """The same server with every CRD served."""
    control_plane.load_crds(crds)
    return control_plane


@pytest.fixture(scope="session")
def reference() -> RenderedCluster:
    """The production cluster of the reference platform."""
    platform = load(ROOT).platform
    document = next(d for d in platform.clusters if d.model.metadata.name == "prod-a")
    return render(platform, document, Templates(), SchemaPack.shipped())


def _stream(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents that stand one after the other in Go's output."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:]
