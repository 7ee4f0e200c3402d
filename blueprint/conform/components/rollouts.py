"""Argo Rollouts and Prometheus: canaries, and what decides about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3

from blueprint.conform.component import Component, Ground, Shipped
from blueprint.conform.components.core import written
from blueprint.conform.daemon import NotReady

_RULES = "rules.json"
_SECONDS = 30

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
    """One target, named by the port `exporter`, scraped each second; its labels are its own. Rules are read from files
    that may come later (`load_rules`).
    """
    job = {
        "job_name": "exporter",
        "honor_labels": True,
        "static_configs": [{"targets": [f"127.0.0.1:{ground.ports['exporter']}"]}],
    }
    every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    rules = [str(ground.folder / _RULES)]
    return written(ground.folder, "prometheus.json", {"global": every, "scrape_configs": [job], "rule_files": rules})


def load_rules(ground: Ground, rules: Sequence[Mapping[str, Any]]) -> None:
    """Let a running Prometheus evaluate these rules each second, and no others; raises NotReady where it refuses."""
    written(ground.folder, _RULES, {"groups": [{"name": "conform", "rules": list(rules)}]})
    url = f"http://127.0.0.1:{ground.ports['serve']}/-/reload"
    answer = urllib3.request("POST", url, retries=False, timeout=_SECONDS)
    if answer.status != HTTPStatus.OK:
        raise NotReady(f"Prometheus does not take the rules: {answer.data.decode(errors='replace')[:500]}")


PROMETHEUS = Component(
    name="prometheus",
    program="prometheus",
    ports=("serve", "exporter"),
    listens=("serve",),
    ready=lambda g: f"http://127.0.0.1:{g.ports['serve']}/-/ready",
    arguments=lambda g: [
        f"--config.file={_scrape(g)}",
        f"--storage.tsdb.path={g.folder / 'series'}",
        "--web.enable-lifecycle",
        f"--web.listen-address=127.0.0.1:{g.ports['serve']}",
        "--log.level=warn",
    ],
)
