"""Argo Rollouts and Prometheus: canaries, and what decides about them."""

from __future__ import annotations

from pathlib import Path

from blueprint.conform.component import Component, Ground, Shipped
from blueprint.conform.components.core import written

ROLLOUTS = Component(
    name="argo-rollouts",
    program="rollouts-controller",
    user="system:serviceaccount:argo-rollouts:argo-rollouts",
    ports=("metrics", "health"),
    listens=("health",),
    namespaces=("argo-rollouts",),
    crds=(Shipped("github.com/argoproj/argo-rollouts", ("manifests/crds",)),),
    ready=lambda g: f"http://127.0.0.1:{g.ports['health']}/healthz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        "--leader-elect=false",
        f"--metricsPort={g.ports['metrics']}",
        f"--healthzPort={g.ports['health']}",
    ],
)


def _scrape(ground: Ground) -> Path:
    """One target, named by the port `exporter`, scraped each second; its labels are its own."""
    job = {
        "job_name": "exporter",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{ground.ports['exporter']}"]}],
    }
    every = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    return written(ground.folder, "prometheus.json", {"global": every, "scrape_configs": [job]})


PROMETHEUS = Component(
    name="prometheus",
    program="prometheus",
    ports=("serve", "exporter"),
    listens=("serve",),
    ready=lambda g: f"http://127.0.0.1:{g.ports['serve']}/-/ready",
    arguments=lambda g: [
        f"--config.file={_scrape(g)}",
        f"--storage.tsdb.path={g.folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{g.ports['serve']}",
        "--log.level=warn",
    ],
)
