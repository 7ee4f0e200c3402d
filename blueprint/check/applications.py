"""Argo CD's Applications as objects: what each reads, where it writes, and which objects of the tree are its own.

Source: argo-cd v3.6.1 pkg/apis/application/v1alpha1/types.go, util/argo/argo.go.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from blueprint.catalog.argocd import GroupKind
from blueprint.check.globs import glob
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.shapes import Body, items, known, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.sync import HOOK, WAVE, wave

APPLICATION = "Application.argoproj.io"
APPLICATION_SET = "ApplicationSet.argoproj.io"
PROJECT = "AppProject.argoproj.io"
CONFIG = "argocd-cm"
_ORDERING = frozenset({WAVE, HOOK, "helm.sh/hook", "helm.sh/hook-weight"})


@dataclass(frozen=True, slots=True)
class Source:
    """One source of an Application. `tool` is "" for plain files, else helm, kustomize or plugin; `at` is its path."""

    body: Body
    at: str

    @property
    def repo(self) -> str:
        """The URL of the repository, "" where it is not known."""
        return known(self.body.get("repoURL"))

    @property
    def path(self) -> str:
        """The folder in the repository, without slashes at its ends; "" where there is none."""
        return known(self.body.get("path")).strip("/").removeprefix("./")

    @property
    def recurse(self) -> bool:
        """Whether plain files of subfolders are read."""
        return mapping(self.body.get("directory")).get("recurse") is True

    @property
    def plain(self) -> bool:
        """Whether the files are applied as they are."""
        return not (self.body.keys() & {"helm", "kustomize", "plugin", "chart"})

    def reads(self, name: str) -> bool:
        """Whether a file, by its path below the folder, is one that the directory's include and exclude let through."""
        directory = mapping(self.body.get("directory"))
        include, exclude = text(directory.get("include")), text(directory.get("exclude"))
        return not (exclude and glob(exclude, name)) and (not include or glob(include, name))


@dataclass(frozen=True, slots=True)
class Application:
    """One Application (or the template of an ApplicationSet, whose placeholders make things unknown)."""

    manifest: Manifest
    spec: Body

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.manifest.ref.name

    @property
    def sources(self) -> tuple[Source, ...]:
        """Every source; that of a hydrator is the branch that it writes."""
        if maps(self.spec.get("sources")):
            return tuple(Source(b, f"spec.sources[{n}]") for n, b in enumerate(maps(self.spec["sources"])))
        hydrator = mapping(self.spec.get("sourceHydrator"))
        if hydrator:
            dry, sync = mapping(hydrator.get("drySource")), mapping(hydrator.get("syncSource"))
            return (Source({"repoURL": dry.get("repoURL"), **sync}, "spec.sourceHydrator"),)
        return (Source(mapping(self.spec.get("source")), "spec.source"),) if self.spec.get("source") else ()

    @property
    def destination(self) -> Body:
        """The destination as it is written."""
        return mapping(self.spec.get("destination"))

    @property
    def cluster(self) -> str:
        """The server or name of the destination, "" where it is not known."""
        return known(self.destination.get("server")) or known(self.destination.get("name"))

    @property
    def namespace(self) -> str:
        """The namespace of the destination, "" where none is given or known."""
        return known(self.destination.get("namespace"))

    @property
    def policy(self) -> Body:
        """The sync policy."""
        return mapping(self.spec.get("syncPolicy"))

    @property
    def automated(self) -> Body | None:
        """The automated part of the policy, None where syncs are made by hand."""
        found = self.policy.get("automated")
        return found if isinstance(found, dict) and found.get("enabled") is not False else None

    @property
    def self_heals(self) -> bool:
        """Whether a difference that the cluster made is undone."""
        return self.automated is not None and self.automated.get("selfHeal") is True

    @property
    def prunes(self) -> bool:
        """Whether what leaves Git is deleted without being asked."""
        return self.automated is not None and self.automated.get("prune") is True

    @property
    def options(self) -> frozenset[str]:
        """The sync options."""
        return frozenset(text(each) for each in items(self.policy.get("syncOptions")))

    @property
    def ignored(self) -> Sequence[Body]:
        """The rows of ignoreDifferences."""
        return maps(self.spec.get("ignoreDifferences"))


def applications(graph: Graph) -> list[Application]:
    """Every Application of a tree, in its order."""
    return [Application(manifest, mapping(manifest.body.get("spec"))) for manifest in graph.kind(APPLICATION)]


def templates(graph: Graph) -> Iterator[tuple[Manifest, Body, Application]]:
    """Every ApplicationSet with its spec and the Application that it makes many of."""
    for manifest in graph.kind(APPLICATION_SET):
        spec = mapping(manifest.body.get("spec"))
        yield manifest, spec, Application(manifest, mapping(mapping(spec.get("template")).get("spec")))


@dataclass(frozen=True, slots=True)
class Sync:
    """Objects that are applied together: those of an Application, or of a folder that has waves or hooks."""

    name: str
    objects: Sequence[Manifest]
    application: Application | None


class Deliveries:
    """Which objects of a tree are applied by which Application: those in the folder that it reads."""

    def __init__(self, graph: Graph) -> None:
        self.applications = applications(graph)
        self._manifests = graph.manifests
        self._folders: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in graph.manifests:
            self._folders[manifest.folder].append(manifest)
        self._below: dict[str, list[str]] = defaultdict(list)
        for folder in self._folders:
            for above in _upwards(folder):
                self._below[above].append(folder)
        self._ends: dict[str, list[str]] = defaultdict(list)
        for above in self._below:
            self._ends[above.rpartition("/")[2]].append(above)
        self._owned: dict[int, list[Manifest]] = {}

    def folder(self, source: Source) -> str | None:
        """The folder of the tree that a source reads, None where it is not in the tree or could be one of several."""
        path = source.path
        if not path or path == "." or "chart" in source.body or source.repo.startswith("oci://"):
            return None
        last = path.rpartition("/")[2]
        ends = self._ends.get(last, [])
        inside = [folder for folder in ends if folder == path or folder.endswith(f"/{path}")]
        if inside:
            return min(inside, key=len)
        outside = [folder for folder in ends if "/" in folder and path.endswith(f"/{folder}")]
        return max(outside, key=len) if outside else None

    def objects(self, application: Application) -> Sequence[Manifest]:
        """The objects that an Application applies, as far as the tree holds them."""
        key = id(application.manifest)
        if key not in self._owned:
            self._owned[key] = list(self._objects(application))
        return self._owned[key]

    def _objects(self, application: Application) -> Iterator[Manifest]:
        for source in application.sources:
            folder = self.folder(source)
            if folder is None:
                continue
            folders = self._below.get(folder, []) if source.recurse or not source.plain else [folder]
            for each in folders:
                for manifest in self._folders.get(each, ()):
                    if not source.plain or source.reads(manifest.source.file[len(folder) + 1 :]):
                        yield manifest

    @cached_property
    def owners(self) -> Mapping[int, list[Application]]:
        """The Applications of each object, by its id()."""
        found: dict[int, list[Application]] = defaultdict(list)
        for application in self.applications:
            for manifest in self.objects(application):
                found[id(manifest)].append(application)
        return found

    @cached_property
    def noted(self) -> Sequence[tuple[Manifest, Body]]:
        """The objects with a wave or a hook, Helm's among them, and their annotations."""
        found = []
        for manifest in self._manifests:
            notes = mapping(mapping(manifest.body.get("metadata")).get("annotations"))
            if notes and not _ORDERING.isdisjoint(notes):
                found.append((manifest, notes))
        return found

    @cached_property
    def _waves(self) -> Mapping[int, int]:
        return {id(manifest): wave(manifest.body) for manifest, _ in self.noted}

    def wave(self, manifest: Manifest) -> int:
        """The wave of an object of this tree."""
        return self._waves.get(id(manifest), 0)

    @cached_property
    def syncs(self) -> Sequence[Sync]:
        """Every group of objects that one sync applies, as far as the tree tells."""
        found = [
            Sync(f"Application {application.name}", objects, application)
            for application in self.applications
            if (objects := self.objects(application))
        ]
        owned = self.owners
        noted = {manifest.folder for manifest, _ in self.noted if id(manifest) not in owned}
        for folder in (folder for folder in self._folders if folder in noted):
            loose = [manifest for manifest in self._folders[folder] if id(manifest) not in owned]
            found.append(Sync(f"the folder {folder}" if folder else "these objects", loose, None))
        return found

    def together(self) -> list[set[str]]:
        """Folders whose Applications write to the same cluster."""
        found: dict[str, set[str]] = defaultdict(set)
        for application in self.applications:
            for source in application.sources:
                if application.cluster and (folder := self.folder(source)) is not None:
                    found[application.cluster] |= {folder, *self._below.get(folder, ())}
        return list(found.values())


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def sync_options(manifest: Manifest) -> frozenset[str]:
    """The sync options that an object carries itself."""
    notes = annotations_of(manifest.body)
    return frozenset(part.strip() for part in notes.get("argocd.argoproj.io/sync-options", "").split(","))


def config(graph: Graph) -> dict[str, Any] | None:
    """The data of Argo CD's ConfigMap, None where the tree does not hold it."""
    return graph.derived(_config)


def _config(graph: Graph) -> dict[str, Any] | None:
    for manifest in graph.kind("ConfigMap"):
        if manifest.ref.name == CONFIG:
            return mapping(manifest.body.get("data"))
    return None


def health_scripts(graph: Graph) -> tuple[frozenset[GroupKind], bool]:
    """The kinds for which a health script is configured, and whether that is all: where the ConfigMap is in the tree.

    Values of charts and operators that name a script count, though they may hold more than is read here.
    """
    found: set[GroupKind] = set()
    data = config(graph)
    for key in data or ():
        found.update(_script(str(key)))
    for manifest in graph.kind(
        "ArgoCD.argoproj.io", "HelmRelease.helm.toolkit.fluxcd.io", APPLICATION, APPLICATION_SET
    ):
        written = str(manifest.body.get("spec"))
        if _HEALTH in written:
            for key in _HEALTH_KEY.findall(written):
                found.update(_script(key))
    return frozenset(found), data is not None


_HEALTH = "resource.customizations.health."
_HEALTH_KEY = re.compile(r"resource\.customizations\.health\.[A-Za-z0-9.*-]*_[A-Za-z*]+")


def _script(key: str) -> Iterator[GroupKind]:
    if key.startswith(_HEALTH):
        group, _, kind = key.removeprefix(_HEALTH).rpartition("_")
        yield group, kind
