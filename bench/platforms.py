"""Platforms of any size, the same at every run: clusters, teams, and for each team jobs and models.

Each cluster holds every team, so growth in teams makes each cluster larger, not only the number of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blueprint.render.emit import emit_all

API = "platform.blueprint/v1alpha1"
TRAINER = f"registry.example.com/training/torch@sha256:{'37bf51bf' * 8}"
SERVER = f"registry.example.com/serving/vllm@sha256:{'fb9bdb68' * 8}"

ARRIVALS = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a platform is; every team is on every cluster."""

    clusters: int
    teams: int

    @property
    def cluster_names(self) -> list[str]:
        """`prod-01`, `prod-02`, …"""
        return [f"prod-{number:02}" for number in range(1, self.clusters + 1)]


def write(root: Path, shape: Shape) -> int:
    """Write the specs of a platform of this shape below `root`; the number of files."""
    files = {f"clusters/{name}.yaml": [_cluster(name, shape.teams)] for name in shape.cluster_names}
    for number in range(1, shape.teams + 1):
        for document in _team(f"team-{number:03}", number, shape.cluster_names):
            name = "team" if document["kind"] == "Team" else document["metadata"]["name"]
            files[f"apps/team-{number:03}/{name}.yaml"] = [document]
    files["argocd/delivery.yaml"] = [_delivery(shape.cluster_names)]
    for path, documents in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(emit_all(documents), encoding="utf-8")
    return len(files)


def touch(root: Path, generation: int) -> None:
    """Change one spec of a written platform: one job's memory, so that a few objects come out different."""
    path = root / "apps/team-001/team-001-sft.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith("  memory: "))
    lines[at] = f"  memory: {64 + generation}Gi\n"
    path.write_text("".join(lines), encoding="utf-8")


def write_arrivals(file: Path, shape: Shape) -> None:
    """Write a table of ten thousand workloads that queue on one cluster: a third more than it has room for.

    Each team sends its two jobs and a small one, one after the other and at once.
    """
    each = ARRIVALS // (3 * shape.teams)
    rows = ["job,namespace,queue,pods,requests.cpu,requests.memory,requests.nvidia.com/gpu,at,count,every,duration"]
    for number in range(1, shape.teams + 1):
        team = f"team-{number:03}"
        rows.append(f"PyTorchJob/{team}-sft,{team},,,,,,{number}m,{each},20m,8h")
        rows.append(f"TrainJob/{team}-pretrain,{team},,,,,,{number}m,{each},90m,3h")
        rows.append(f",{team},training,1,8,32Gi,1,{number}m,{ARRIVALS // shape.teams - 2 * each},10m,2h")
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _cluster(name: str, teams: int) -> dict[str, Any]:
    def taint(value: str) -> list[dict[str, str]]:
        return [{"key": "nvidia.com/gpu", "value": value}]

    machine = {"cpu": 184, "memory": "1900Gi"}
    racks = (teams + 1) // 2  # of four nodes with eight GPUs each: at least two nodes for each team
    pools = [
        {"name": "h100", "purpose": "training", "nodes": 4 * racks, **machine, "taints": taint("training"),
         "gpus": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8},
         "racks": [{"block": f"b{rack // 8}", "rack": f"r{rack}", "nodes": 4} for rack in range(racks)]},
        {"name": "a100", "purpose": "serving", "nodes": 2 * teams, "cpu": 120, "memory": "960Gi",
         "taints": taint("serving"), "gpus": {"product": "NVIDIA-A100-SXM4-80GB", "count": 8}},
        {"name": "system", "purpose": "system", "nodes": 3, "cpu": 15, "memory": "60Gi"},
    ]  # fmt: skip
    spec = {
        "environment": "production",
        "server": f"https://{name}.k8s.example.com:6443",
        "nodePools": pools,
        "monitoring": {"labels": {"release": "monitoring"}},
        "gateway": {"domain": f"{name}.example.com"},
        "storage": {"block": "fast-block", "shared": "shared-files"},
        "platformAdmins": ["oidc:platform-admins"],
    }
    return _document("Cluster", name, spec)


def _team(team: str, number: int, clusters: list[str]) -> Iterator[dict[str, Any]]:
    quotas = [{"cluster": cluster, "pool": "h100", "gpus": 16, "borrow": 16, "lend": 8} for cluster in clusters]
    quotas += [{"cluster": cluster, "pool": "a100", "gpus": 16, "lend": 0} for cluster in clusters]
    members = [
        {"group": f"oidc:{team}", "role": "developer"},
        {"group": f"oidc:{team}-leads", "role": "lead"},
    ]
    yield _document("Team", team, {"weight": 1 + number % 3, "members": members, "quotas": quotas})
    job = {"team": team, "clusters": clusters, "pool": "h100", "image": TRAINER, "maxRuntime": "24h"}
    tuned = {
        "api": "PyTorchJob", "gpus": 2, "cpu": 16, "memory": "64Gi",
        "command": ["torchrun", "--nproc-per-node=2", "/opt/train/sft.py"],
        "args": ["--model=/data/models/base", f"--seed={number}"],
        "env": {"HF_HUB_OFFLINE": "1"},
        "datasets": [{"name": "models", "claim": "base-models", "path": "/data/models", "size": "2Ti"}],
        "checkpoint": {"size": "100Gi", "everySteps": 500},
    }  # fmt: skip
    yield _document("TrainingJob", f"{team}-sft", job | tuned)
    wide = {
        "api": "TrainJob", "nodes": 2, "gpus": 8, "cpu": 128, "memory": "1200Gi", "sharedMemory": "256Gi",
        "placement": {"required": "rack", "preferred": "block"}, "priority": "low",
        "command": ["torchrun", "/opt/train/pretrain.py"],
        "datasets": [{"name": "corpus", "claim": "corpus", "path": "/data/corpus", "size": "4Ti"}],
        "checkpoint": {"size": "1Ti", "everySteps": 500, "grace": "10m"},
    }  # fmt: skip
    yield _document("TrainingJob", f"{team}-pretrain", job | wide)
    service = {
        "team": team, "clusters": clusters, "model": "meta-llama/Llama-3.1-8B-Instruct",
        "engine": {"vllm": "0.33.0", "image": SERVER},
        "gpus": {"pool": "a100", "cpu": 16, "memory": "96Gi"},
        "context": 32768,
        "weights": {"claim": "weights", "path": "llama-3.1-8b-instruct", "version": "2026-09-12",
                    "size": "1Ti", "loadTime": "2m"},
        "replicas": {"min": 2, "max": 6, "scaleOn": "waiting-requests", "target": 8},
        "slo": {"firstToken": {"p90": "500ms"}, "errors": "0.5%"},
        "rollout": {"canary": ["5%", "20%", "50%"], "pause": "10m", "abortOn": "slo"},
    }  # fmt: skip
    yield _document("InferenceService", f"{team}-assist", service)


def _delivery(clusters: list[str]) -> dict[str, Any]:
    repository = {"url": "https://git.example.com/platform/gitops.git", "revision": "main", "path": "rendered"}
    return _document("Delivery", "platform", {"repository": repository, "promotion": [[name] for name in clusters]})
