"""A cluster that is somebody's: what is written goes into namespaces of our own, and is removed whatever happens."""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from blueprint.conform.client import Client, Target
from blueprint.conform.tree import Tree
from blueprint.errors import EnvironmentLacks
from blueprint.objects import Manifest

Body = dict[str, Any]

MARK = "platform.blueprint/conform"
"""The label of everything that a run writes; its value is the run."""

_RBAC = "rbac.authorization.k8s.io"
_WRITTEN = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")
_SWEPT = (("v1", "Namespace"), (f"{_RBAC}/v1", "ClusterRoleBinding"), (f"{_RBAC}/v1", "ClusterRole"))
_SECONDS = 90.0
_OLD = timedelta(hours=1)


def new_prefix() -> str:
    """A prefix that no other run has."""
    return f"conform-{secrets.token_hex(3)}-"


def prefixed(tree: Tree, prefix: str) -> Tree:
    """The tree with namespaces, cluster-wide roles and the groups of people called otherwise.

    What has no namespace and gives no right keeps its name: it is only ever asked about, as a dry run.
    """
    roles = {body["metadata"]["name"] for body in tree.of_kind("ClusterRole")}

    def moved(manifest: Manifest) -> Manifest:
        body = copy.deepcopy(manifest.body)
        meta = body["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), MARK: prefix.strip("-")}
        if "namespace" in meta:
            meta["namespace"] = prefix + meta["namespace"]
        if body["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding"):
            meta["name"] = prefix + meta["name"]
        if "roleRef" in body and body["roleRef"]["name"] in roles:
            body["roleRef"]["name"] = prefix + body["roleRef"]["name"]
        for subject in body.get("subjects") or () if body["kind"].endswith("Binding") and "roleRef" in body else ():
            if "namespace" in subject:
                subject["namespace"] = prefix + subject["namespace"]
            if subject["kind"] == "Group" and not subject["name"].startswith("system:"):
                subject["name"] = prefix + subject["name"]
        return Manifest(body, manifest.source)

    found = {name: tuple(moved(manifest) for manifest in inside) for name, inside in tree.applications.items()}
    return replace(tree, applications=found)


@dataclass(slots=True)
class Borrowed:
    """While it is entered, the namespaces and rights of a prefixed tree are on the cluster, and nothing else of it.

    Raises EnvironmentLacks where something is refused, after what was written is removed again.
    """

    client: Client
    tree: Tree
    prefix: str
    leftovers: list[str] = field(default_factory=list)

    @property
    def plan(self) -> list[Body]:
        """What is written, in order."""
        spaces = dict.fromkeys(b["metadata"]["namespace"] for b in self.tree.bodies if "namespace" in b["metadata"])
        made = {b["metadata"]["name"]: b for b in self.tree.of_kind("Namespace")}
        marked = {MARK: self.prefix.strip("-")}
        plain = [_namespace(name, marked) for name in spaces if name not in made]
        own = [_namespace(name, {**body["metadata"]["labels"], **marked}) for name, body in made.items()]
        return [*own, *plain, *(body for body in self.tree.bodies if body["kind"] in _WRITTEN)]

    def earlier(self) -> list[Target]:
        """What runs that were killed have left, an hour ago or longer; a younger one may still be at work."""
        limit = (datetime.now(UTC) - _OLD).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [_target(body) for body in self._marked(MARK) if body["metadata"]["creationTimestamp"] < limit]

    def _marked(self, labels: str) -> list[Body]:
        return [b for version, kind in _SWEPT for b in self.client.every(version, kind, labels=labels)]

    def _mine(self) -> list[Target]:
        return [_target(body) for body in self._marked(f"{MARK}={self.prefix.strip('-')}")]

    def __enter__(self) -> Borrowed:
        try:
            for target in self.earlier():
                self.client.delete(target)
            for body in self.plan:
                answer = self.client.create(body)
                if not answer.ok:
                    what = f"{body['kind']} {body['metadata']['name']}"
                    raise EnvironmentLacks(f"this cluster refuses {what}: {answer.message}")
        except BaseException:
            self.sweep()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sweep()

    def sweep(self) -> None:
        """Remove all that bears the label of this run, and wait until it is gone; what stays is in `leftovers`."""
        for target in self._mine():
            self.client.delete(target)
        deadline = time.monotonic() + _SECONDS
        while (left := self._mine()) and time.monotonic() < deadline:
            time.sleep(0.5)
        self.leftovers = [f"{target.kind} {target.name}" for target in left]


def _target(body: Body) -> Target:
    return Target(body["apiVersion"], body["kind"], name=body["metadata"]["name"])


def _namespace(name: str, labels: Body) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def described(plan: list[Body]) -> Iterator[str]:
    """What is written, counted by kind."""
    kinds: dict[str, int] = {}
    for body in plan:
        kinds[body["kind"]] = kinds.get(body["kind"], 0) + 1
    for kind, count in kinds.items():
        yield f"{count} {kind}{'s' if count > 1 else ''}"
