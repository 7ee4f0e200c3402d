"""The waves of Argo CD before and after: what is written in another order, and where a wave stops to wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blueprint.catalog.argocd import checked_kinds
from blueprint.catalog.gating import Gates, reconciled
from blueprint.check.applications import health_scripts
from blueprint.check.graph import Graph
from blueprint.review.model import Meaning, Pair, Risk
from blueprint.review.pairs import Places
from blueprint.review.sides import Side, Sides
from blueprint.sync import Step, Verdict, floor_seconds, simulate, wave

_WORDS = (b"kind: Application", b'"Application"', b"argocd-cm")


def plans(sides: Sides, pairs: Sequence[Pair], where: Places) -> Iterator[Meaning]:
    """What differs in the waves of the Applications whose objects, or health checks, changed."""
    for cluster in dict.fromkeys(pair.cluster for pair in pairs if _orders(pair)):
        mine = [pair for pair in pairs if pair.cluster == cluster and _orders(pair)]
        folders = {m.folder for pair in mine for m in (pair.old, pair.new) if m is not None}
        everything = any(pair.ref.name == "argocd-cm" for pair in mine)
        old, new = (_plan(side, where, cluster, folders, everything) for side in (sides.base, sides.head))
        for name in sorted(old.keys() & new.keys()):
            yield from _compared(name, cluster, old[name], new[name])


def _orders(pair: Pair) -> bool:
    """Whether a pair may change a plan: it comes, goes, changes its wave, or is Argo CD's configuration."""
    if pair.old is None or pair.new is None or pair.renamed or pair.ref.name == "argocd-cm":
        return True
    return wave(pair.old.body) != wave(pair.new.body) or pair.old.folder != pair.new.folder


def _plan(side: Side, where: Places, cluster: str, folders: set[str], everything: bool) -> dict[str, tuple[Step, ...]]:
    """The waves of each Application of a cluster, as far as its objects lie in the folders."""
    if side.built is not None:
        found = side.whole.manifests
    else:
        found = list(side.holding(_WORDS).manifests)
        known = set(map(id, found))
        inside = [path for path in side.files if everything or path.rpartition("/")[0] in folders]
        found += [manifest for manifest in side.of(iter(inside)).manifests if id(manifest) not in known]
    graph = Graph(manifest for manifest in found if where.cluster(manifest) in (cluster, ""))
    gates = Gates(checked_kinds() | health_scripts(graph)[0], active=reconciled())
    return {
        sync.application.name: simulate(sync.objects, gates, namespace=sync.application.namespace)
        for sync in graph.deliveries.syncs
        if sync.application is not None and sync.objects
    }


def _compared(name: str, cluster: str, old: tuple[Step, ...], new: tuple[Step, ...]) -> Iterator[Meaning]:
    if len(old) != len(new):
        seconds = floor_seconds(old), floor_seconds(new)
        words = f"Application {name}: {len(old)} → {len(new)} waves (at least {seconds[0]} → {seconds[1]} s)"
        yield Meaning(Risk.NONE, words, cluster, name, "wave")
    before = {(step.phase, step.wave): step for step in old}
    for step in new:
        then = before.get((step.phase, step.wave))
        if then is None or then.verdict is step.verdict or Verdict.NOT_AWAITED in (then.verdict, step.verdict):
            continue
        why = f": {step.reasons[0][0]}, {step.reasons[0][1]}" if step.reasons else ""
        words = f"Application {name}: wave {step.wave} {then.verdict.value} → {step.verdict.value}{why}"
        yield Meaning(Risk.TRAFFIC if step.verdict is Verdict.HANGS else Risk.NONE, words, cluster, name, "wave")
