"""`--on current` against a cluster that is not the run's own: it asks, keeps to its own names, and leaves nothing."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blueprint.conform.borrowed import MARK
from blueprint.conform.client import Client
from blueprint.conform.local import LocalCluster
from tests.conformance.conftest import program

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "blueprint", "conform", str(ROOT), "--on", "current"]
SECONDS = 180
SHARED = ("v1", "Namespace"), ("rbac.authorization.k8s.io/v1", "ClusterRole")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
        program(name)
    with LocalCluster([]) as started:
        yield started


def environment(cluster: LocalCluster) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(cluster.plane.kubeconfig)}


def names(client: Client) -> set[str]:
    return {body["metadata"]["name"] for version, kind in SHARED for body in client.every(version, kind)}


def marked(client: Client) -> list[str]:
    return [b["metadata"]["name"] for version, kind in SHARED for b in client.every(version, kind, labels=MARK)]


def test_nothing_is_written_before_somebody_agrees(cluster: LocalCluster) -> None:
    before = names(cluster.client)
    done = subprocess.run(
        COMMAND, env=environment(cluster), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "removes them again" in done.stderr
    assert "--yes" in done.stderr
    ours, theirs = pty.openpty()
    asked = subprocess.Popen(COMMAND, env=environment(cluster), stdin=theirs, stderr=subprocess.PIPE, text=True)
    os.write(ours, b"n\n")
    _, said = asked.communicate(timeout=SECONDS)
    assert "Go on?" in said
    assert asked.returncode == 1
    assert names(cluster.client) == before


def test_what_can_be_shown_is_shown_and_nothing_stays(cluster: LocalCluster, tmp_path: Path) -> None:
    before = names(cluster.client)
    words = [*COMMAND, "--yes", "-o", "json", "--out", str(tmp_path / "evidence")]
    done = subprocess.run(words, env=environment(cluster), capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["on"], found["server"]) == ("current", cluster.plane.version)
    assert [case for case in found["cases"] if not case["passed"]] == []
    assert {"drift", "access"} <= {row["suite"] for row in found["suites"]}
    assert all(row["negative"] for row in found["suites"])
    assert {"order", "devices", "kueue", "canary", "policies", "argocd"} <= set(found["skipped"])
    assert "still there" not in done.stderr
    assert names(cluster.client) == before
    assert not (tmp_path / "evidence/PRODUCT.yaml").exists(), "too little was shown for a submission"


def test_an_end_in_the_middle_leaves_nothing_either(cluster: LocalCluster) -> None:
    before = names(cluster.client)
    words = [*COMMAND, "--yes", "--suite", "access"]
    running = subprocess.Popen(words, env=environment(cluster), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not marked(cluster.client):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.2)
    running.send_signal(signal.SIGTERM)
    assert running.wait(SECONDS) == 143
    assert marked(cluster.client) == []
    assert names(cluster.client) == before
