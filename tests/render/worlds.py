"""Small platforms for tests of single families: specs as YAML text, rendered without files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.finding import Finding
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates
from blueprint.spec.load import load

DELIVERY = """
apiVersion: platform.blueprint/v1alpha1
kind: Delivery
metadata: {name: delivery}
spec: {repository: {url: https://git.example.com/platform/gitops.git}}
"""


class World:
    """One cluster rendered from texts; `get` finds objects by kind and name. `told`: what is found in the texts."""

    def __init__(self, folder: Path, *texts: str, delivery: str = DELIVERY, told: tuple[str, ...] = ()) -> None:
        (folder / "clusters").mkdir(parents=True)
        joined = "\n---\n".join(dedent(text) for text in (delivery, *texts))
        (folder / "clusters/all.yaml").write_text(joined)
        loaded = load(folder)
        assert tuple(finding.code for finding in loaded.findings) == told, [str(each) for each in loaded.findings]
        self.platform = loaded.platform
        self.cluster: RenderedCluster = render(
            loaded.platform, loaded.platform.clusters[0], Templates(), SchemaPack.shipped()
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.cluster.findings

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """Bodies of a kind by name."""
        return {f.manifest.ref.name: f.manifest.body for f in self.cluster.files if f.manifest.kind == kind}

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.all(kind)[name]


def cluster(pools: str, **spec: str) -> str:
    """A Cluster called `here` with the pools as a YAML flow list, and further fields as YAML flow values."""
    extra = "\n".join(f"  {key}: {value}" for key, value in spec.items())
    return (
        "apiVersion: platform.blueprint/v1alpha1\nkind: Cluster\nmetadata: {name: here}\nspec:\n"
        f"  environment: development\n  nodePools: {pools}\n{extra}\n"
    )


def team(quotas: str, name: str = "alpha", **spec: str) -> str:
    """A Team with the quotas as a YAML flow list."""
    extra = "\n".join(f"  {key}: {value}" for key, value in spec.items())
    return (
        f"apiVersion: platform.blueprint/v1alpha1\nkind: Team\nmetadata: {{name: {name}}}\nspec:\n"
        f"  members: [{{group: {name}s}}]\n  quotas: {quotas}\n{extra}\n"
    )


def job(name: str = "run", **spec: str) -> str:
    """A TrainingJob of team alpha on the cluster `here`."""
    fields = {
        "team": "alpha",
        "clusters": "[here]",
        "memory": "8Gi",
        "image": "registry.example.com/train@sha256:" + "0" * 64,
    } | spec
    lines = "\n".join(f"  {key}: {value}" for key, value in fields.items())
    return f"apiVersion: platform.blueprint/v1alpha1\nkind: TrainingJob\nmetadata: {{name: {name}}}\nspec:\n{lines}\n"


PLAIN = "{name: gpu, purpose: training, nodes: 2, cpu: 64, memory: 512Gi, gpus: {product: NVIDIA-L4, count: 8}}"
RACKS = (
    "{name: racked, purpose: training, nodes: 4, cpu: 64, memory: 512Gi,"
    " gpus: {product: NVIDIA-H100-80GB-HBM3, count: 8},"
    " racks: [{block: b1, rack: r1, nodes: 2}, {block: b1, rack: r2, nodes: 2}]}"
)
DRA = (
    "{name: claims, purpose: training, devices: dra, deviceClass: h100, nodes: 1, cpu: 64, memory: 512Gi,"
    " gpus: {product: NVIDIA-H100-80GB-HBM3, count: 8}}"
)
MIG = (
    "{name: slices, purpose: serving, nodes: 1, cpu: 64, memory: 512Gi,"
    " gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, mig: {strategy: mixed, layout: {1g.10gb: 2, 3g.40gb: 1}}}}"
)
