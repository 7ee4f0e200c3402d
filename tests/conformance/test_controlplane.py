import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blueprint.conform.client import Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.daemon import NotReady

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "gateway", "namespace": "boot"},
    "spec": {
        "selector": {"matchLabels": {"app": "gateway"}},
        "template": {
            "metadata": {"labels": {"app": "gateway"}},
            "spec": {"containers": [{"name": "gateway", "image": "registry.example.com/gateway@sha256:" + "0" * 64}]},
        },
    },
}


def test_it_says_its_version(control_plane):
    assert control_plane.version.startswith("v1.35.")


def test_a_deployment_applies_strictly_and_reads_back(control_plane):
    control_plane.namespace("boot")
    applied = control_plane.client.apply(DEPLOYMENT)
    assert applied.status == 201, applied.message
    read = control_plane.client.get(Target.of(DEPLOYMENT))
    assert read.body["spec"]["replicas"] == 1
    assert control_plane.client.delete(Target.of(DEPLOYMENT)).ok
    assert control_plane.client.get(Target.of(DEPLOYMENT)).status == 404


@pytest.mark.parametrize("write", ["create", "apply"])
def test_an_unknown_field_is_refused(control_plane, write):
    control_plane.namespace("boot")
    wrong = DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"replica": 2}}
    answer = getattr(control_plane.client, write)(wrong, dry_run=True)
    assert not answer.ok
    assert "spec.replica" in answer.message


def test_a_dry_run_leaves_nothing(control_plane):
    control_plane.namespace("boot")
    assert control_plane.client.create(DEPLOYMENT, dry_run=True).status == 201
    assert control_plane.client.get(Target.of(DEPLOYMENT)).status == 404


def test_a_kind_that_is_not_served_is_a_404_that_names_it(control_plane):
    answer = control_plane.client.create({"apiVersion": "apps/v1beta1", "kind": "Deployment"})
    assert answer.status == 404
    assert 'no matches for kind "Deployment" in version "apps/v1beta1"' in answer.message


def test_every_crd_is_served(platform_plane, crds):
    assert len(crds) >= 150
    served = [
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
        for crd in crds
        for version in crd["spec"]["versions"]
        if version["served"]
    ]
    assert [kind for kind in served if not platform_plane.client.serves(*kind)] == []


def test_a_server_that_cannot_start_is_an_error_with_its_log(tmp_path):
    with (
        pytest.raises(NotReady, match="kube-apiserver ended with code 1") as refused,
        ControlPlane(tmp_path, flags=["--no-such-flag"]),
    ):
        pass
    assert "unknown flag: --no-such-flag" in str(refused.value)
    assert list(tmp_path.glob("*.pid")) == []


RUNNER = """
import sys, time
from pathlib import Path
from blueprint.conform.controlplane import ControlPlane
with ControlPlane(Path(sys.argv[1])) as plane:
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_runner_leaves_no_process(tmp_path, number):
    with subprocess.Popen([sys.executable, "-c", RUNNER, tmp_path], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout.readline() == "ready\n"
        pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
        assert len(pids) == 2
        assert all(running(pid) for pid in pids)
        runner.send_signal(number)
        runner.wait()
    deadline = time.monotonic() + 30
    while any(running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in pids if running(pid)] == []


def running(pid: int) -> bool:
    """Whether the process exists and has not ended (a zombie waits only for its parent)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
