"""The graph of needs between the objects of a plan: which edges there are, and how strict each is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from blueprint.catalog import gating
from blueprint.catalog.argocd import GroupKind, sync_rank
from blueprint.catalog.references import pod_spec_paths, references
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest
from blueprint.render.layers import Edge
from blueprint.render.plan import External, Item
from blueprint.render.wave_findings import unmet

_CLAIM = ("", "PersistentVolumeClaim")


@dataclass(slots=True)
class Graph:
    """Edges between items by number, who uses a claim in its own Application, what can stall and why, unmet needs."""

    refs: list[Ref]
    edges: list[Edge] = field(default_factory=list)
    users: dict[int, list[int]] = field(default_factory=dict)
    stalls: dict[int, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def graph(items: Sequence[Item], refs: list[Ref], outside: Collection[Ref]) -> Graph:
    """Link the items: what each says it needs, what its fields name, its namespace, its CRD, its constraint template.

    `refs` are the identities of the items, in the same order. Where an object occurs twice the first one counts.
    A need stated in `Item.needs` that no item and no `outside` meets is a finding; a name in a field that leads nowhere
    is not (that is a finding about the object itself).
    """
    result = Graph(refs)
    index: dict[Ref, int] = {}
    kinds: dict[GroupKind, int] = {}
    for number, (ref, item) in enumerate(zip(refs, items, strict=True)):
        index.setdefault(ref, number)
        if ref.kind == "CustomResourceDefinition":
            kinds.setdefault(_defined(item.manifest), number)
    for number in range(len(items)):
        ref = refs[number]
        _link(result, number, items, index, outside)
        crd = kinds.get((ref.group, ref.kind))
        if crd is not None:
            result.edges.append((crd, number, _weight(refs[crd], ref)))
    _stalls(result, items, index)
    return result


def _link(result: Graph, number: int, items: Sequence[Item], index: dict[Ref, int], outside: Collection[Ref]) -> None:
    ref, item = result.refs[number], items[number]
    seen = {number}
    for need in _stated(item, ref):
        target = need.ref if isinstance(need, External) else need
        needed = index.get(target)
        if needed is None:
            if not isinstance(need, External) and target not in outside:
                result.findings.append(unmet(item, target))
        elif needed not in seen:
            seen.add(needed)
            result.edges.append((needed, number, _weight(target, ref)))
    follows = gating.tolerates_absence(ref.group, ref.kind)
    runs_pods = bool(pod_spec_paths(f"{ref.kind}.{ref.group}" if ref.group else ref.kind)) and ref.kind != "CronJob"
    for reference in references(item.manifest):
        needed = index.get(reference.target)
        if needed is None or needed in seen:
            continue
        seen.add(needed)
        target = reference.target
        claim = (target.group, target.kind) == _CLAIM
        if claim and items[needed].application != item.application:
            continue  # a pod waits for its claim by itself, so Applications with claims need not come first
        result.edges.append((needed, number, 0 if follows else _weight(target, ref)))
        if runs_pods and claim:
            result.users.setdefault(needed, []).append(number)


def _stated(item: Item, ref: Ref) -> Iterator[Ref | External]:
    yield from item.needs
    maker = gating.maker(ref)
    if maker is not None:
        yield External(maker)


def _weight(needed: Ref, needing: Ref) -> int:
    """0 where one wave will do: Argo CD writes the needed kind first in it, and written is all it takes."""
    earlier = sync_rank(needed.kind) < sync_rank(needing.kind)
    return 0 if earlier and gating.exists_is_enough(needed.group, needed.kind) else 1


def _defined(manifest: Manifest) -> GroupKind:
    spec = manifest.body.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return "", ""
    return str(spec.get("group", "")), str(names.get("kind", ""))


def _stalls(result: Graph, items: Sequence[Item], index: dict[Ref, int]) -> None:
    """Note every object that can wait without end: by the table, or a claim that no pod of its Application uses."""
    for number, item in enumerate(items):
        ref = result.refs[number]
        if (ref.group, ref.kind) == _CLAIM:
            if number not in result.users and not _binds_at_once(item.manifest, items, index):
                result.stalls[number] = "no pod of its Application uses it, and it may bind only when one does"
        else:
            reason = gating.stalls(item.manifest)
            if reason:
                result.stalls[number] = reason


def _binds_at_once(claim: Manifest, items: Sequence[Item], index: dict[Ref, int]) -> bool:
    """Whether a claim surely binds without a pod: a volume is named, or its class is in the plan and immediate."""
    spec = claim.body.get("spec")
    if not isinstance(spec, dict):
        return False
    if spec.get("volumeName"):
        return True
    name = spec.get("storageClassName")
    number = index.get(Ref("storage.k8s.io", "StorageClass", "", name)) if isinstance(name, str) else None
    if number is None:
        return False
    mode = items[number].manifest.body.get("volumeBindingMode", "Immediate")
    return bool(mode == "Immediate")
