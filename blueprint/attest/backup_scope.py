"""What a backup leaves out: namespaces, kinds and objects that it does not hold, whatever it completed.

A Schedule of the tree was reviewed: what its template leaves out may be left out. Everything else that narrows a backup
is refused. Source: github.com/vmware-tanzu/velero v1.18.3 pkg/apis/velero/v1/backup_types.go (BackupSpec),
pkg/controller/backup_controller.go (`autoExclude…`), pkg/util/wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from blueprint.attest.evidence import Body, World
from blueprint.check.shapes import mapping, texts
from blueprint.objects import Manifest

_EXCLUDING: Final = ("excludedResources", "excludedClusterScopedResources", "excludedNamespaceScopedResources")
_INCLUDING: Final = ("includedResources", "includedClusterScopedResources", "includedNamespaceScopedResources")
_SELECTING: Final = ("labelSelector", "orLabelSelectors", "resourcePolicy")
_ITS_OWN: Final = frozenset(
    {
        "volumesnapshots.snapshot.storage.k8s.io",
        "volumesnapshotcontents.snapshot.storage.k8s.io",
        "events",
        "events.events.k8s.io",
    }
)
"""What Velero leaves out by itself, for it makes them anew, and what tells of the past."""


def narrowed(backup: Manifest, tree: World, world: World) -> None:
    """Refuse a backup that leaves out more than a Schedule of the tree does."""
    spec, name = mapping(backup.body.get("spec")), backup.ref.name
    reviewed = list(_templates(tree))
    for key in _EXCLUDING:
        allowed = _ITS_OWN.union(*(texts(each.get(key)) for each in reviewed))
        if left_out := sorted(set(texts(spec.get(key))) - allowed):
            world.refuse("CRE210", f"backup {name} leaves out {', '.join(left_out)} ({key})")
    for key in _INCLUDING:
        said = texts(spec.get(key))
        if said and "*" not in said and said not in [texts(each.get(key)) for each in reviewed]:
            world.refuse("CRE210", f"backup {name} holds {', '.join(said)} only ({key})")
    for key in _SELECTING:
        if bare(spec.get(key)) and bare(spec.get(key)) not in [bare(each.get(key)) for each in reviewed]:
            world.refuse("CRE210", f"backup {name} holds what its {key} takes, and that was not rendered")
    _volumes_rules(backup, mapping(spec.get("resourcePolicy")), tree, world)
    if spec.get("includeClusterResources") is False:
        world.refuse("CRE210", f"backup {name} leaves out everything that is in no namespace")


def _volumes_rules(backup: Manifest, named: Body, tree: World, world: World) -> None:
    """Hold the ConfigMap with the rules to the rendered one: by them Velero skips volumes, kinds and namespaces."""
    name, space = str(named.get("name") or ""), backup.ref.namespace
    kept = tree.named("", "ConfigMap", name, space) if name else None
    if kept is None:
        return  # one that no Schedule of the tree names is refused above
    found = world.named("", "ConfigMap", name, space)
    if found is None or bare(found.body.get("data")) != bare(kept.body.get("data")):
        said = "is not among the objects" if found is None else "is not what was rendered"
        world.refuse("CRE210", f"the ConfigMap {space}/{name}, by which {backup.ref.name} leaves out, {said}")


def holds_namespace(spec: Body, namespace: str) -> bool:
    """Whether a backup is of a namespace: none named is all, and names may have stars."""
    included, excluded = texts(spec.get("includedNamespaces")), texts(spec.get("excludedNamespaces"))
    taken = not included or any(fnmatchcase(namespace, pattern) for pattern in included)
    return taken and not any(fnmatchcase(namespace, pattern) for pattern in excluded)


def bare(value: object) -> object:
    """A value without the fields that hold nothing, which one writer leaves out and another does not."""
    if isinstance(value, dict):
        kept = {key: bare(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, {}, [], "")}
    return [bare(inner) for inner in value] if isinstance(value, list) else value


def _templates(tree: World) -> Iterator[Body]:
    for schedule in tree.all("velero.io", "Schedule"):
        yield mapping(mapping(schedule.body.get("spec")).get("template"))
