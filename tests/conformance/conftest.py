"""One control plane for the whole suite, and the CRDs of every pinned module.

Without the built programs the suite is skipped in one line; with BLUEPRINT_CONFORMANCE=required (CI) that is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.conform import modules, programs
from blueprint.conform.controlplane import ControlPlane
from blueprint.errors import EnvironmentLacks
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates
from blueprint.spec.load import load
from tests.conformance.kueue.oracle import Oracle, running

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
#: It looks at what a run of `make conform` left, and is called by that.
collect_ignore = [] if "BLUEPRINT_EVIDENCE" in os.environ else ["test_suites.py"]


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
    return [crd for module, folders in modules.sources() for crd in modules.crds(module, "crds", folders)]


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


@pytest.fixture(scope="module")
def oracle(crds: list[dict[str, Any]]) -> Iterator[Oracle]:
    """Kueue's own scheduler, with all of Kueue's kinds."""
    program("minimalkueue")
    with running(crds) as started:
        yield started


@pytest.fixture(scope="module")
def promtool() -> Path:
    """Prometheus' own checker of rules."""
    return program("promtool")


@pytest.fixture(scope="session")
def reference() -> RenderedCluster:
    """The production cluster of the reference platform."""
    platform = load(ROOT).platform
    document = next(d for d in platform.clusters if d.model.metadata.name == "prod-a")
    return render(platform, document, Templates(), SchemaPack.shipped())
