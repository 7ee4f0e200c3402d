"""A dump of a cluster: which kinds it must hold for a tree, and whether it holds all of each.

`kubectl get … -o json` of several kinds gives one List, in which a kind that nobody asked for looks like one of which
there is none. So each kind comes as a list of its own, which names it even where it is empty: what `kubectl get --raw`
gives, with the version of the moment at which the API server answered. Part of an answer says so (`continue`).
Source: k8s.io/apimachinery v0.35.4 pkg/apis/meta/v1/types.go (ListMeta).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import CONSTRAINTS, KYVERNO, NATIVE, policies_of
from blueprint.catalog.resources import Resources
from blueprint.check.shapes import mapping
from blueprint.errors import UsageError
from blueprint.objects import Manifest

WEBHOOKS: Final = (NATIVE, "ValidatingWebhookConfiguration")
_ALWAYS: Final = (
    ("v1", "Namespace"),
    ("v1", "PersistentVolumeClaim"),
    ("velero.io/v1", "Backup"),
    ("velero.io/v1", "BackupStorageLocation"),
    ("velero.io/v1", "PodVolumeBackup"),
    ("velero.io/v2alpha1", "DataUpload"),
)
_ENGINE: Final = (("apps/v1", "Deployment"), ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"))
_OF_KYVERNO: Final = (
    ("policies.kyverno.io/v1", "PolicyException"),
    ("wgpolicyk8s.io/v1alpha2", "PolicyReport"),
    ("wgpolicyk8s.io/v1alpha2", "ClusterPolicyReport"),
)
_OF_GATEKEEPER: Final = (("config.gatekeeper.sh/v1alpha1", "Config"),)
_INSTEAD: Final = {
    ("wgpolicyk8s.io", "PolicyReport"): ("openreports.io", "Report"),
    ("wgpolicyk8s.io", "ClusterPolicyReport"): ("openreports.io", "ClusterReport"),
}
"""Kinds that hold the same: Kyverno writes one of both (kyverno v1.19.1, `--openreportsEnabled`)."""


@dataclass(frozen=True, slots=True, order=True)
class Listed:
    """A kind of which a dump must hold every object; `path` is where the API server lists them."""

    group: str
    kind: str
    path: str


_CONFIG: Final = Listed("", "ConfigMap", "/api/v1/namespaces/kyverno/configmaps")
"""What Kyverno passes over; of other namespaces nothing is asked."""

_RULES: Final = Listed("", "ConfigMap", "/api/v1/namespaces/velero/configmaps")
"""What Velero skips, where a Schedule of the tree names such rules."""


def needed(tree: World, *, offline: bool = False) -> list[Listed]:
    """The kinds that tell about the policies of a tree and about backups; of backups alone with an `offline` run."""
    found = set(_ALWAYS)
    groups: set[str] = set()
    for policy in () if offline else policies_of(tree):
        found.add((policy.api_version, policy.kind))
        groups.add(policy.ref.group)
    more = [_RULES] if any(_has_rules(each) for each in tree.all("velero.io", "Schedule")) else []
    more += [_CONFIG] if KYVERNO in groups else []
    if KYVERNO in groups:
        found |= {*_OF_KYVERNO, *_ENGINE}
    if CONSTRAINTS in groups:
        found |= {*_OF_GATEKEEPER, *_ENGINE}
    return sorted([*more, *(_listed(version, kind) for version, kind in found)])


def _has_rules(schedule: Manifest) -> bool:
    return bool(mapping(mapping(schedule.body.get("spec")).get("template")).get("resourcePolicy"))


def _listed(version: str, kind: str) -> Listed:
    group, _, _ = version.rpartition("/")
    known = Resources().kind(group, kind)
    plural = known.plural if known else kind.lower()  # constraints, whose plural is that (frameworks pkg/client/crds)
    return Listed(group, kind, f"/{'apis' if group else 'api'}/{version}/{plural}")


def read_dump(files: Sequence[Path], wanted: Sequence[Listed]) -> World:
    """The objects of a dump; a reason to refuse for each kind that it need not hold, or not all of.

    Raises UsageError for a file that cannot be read.
    """
    world = World.read(files)
    told: set[tuple[str, str]] = set()
    for file in _files(files):
        for group, kind, whole in _lists(file):
            told.add((group, kind))
            if not whole:
                world.refuse("CRE111", f"the list of {kind} in {file.name} is a part, or of no moment")
    for each in wanted:
        name = (each.group, each.kind)
        if name not in told and _INSTEAD.get(name) not in told:
            fix = f"kubectl get --raw {each.path}"
            message = f"no list of {each.kind} ({each.group or 'core'}) is among the objects: none need not be none"
            world.refuse("CRE111", message, fix)
    for manifests in world.objects.values():
        for row, number in Counter(map(_name, manifests)).items():
            if number > 1:
                world.refuse("CRE111", f"{'/'.join(filter(None, row))} is there {number} times: which one is it?")
    return world


def _name(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.kind, manifest.ref.namespace, manifest.ref.name


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.json")) if path.is_dir() else [path]


def _lists(file: Path) -> Iterator[tuple[str, str, bool]]:
    """Group, kind and wholeness of a typed list; nothing for anything else, a List of any objects included."""
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        if file.suffix == ".json":
            raise UsageError("this is no JSON", where=str(file), hint="kubectl get --raw PATH > FILE") from None
        return
    for body in document if isinstance(document, list) else [document]:
        kind = str(mapping(body).get("kind") or "")
        if kind == "List" or not kind.endswith("List") or not isinstance(mapping(body).get("items", []), list | None):
            continue
        meta = mapping(mapping(body).get("metadata"))
        whole = bool(meta.get("resourceVersion")) and not (meta.get("continue") or meta.get("remainingItemCount"))
        yield str(body.get("apiVersion") or "").rpartition("/")[0], kind.removesuffix("List"), whole
