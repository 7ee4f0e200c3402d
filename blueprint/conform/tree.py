"""A rendered cluster as the suites see it: objects by Application, in the order in which Argo CD meets them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import UsageError
from blueprint.objects import Manifest
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates, shipped_folder
from blueprint.spec.load import load

Body = dict[str, Any]
Change = Callable[[Body], None]


@dataclass(frozen=True, slots=True)
class Tree:
    """`applications` are the children of the root, by its waves.

    `own` is what Argo CD itself is told; `plain` are files that are no objects, as path below the tree and text.
    """

    name: str
    applications: Mapping[str, tuple[Manifest, ...]]
    own: tuple[Manifest, ...]
    plain: Mapping[str, str]

    @property
    def manifests(self) -> Iterator[Manifest]:
        """Every object of the Applications, in order."""
        for manifests in self.applications.values():
            yield from manifests

    @property
    def bodies(self) -> list[Body]:
        """The bodies of the same."""
        return [manifest.body for manifest in self.manifests]

    def of_kind(self, kind: str, name: str = "") -> list[Body]:
        """The objects of a kind, of one name where that is given."""
        return [b for b in self.bodies if b["kind"] == kind and name in ("", b["metadata"]["name"])]

    def changed(self, kind: str, change: Change, name: str = "") -> Tree:
        """A tree in which each object of a kind (of that name) is changed by a function that changes it in place.

        Raises LookupError where there is none: a fault that hits nothing must not look like one that was missed.
        """
        hits = 0

        def altered(manifest: Manifest) -> Manifest:
            nonlocal hits
            if manifest.kind != kind or name not in ("", manifest.ref.name):
                return manifest
            hits += 1
            body = copy.deepcopy(manifest.body)
            change(body)
            return Manifest(body, manifest.source)

        found = {
            app: tuple(altered(manifest) for manifest in manifests) for app, manifests in self.applications.items()
        }
        if not hits:
            raise LookupError(f"no {kind} {name} in the tree")
        return replace(self, applications=found)


def of(rendered: RenderedCluster) -> Tree:
    """The tree of a rendered cluster."""
    ordered = sorted(rendered.applications, key=lambda application: (application.wave, application.name))
    found: dict[str, list[Manifest]] = {application.name: [] for application in ordered}
    own = [file.manifest for file in rendered.files if file.application not in found]
    for file in rendered.files:
        if file.application in found:
            found[file.application].append(file.manifest)
    return Tree(rendered.name, {name: tuple(inside) for name, inside in found.items()}, tuple(own), rendered.plain)


def rendered(root: Path, cluster: str = "") -> Tree:
    """Render one cluster of the platform at `root`: the one that is named, or the production one, or the first.

    Raises UsageError where there is none of that name, or where it does not render.
    """
    loaded = load(root)
    known = {document.model.metadata.name: document for document in loaded.platform.clusters}
    production = [name for name, each in known.items() if each.model.spec.environment == "production"]
    chosen = cluster or next(iter(sorted(production) or sorted(known)), "")
    if chosen not in known:
        hint = f"clusters here: {', '.join(sorted(known))}" if known else "give the folder with clusters/ and apps/"
        raise UsageError(f"no cluster is called {chosen}" if chosen else f"no cluster in {root}", hint=hint)
    own = root / "templates"
    folders = [own] if own.is_dir() and own.resolve() != shipped_folder().resolve() else []
    result = render(loaded.platform, known[chosen], Templates(folders), SchemaPack.shipped())
    failing = [finding for finding in (*loaded.findings, *result.findings) if finding.fails]
    if failing:
        raise UsageError(f"{root} does not render: {failing[0].message}", hint="blueprint render tells all findings")
    return of(result)
