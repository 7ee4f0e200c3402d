"""Measure how long the clusters of `blueprint conform` take to start, and write bench/STARTING.md.

    python -m bench.starting [--runs 3]

Warm: programs are built, modules fetched. Every run is a fresh cluster for the production cluster of the reference
platform, with all its nodes. It counts from the first process until every program is ready, its webhooks written.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from blueprint.conform import modules
from blueprint.conform.component import Component
from blueprint.conform.components import argocd, core, gatekeeper, keda, kueue, kyverno, rollouts
from blueprint.conform.local import LocalCluster
from blueprint.conform.nodes import node_objects
from blueprint.conform.tree import Tree, rendered

ROOT = Path(__file__).resolve().parent.parent

_KUEUE = (kueue.KUEUE, kueue.TRAINING)
_ENGINES = (gatekeeper.GATEKEEPER, kyverno.KYVERNO, kyverno.REPORTS)
_CANARIES = (rollouts.ROLLOUTS, rollouts.PROMETHEUS, keda.OPERATOR, keda.ADAPTER)
#: It ends at once without the settings that an installation brings along.
_CONTROLLER = replace(argocd.CONTROLLER, prepare=lambda ground: ground.create(*argocd.base()))
_ARGOCD = (argocd.REDIS, argocd.REPOSITORY, _CONTROLLER)
CLUSTERS: dict[str, tuple[tuple[Component, ...], float | None]] = {
    "etcd, API server, controller manager, scheduler, KWOK nodes": ((), 15.0),
    "Kueue and the training operator, too": (_KUEUE, None),
    "every controller": ((*_KUEUE, *_ENGINES, *_CANARIES, *_ARGOCD), 45.0),
}
"""What is started beside the control plane, and the seconds that it may take."""

_HEAD = """\
# Starting, measured

Written by `python -m bench.starting` on {day}; not edited by hand. {nodes} nodes; median of {runs} runs,
and the longest; load of the machine before the first of them: {load:.1f}.

| cluster | processes | API server s | all s | longest s | budget s | memory MiB |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> int:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.starting", description="Measure conform's clusters.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "STARTING.md")
    options = parser.parse_args()
    tree = rendered(ROOT)
    load = float(Path("/proc/loadavg").read_text("ascii").split()[0])
    head = {"day": datetime.datetime.now(datetime.UTC).date(), "nodes": sum(1 for _ in node_objects(tree.bodies))}
    text = _HEAD.format(**head, runs=options.runs, load=load) + "".join(_rows(tree, options.runs))
    options.out.write_text(text, "utf-8")
    print(text)
    return 0


def _rows(tree: Tree, runs: int) -> Iterator[str]:
    for name, (components, budget) in CLUSTERS.items():
        found = [_once(tree, components) for _ in range(runs)]
        first, whole = (statistics.median(each[key] for each in found) for key in ("API server", "controllers"))
        longest, memory = (max(each[key] for each in found) for key in ("controllers", "memory"))
        held = "" if budget is None else f"{budget:.0f} {'held' if longest <= budget else 'MISSED'}"
        count = len(components) + len(core.CORE) + 2
        yield f"| {name} | {count} | {first:.1f} | {whole:.1f} | {longest:.1f} | {held} | {memory:,.0f} |\n"


def _once(tree: Tree, components: Sequence[Component]) -> dict[str, float]:
    """The marks of one start, and what its processes hold in memory when all are ready."""
    served = {(m.ref.group, m.kind) for m in tree.manifests} if components else set()
    crds = [crd for module, folders in modules.sources() for crd in modules.crds(module, "crds", folders, served)]
    with LocalCluster(tree.bodies, components, crds=crds) as cluster:
        pids = [int(file.read_text("ascii")) for file in cluster.pid_files]
        marks = dict(cluster.figures.marks)
        return {**marks, "memory": sum(_proportional(pid) for pid in pids) / 1024}


def _proportional(pid: int) -> float:
    """KiB of one process; what it shares with others is divided among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    sys.exit(main())
