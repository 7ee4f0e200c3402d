"""Argo CD: the application controller, the repository server with its plugins' server, and the cache between them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from blueprint.conform import modules
from blueprint.conform.component import Component, Ground, Shipped

Body = dict[str, Any]

SPACE = "argocd"
_MODULE = "github.com/argoproj/argo-cd/v3"


def base() -> Iterator[Body]:
    """The settings that Argo CD is installed with, as its own Kustomize root ships them."""
    root = modules.folder(_MODULE, "crds") / "manifests/base/config"
    for body in modules.documents(sorted(root.glob("argocd-*.yaml"))):
        yield {**body, "metadata": {**body["metadata"], "namespace": SPACE}}
    project = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    spec = {**project, "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    yield {**kind, "metadata": {"name": "default", "namespace": SPACE}, "spec": spec}


def folders(folder: Path) -> Mapping[str, str]:
    """Where each part of Argo CD keeps its files, below one folder, by the environment variables that say so."""
    below = {
        "ARGOCD_TLS_DATA_PATH": "tls",
        "ARGOCD_SSH_DATA_PATH": "ssh",
        "ARGOCD_GNUPGHOME": "keyring",
        "ARGOCD_GPG_DATA_PATH": "keys",
        "ARGOCD_APP_CONF_PATH": "conf",
        "ARGOCD_PLUGINSOCKFILEPATH": "plugins",
        "TMPDIR": "tmp",
        "HOME": "home",
    }
    for name in below.values():
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {key: str(folder / name) for key, name in below.items()}


def environment(folder: Path, part: str) -> dict[str, str]:
    """The environment of one part (`argocd-repo-server`): one program, whose name decides what it is.

    The wrapper that checks signatures of commits is put on its path: it is called also where none is checked.
    """
    return {
        **folders(folder),
        "PATH": f"{_wrapper(folder)}:{os.environ.get('PATH', os.defpath)}",
        "ARGOCD_BINARY_NAME": part,
        "ARGOCD_FAKE_IN_CLUSTER": "true",  # the cluster of the kubeconfig is the one that it runs in
        "ARGOCD_GPG_ENABLED": "false",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _wrapper(folder: Path) -> Path:
    name = "git-verify-wrapper.sh"
    target = folder / "bin" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(modules.folder(_MODULE, "crds") / "hack" / name, target)
        target.chmod(0o755)
    return target.parent


def _address(ground: Ground, name: str) -> str:
    return f"127.0.0.1:{ground.others[name]['serve']}"


def _cache(ground: Ground) -> Sequence[str]:
    return ("--redis", _address(ground, "redis"), "--logformat=text")


REDIS = Component(
    name="redis",
    program="redis",
    ports=("serve",),
    listens=("serve",),
    arguments=lambda g: [f"127.0.0.1:{g.ports['serve']}"],
)

REPOSITORY = Component(
    name="argocd-repo-server",
    program="argocd",
    ports=("serve", "metrics"),
    listens=("serve",),
    namespaces=(SPACE,),
    crds=tuple(Shipped(_MODULE, ("manifests/crds",), kind=kind) for kind in ("Application", "AppProject")),
    environment=lambda g: environment(g.folder, "argocd-repo-server"),
    ready=lambda g: f"http://127.0.0.1:{g.ports['metrics']}/healthz",
    arguments=lambda g: [
        "--address=127.0.0.1",
        f"--port={g.ports['serve']}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={g.ports['metrics']}",
        *_cache(g),
    ],
    after=("redis",),
)

CONTROLLER = Component(
    name="argocd-application-controller",
    program="argocd",
    user="system:serviceaccount:argocd:argocd-application-controller",
    ports=("metrics",),
    listens=("metrics",),
    environment=lambda g: (
        environment(g.folder, "argocd-application-controller") | {"HOSTNAME": "argocd-application-controller-0"}
    ),
    ready=lambda g: f"http://127.0.0.1:{g.ports['metrics']}/healthz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        f"--namespace={SPACE}",
        f"--repo-server={_address(g, 'argocd-repo-server')}",
        f"--metrics-port={g.ports['metrics']}",
        *_cache(g),
    ],
    after=("redis", "argocd-repo-server"),
)
