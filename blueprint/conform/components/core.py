"""Kubernetes' own controllers and scheduler, and KWOK, which plays the kubelets."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from blueprint.conform import modules
from blueprint.conform.component import Component, Ground

#: KWOK's heartbeat may be late on a busy machine, and a node that flaps takes its pods' readiness along.
_GRACE = "--node-monitor-grace-period=24h"
#: Fifteen seconds by default: a suite that looks at autoscaling waits for several of them.
_SCALING = "--horizontal-pod-autoscaler-sync-period=1s"


def _common(ground: Ground) -> list[str]:
    return [
        f"--kubeconfig={ground.kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ground.ports['serve']}",
        f"--cert-dir={ground.folder}",
    ]


MANAGER = Component(
    name="kube-controller-manager",
    program="kube-controller-manager",
    user="system:kube-controller-manager",
    groups=(),
    ports=("serve",),
    listens=("serve",),
    ready=lambda g: f"https://127.0.0.1:{g.ports['serve']}/healthz",
    arguments=lambda g: [
        *_common(g),
        f"--service-account-private-key-file={g.plane.account_key}",
        "--use-service-account-credentials=true",
        _GRACE,
        _SCALING,
    ],
)

SCHEDULER = Component(
    name="kube-scheduler",
    program="kube-scheduler",
    user="system:kube-scheduler",
    groups=(),
    ports=("serve",),
    listens=("serve",),
    ready=lambda g: f"https://127.0.0.1:{g.ports['serve']}/healthz",
    arguments=_common,
)


def _stages(ground: Ground) -> Path:
    """KWOK does nothing without Stages: those of its module that make nodes Ready, and pods run until they go."""
    root = modules.folder("sigs.k8s.io/kwok", "kwok") / "kustomize" / "stage"
    files = [root / "node/fast/node-initialize.yaml"]
    files += [root / "pod/fast" / f"pod-{name}.yaml" for name in ("ready", "delete")]
    target = ground.folder / "stages.yaml"
    target.write_text(yaml.safe_dump_all(list(modules.documents(files))), "utf-8")
    return target


KWOK = Component(
    name="kwok",
    program="kwok",
    ports=("serve",),
    listens=("serve",),
    ready=lambda g: f"http://127.0.0.1:{g.ports['serve']}/healthz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        f"--config={_stages(g)}",
        "--manage-all-nodes=true",
        "--node-ip=127.0.0.1",
        f"--server-address=127.0.0.1:{g.ports['serve']}",
    ],
)

CORE = (MANAGER, SCHEDULER, KWOK)


def written(folder: Path, name: str, body: object) -> Path:
    """A configuration file in JSON, which is YAML, too."""
    file = folder / name
    file.write_text(json.dumps(body), "utf-8")
    return file
