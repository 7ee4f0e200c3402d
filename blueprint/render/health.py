"""Health scripts for the kinds that Argo CD cannot judge, and the argocd-cm that carries them.

A script is the shared head `prelude.lua` and the body of one file in `blueprint/catalog/data/health`; the comments at
the top of a body name the kinds it is for and the Go types it was read from. Argo CD runs it with the base and table
libraries only, for at most a second, gives it the object as `obj`, and takes back a table {status, message}
(argo-cd v3.6.1 util/lua/lua.go). An object that is being deleted is Progressing whatever a script says
(gitops-engine v3.6.1 pkg/health/health.go), so no script looks at that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from blueprint.catalog.argocd import GroupKind, checked_kinds
from blueprint.catalog.gating import Gates
from blueprint.catalog.tables import table
from blueprint.render.emit import emit

_KINDS = "-- kinds: "


@cache
def scripts() -> Mapping[GroupKind, str]:
    """The complete script for each kind; the kind `*` stands for every kind of its group."""
    folder = resources.files("blueprint.catalog").joinpath("data/health")
    prelude = folder.joinpath("prelude.lua").read_text("utf-8")
    found: dict[GroupKind, str] = {}
    for file in folder.iterdir():
        head, _, body = file.read_text("utf-8").partition("\n")
        if head.startswith(_KINDS):
            for name in head.removeprefix(_KINDS).split():
                group, _, kind = name.rpartition("/")
                found[group, kind] = f"{prelude}\n{body}"
    return MappingProxyType(dict(sorted(found.items())))


def gates(*, scripted: bool = True) -> Gates:
    """What Argo CD can judge: by itself, and with our scripts unless `scripted` is false."""
    ours = frozenset(scripts())
    return Gates(checked_kinds() | ours if scripted else checked_kinds(), active=ours)


def key(group: str, kind: str) -> str:
    """The key of argocd-cm for the script of one kind (argo-cd v3.6.1 docs/operator-manual/health.md)."""
    return f"resource.customizations.health.{group}_{kind}" if group else f"resource.customizations.health.{kind}"


def argocd_cm(kinds: Collection[GroupKind] | None = None) -> dict[str, str]:
    """The entries that the platform adds to `data` of the ConfigMap argocd-cm.

    The scripts for `kinds` (default: all) and for Applications; what every cluster's controllers write into objects
    that Git also holds: the CA bundles of webhooks, and the rules of aggregated ClusterRoles.
    """
    wanted = {"argoproj.io/Application", *(f"{group}/{kind}" for group, kind in kinds or ())}
    groups = {group for group, _ in kinds or ()}
    data: dict[str, str] = {}
    patterns: dict[str, dict[str, str]] = {}
    for (group, kind), script in scripts().items():
        if kind == "*":
            # A key of a ConfigMap cannot hold `*`: wildcards only work under the one old key.
            if kinds is None or group in groups:
                patterns[f"{group}/*"] = {"health.lua": script}
        elif kinds is None or f"{group}/{kind}" in wanted:
            data[key(group, kind)] = script
    if patterns:
        data["resource.customizations"] = emit(patterns)
    for name, paths in table("drift")["system"].items():
        kind, _, group = name.partition(".")
        data[f"resource.customizations.ignoreDifferences.{group}_{kind}"] = emit({"jqPathExpressions": paths["jq"]})
    data["resource.compareoptions"] = emit({"ignoreAggregatedRoles": True})
    return dict(sorted(data.items()))
