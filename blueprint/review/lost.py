"""What is lost when an object is removed, and what only seems to move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from blueprint.admission.body import whole
from blueprint.check.pods import containers
from blueprint.check.shapes import items, mapping, text
from blueprint.objects import Manifest
from blueprint.report.totals import counted
from blueprint.review.around import Around
from blueprint.review.model import Pair, Risk, Statement
from blueprint.review.risks import row_for, stated
from blueprint.review.words import named
from blueprint.review.workloads import pods

_CASCADES = "resources-finalizer.argocd.argoproj.io"


def told(pair: Pair, say: str, risk: Risk, around: Around) -> tuple[str, Risk]:
    """The words of a row about a removed object, with what goes with it, and the class."""
    old = pair.there
    ref = old.ref
    if "{cascade}" in say:
        return _application(pair, say, around)
    if "{selected}" in say:
        names, pods = around.selected(pair.cluster, ref.namespace, mapping(old.body.get("spec")).get("podSelector"))
        about = f"{pods} pods of {named(names)} are" if names else "its pods are"
        return say.format(selected=about), risk
    if "{guard}" in say:
        return say.format(guard="guards its pods against eviction" if "Budget" in ref.kind else "scales it"), risk
    if ref.kind == "PersistentVolumeClaim":
        users = around.users(pair)
        size = text(mapping(mapping(mapping(old.body.get("spec")).get("resources")).get("requests")).get("storage"))
        used = f"; {named(users)} still mount it" if users else ""
        return f"{say} ({size or 'size unknown'}){used}", risk
    if ref.kind in ("CustomResourceDefinition", "ConstraintTemplate"):
        count = len(around.instances(old))
        return f"{say}: {count} in this tree, and those that only the cluster has", risk
    if ref.kind == "Namespace":
        inside = Counter(m.ref.kind for m in around.inside(ref.name, pair.cluster))
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(inside.items(), key=lambda e: (-e[1], e[0]))[:4])
        return f"{say}{f' ({listed})' if listed else ''}", risk
    if ref.kind in ("ConfigMap", "Secret", "ServiceAccount"):
        users = around.users(pair) if ref.kind == "ServiceAccount" else around.readers(pair)
        if not users and ref.kind != "Secret" and not around.component(pair):
            return "removed: no pod of the tree uses it", Risk.NONE
        component = around.component(pair)
        used = f": {named(users)}" if users else f": {component}'s own configuration" if component else ""
        return f"{say}{used}", Risk.TRAFFIC if component else risk
    return say, risk


def _application(pair: Pair, say: str, around: Around) -> tuple[str, Risk]:
    old = pair.there
    if old.ref.kind == "ApplicationSet":
        policy = mapping(mapping(old.body.get("spec")).get("syncPolicy"))
        if policy.get("preserveResourcesOnDeletion") is True:
            return say.format(cascade="its Applications go, and what they hold stays, unowned"), Risk.TRAFFIC
        return say.format(cascade="its Applications are deleted with all that they hold"), Risk.DESTRUCTIVE
    finalizers = [text(each) for each in items(mapping(old.body.get("metadata")).get("finalizers"))]
    if not any(each.startswith(_CASCADES) for each in finalizers):
        words = "it has no finalizer of Argo CD, so its objects stay, and nobody looks after them"
        return say.format(cascade=words), Risk.TRAFFIC
    held = around.folder(around.sides.base, old)
    count = counted(len(held), "object") if held else "everything that it holds"
    stateful = Counter(m.ref.kind for m in held if m.ref.kind in ("PersistentVolumeClaim", "Namespace", "StatefulSet"))
    data = ", ".join(f"{number} {kind}" for kind, number in sorted(stateful.items()))
    data = f", among them {data}" if data else ""
    return say.format(cascade=f"its finalizer deletes {count}{data}"), Risk.DESTRUCTIVE


def asks(manifest: Manifest) -> str:
    """`: 3 × 8 nvidia.com/gpu` for what a new workload asks of devices, "" for none."""
    body = mapping(manifest.body.get("spec"))
    found: Counter[str] = Counter()
    for pod in pods(manifest):
        for _, container in containers(pod.spec):
            for name, amount in mapping(mapping(container.get("resources")).get("limits")).items():
                if "/" in str(name) and str(amount).isdecimal():
                    found[str(name)] += int(str(amount))
    copies = whole(body, "replicas")
    times = f"{copies} × " if copies and copies > 1 else ""
    return ": asks " + ", ".join(f"{times}{count} {name}" for name, count in sorted(found.items())) if found else ""


def moved(pair: Pair, around: Around) -> Iterator[Statement]:
    """An object that goes from one folder to another, where each folder is an Application of its own."""
    assert pair.old is not None and pair.new is not None  # noqa: S101 - asked of changed objects alone
    folders = pair.old.folder, pair.new.folder
    if folders[0] == folders[1] or not _delivered(folders, around):
        return
    row = row_for(pair.ref.kind_name, "removed")
    words = f"moves from the Application of {folders[0]} to that of {folders[1]}"
    if row and row["class"] == "destructive":
        words += ": if the old one prunes first, it is deleted and made anew"
        yield stated(
            pair, Risk.DESTRUCTIVE, "owner", words, source="argo-cd v3.6.1 docs/user-guide/resource_tracking.md"
        )
    else:
        yield stated(pair, Risk.NONE, "owner", words)


def _delivered(folders: tuple[str, str], around: Around) -> bool:
    """Whether both folders are sources of different Applications, by what the head holds."""
    found = around.sides.head.holding((b"kind: Application",)).manifests
    paths = {
        text(mapping(mapping(m.body.get("spec")).get("source")).get("path")).strip("/")
        for m in found
        if m.ref.kind == "Application"
    }
    return all(any(path == each or path.endswith(f"/{each}") for path in paths) for each in folders)
