"""One size: build the platform, measure this product on it, then the peers on the very objects it rendered."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench import peers, platforms
from bench.peers import Peers
from bench.platforms import Shape
from bench.process import Series, measure
from blueprint.objects import Manifest
from blueprint.pipeline import render_platform

#: kustomize grows faster than its input: at ten times the objects it needs minutes.
LARGEST_KUSTOMIZATION = 2_000


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured at one size, by the name of the row."""

    shape: Shape
    objects: int
    megabytes: float
    ours: dict[str, Series]
    theirs: dict[str, Series] = field(default_factory=dict)


def shape_of(objects: int, clusters: int, scratch: Path) -> Shape:
    """The number of teams that gives about so many objects; found from two small platforms, for growth is linear."""
    few, more = (_count(Shape(clusters, teams), scratch / f"{clusters}x{teams}") for teams in (2, 4))
    per_team = (more - few) / 2
    return Shape(clusters, max(1, round(2 + (objects - few) / per_team)))


def _count(shape: Shape, folder: Path) -> int:
    platforms.write(folder, shape)
    rendering = render_platform(folder, folder / "rendered", check_only=True)
    if rendering.report.failed:
        raise AssertionError(rendering.report.findings[:3])
    return rendering.totals.objects


def run_size(shape: Shape, folder: Path, runs: int, tools: Peers | None) -> Result:
    """Measure one size in `folder`, which must be empty."""
    specs, tree = folder / "platform", folder / "tree"
    platforms.write(specs, shape)
    blueprint = [sys.executable, "-m", "blueprint"]
    render = [*blueprint, "render", str(specs), "--out", str(tree)]
    ours = {
        "cold": measure(render, cwd=folder, runs=runs, before=lambda run: _aside(tree, folder / f"tree-{run}")),
        "unchanged": measure(render, cwd=folder, runs=runs),
        "one spec changed": measure(render, cwd=folder, runs=runs, before=lambda run: platforms.touch(specs, run + 1)),
        "check": measure([*blueprint, "check", str(tree)], cwd=folder, runs=runs),
        **_decisions(blueprint, shape, folder, runs),
    }
    manifests = peers.objects(tree)
    size = sum(Path(manifest.source.file).stat().st_size for manifest in manifests) / 1e6
    result = Result(shape, len(manifests), size, ours)
    if tools is not None:
        result.theirs.update(_peers(folder, tree, manifests, runs, tools))
    return result


def _decisions(blueprint: list[str], shape: Shape, folder: Path, runs: int) -> dict[str, Series]:
    """What Kueue would do with one job of the platform and, measured once, with ten thousand of four teams."""
    explain = ["explain", "PyTorchJob/team-001-sft", str(folder / "tree" / shape.cluster_names[0])]
    explained = {"explain": measure([*blueprint, *explain], cwd=folder, runs=runs)}
    if shape.clusters > 1:
        return explained
    few, small = Shape(1, 4), folder / "small"
    platforms.write(small, few)
    platforms.write_arrivals(small / "arrivals.csv", few)
    render_platform(small, small / "tree")
    simulate = ["simulate", str(small / "tree"), "--arrivals", str(small / "arrivals.csv")]
    return explained | {"simulate": measure([*blueprint, *simulate], cwd=folder, runs=min(runs, 3))}


def _aside(tree: Path, place: Path) -> None:
    """Make way for a new tree. Not deleted: ext4 takes four times as long to create files where many went just before
    (it does not use the inodes of the last seconds again), and no cold run has that behind it.
    """
    if tree.exists():
        tree.rename(place)


def _peers(folder: Path, tree: Path, manifests: list[Manifest], runs: int, tools: Peers) -> dict[str, Series]:
    chart, schemas, kustomization = folder / "chart", folder / "schemas", folder / "kustomization"
    peers.write_schemas(manifests, schemas)
    peers.write_chart(manifests, chart)
    template, conform = tools.template(chart), tools.conform(schemas)
    peers.check_same(manifests, template)
    parts = sorted({Path(manifest.source.file).parent for manifest in manifests})
    measured = {
        "helm template | kubeconform": measure(template, conform, cwd=folder, runs=runs),
        "helm template": measure(template, cwd=folder, runs=runs),
        "kubeconform": measure(tools.conform(schemas, *parts), cwd=folder, runs=runs),
    }
    if len(manifests) <= LARGEST_KUSTOMIZATION:
        peers.write_kustomization(manifests, kustomization)
        build = tools.build(kustomization)
        peers.check_same(manifests, build)
        measured["kustomize build"] = measure(build, cwd=folder, runs=runs)
    return measured
