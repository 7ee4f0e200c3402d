"""The objects of a tree, indexed once, for rules that look across them.

A graph is of one cluster; `clusters.graphs` divides a tree that holds several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from blueprint.catalog.references import Reference, references
from blueprint.catalog.resources import Resource, Resources
from blueprint.catalog.tables import table
from blueprint.check.aside import aside
from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.finding import Ref
from blueprint.objects import Manifest

if TYPE_CHECKING:
    from blueprint.check.applications import Deliveries
    from blueprint.check.grants import Grants

_T = TypeVar("_T")


def kind_of(manifest: Manifest) -> str:
    """The kind of an object as rules and tables name it."""
    return manifest.ref.kind_name


class Graph:
    """The objects of one cluster (or of a whole tree), looked up by identity, kind, namespace and who names them.

    Documents that no API server serves (see `check.aside`) stand apart in `aside`.

    `closed` are kinds (`Kind.group`, or `*`) of which the tree is said to hold every object. `versions` are the
    versions of Kubernetes and of components where they are known. `whole` tells that nothing is left out of this
    graph that could belong to its cluster. `deliveries` are those of the tree that this is a part of.
    """

    def __init__(
        self,
        manifests: Iterable[Manifest],
        *,
        closed: Collection[str] = (),
        versions: Mapping[str, str] | None = None,
        whole: bool = True,
        deliveries: Deliveries | None = None,
    ) -> None:
        everything = tuple(manifests)
        self.aside = tuple(manifest for manifest in everything if aside(manifest))
        self.manifests = tuple(m for m in everything if not aside(m)) if self.aside else everything
        self.said_closed = frozenset(closed)
        self.versions: Mapping[str, str] = versions or {}
        self.whole = whole
        self._of_tree = deliveries
        self._derived: dict[object, Any] = {}
        self._kinds: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in self.manifests:
            self._kinds[kind_of(manifest)].append(manifest)

    @cached_property
    def by_ref(self) -> Mapping[Ref, Manifest]:
        """Every object by its identity; the first in the order of the tree where one is there twice."""
        found: dict[Ref, Manifest] = {}
        for manifest in self.manifests:
            found.setdefault(self._identity(manifest.ref), manifest)
        return found

    def _identity(self, ref: Ref) -> Ref:
        """The identity that the server gives: it drops the namespace of what lives in none."""
        if ref.namespace and (resource := self.resources.kind(ref.group, ref.kind)) and not resource.namespaced:
            return Ref(ref.group, ref.kind, "", ref.name)
        return ref

    def get(self, ref: Ref) -> Manifest | None:
        """The object with this identity, in whatever version it is written."""
        return self.by_ref.get(ref)

    @cached_property
    def _several(self) -> Mapping[Ref, list[Manifest]]:
        found: dict[Ref, list[Manifest]] = {}
        for manifest in self.manifests:
            ref = self._identity(manifest.ref)
            if self.by_ref[ref] is not manifest:
                found.setdefault(ref, [self.by_ref[ref]]).append(manifest)
        return found

    def nearest(self, ref: Ref, to: Manifest) -> Manifest | None:
        """The object with this identity; where there are several, the one in the same file, if there is one."""
        found = self.get(ref)
        for each in self._several.get(ref, ()):
            if each.source.file == to.source.file:
                return each
        return found

    def meant(self, ref: Ref, by: Manifest) -> Manifest | None:
        """The object with this identity that another names.

        A tree of samples holds several of one identity: then it is one of the same file or folder, and else None, since
        nobody knows which of them is meant.
        """
        several = self._several.get(ref)
        if several is None:
            return self.get(ref)
        beside = [each for each in several if each.folder == by.folder]
        return next((each for each in beside if each.source.file == by.source.file), beside[0] if beside else None)

    def kind(self, *names: str) -> Sequence[Manifest]:
        """The objects of a kind, or of several: `ClusterQueue.kueue.x-k8s.io`, `Pod`."""
        if len(names) == 1:
            return self._kinds.get(names[0], ())
        return [manifest for name in names for manifest in self._kinds.get(name, ())]

    def kinds(self) -> Collection[str]:
        """Every kind of which there are objects."""
        return self._kinds.keys()

    def group(self, name: str) -> list[Manifest]:
        """The objects of every kind of an API group, in the order of kinds."""
        return [m for kind in self._kinds if kind.partition(".")[2] == name for m in self._kinds[kind]]

    @cached_property
    def _namespaces(self) -> Mapping[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in self.manifests:
            found[manifest.ref.namespace].append(manifest)
        return found

    def namespace(self, name: str) -> Sequence[Manifest]:
        """The objects in a namespace; "" gives those that name none."""
        return self._namespaces.get(name, ())

    @cached_property
    def _beside(self) -> Mapping[tuple[str, str], list[Manifest]]:
        found: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for manifest in self.manifests:
            found[manifest.ref.kind_name, manifest.ref.namespace].append(manifest)
        return found

    def within(self, namespace: str, kind: str) -> Sequence[Manifest]:
        """The objects of a kind in a namespace: what a rule asks that looks around every object of a large one."""
        return self._beside.get((kind, namespace), ())

    def namespaces(self) -> Collection[str]:
        """Every namespace that an object is in, "" among them."""
        return self._namespaces.keys()

    @cached_property
    def _named_by(self) -> Mapping[Ref, list[tuple[Manifest, Reference]]]:
        found: dict[Ref, list[tuple[Manifest, Reference]]] = defaultdict(list)
        for manifest in self.manifests:
            for reference in references(manifest):
                found[reference.target].append((manifest, reference))
        return found

    def named_by(self, ref: Ref) -> Sequence[tuple[Manifest, Reference]]:
        """Who names an object, and in which field, by the table of references."""
        return self._named_by.get(ref, ())

    def named(self) -> Iterable[tuple[Ref, Sequence[tuple[Manifest, Reference]]]]:
        """Every identity that is named, and by whom."""
        return self._named_by.items()

    @cached_property
    def pods(self) -> Sequence[tuple[Manifest, PodTemplate]]:
        """Every pod and pod template with the object that holds it."""
        return [(manifest, pod) for manifest in self.manifests for pod in pod_templates(manifest)]

    def closed(self, kind: str) -> bool:
        """Whether the absence of an object of this kind is a fault: its peers are here, or it is said to be closed.

        False where a controller, a policy or a generator in the tree may bring it; a tree that is said to hold
        everything holds what a policy of it generates, too.
        """
        if kind in self.said_closed:
            return True
        if "*" in self.said_closed:
            return not (self._policies_making.get(kind) or self._generating(kind))
        return self.whole and bool(self._kinds.get(kind)) and not self.generated(kind)

    def generated(self, kind: str) -> Sequence[Manifest]:
        """What in this tree makes, or may make, objects of a kind that are not written in it."""
        found = [*self._makers.get(kind, ()), *self._makers.get("*", ()), *self._generating(kind)]
        # A project that only its own Applications would bring is missing when they are to read it.
        return found if kind == "AppProject.argoproj.io" else [*found, *self._sets_from_elsewhere]

    @cached_property
    def _makers(self) -> Mapping[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = defaultdict(list)
        for row in table("generators")["makers"]:
            for made in row["makes"]:
                found[made] += self._kinds.get(row["kind"], ())
        for made, policies in self._policies_making.items():
            found[made] += policies
        for manifest in self.manifests:
            if manifest.is_unknown(("metadata", "name")):  # a placeholder: it may be the one that seems to be missing
                found[kind_of(manifest)].append(manifest)
        sets = self._kinds.get("ApplicationSet.argoproj.io", ())
        found["Application.argoproj.io"] += sets
        return found

    @cached_property
    def _sets_from_elsewhere(self) -> list[Manifest]:
        return [each for each in self._kinds.get("ApplicationSet.argoproj.io", ()) if self._reads_elsewhere(each)]

    def _reads_elsewhere(self, applications: Manifest) -> bool:
        """Whether an ApplicationSet reads a folder that is not in this tree, and may bring anything from there.

        A chart brings what an operator needs, not a platform's objects.
        """
        spec = mapping(applications.body.get("spec"))
        template = mapping(mapping(spec.get("template")).get("spec"))
        sources = [*maps(template.get("sources")), mapping(template.get("source"))]
        return any(
            not source.get("chart") and not self._holds_folder(path)
            for source in sources
            for path in _folders(text(source.get("path")), spec)
        )

    def _holds_folder(self, path: str) -> bool:
        """Whether objects of this tree lie at a path of a repository, which may begin above or below the tree."""
        return any(f"/{path}/" in f"/{manifest.folder}/" for manifest in self.manifests)

    @cached_property
    def _policies_making(self) -> Mapping[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = defaultdict(list)
        for policy in self.kind("ClusterPolicy.kyverno.io", "Policy.kyverno.io"):
            for made in sorted(set(_kyverno_generates(policy.body))):
                found[made].append(policy)
        return found

    @cached_property
    def _generating_policies(self) -> Sequence[tuple[Manifest, str]]:
        policies = self.kind("GeneratingPolicy.policies.kyverno.io", "NamespacedGeneratingPolicy.policies.kyverno.io")
        return [(policy, orjson.dumps(policy.body.get("spec"), default=str).decode()) for policy in policies]

    def _generating(self, kind: str) -> list[Manifest]:
        """GeneratingPolicies build objects in CEL: one that says the name of the kind may make it."""
        name = kind.partition(".")[0]
        return [policy for policy, written in self._generating_policies if name in written]

    def derived(self, make: Callable[[Graph], _T]) -> _T:
        """What a function reads out of this graph, computed once for each graph."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: _T = self._derived[make]
        return found

    @cached_property
    def deliveries(self) -> Deliveries:
        """Which objects Argo CD's Applications of this tree apply."""
        from blueprint.check.applications import Deliveries

        return self._of_tree or Deliveries(self)

    @cached_property
    def grants(self) -> Grants:
        """Who may do what, by the roles and bindings of this tree."""
        from blueprint.check.grants import Grants

        return Grants(self)

    @cached_property
    def resources(self) -> Resources:
        """Kinds and their plurals: those of the catalog, and those that CRDs of this tree add."""
        return Resources(_defined(self.kind("CustomResourceDefinition.apiextensions.k8s.io")))

    def labels_of_namespace(self, name: str) -> Mapping[str, str] | None:
        """The labels that a namespace has on the server, or None where the tree does not hold it."""
        found = self.get(Ref("", "Namespace", "", name))
        if found is None:
            return None
        return {**labels_of(found.body), "kubernetes.io/metadata.name": name}


def labels_of(body: Body) -> Mapping[str, str]:
    """The labels of an object (or of anything with metadata), those that are text."""
    found = mapping(mapping(body.get("metadata")).get("labels"))
    return {str(key): value for key, value in found.items() if isinstance(value, str)}


def annotations_of(body: Body) -> Mapping[str, str]:
    """The annotations of an object, those that are text."""
    found = mapping(mapping(body.get("metadata")).get("annotations"))
    return {str(key): value for key, value in found.items() if isinstance(value, str)}


def selects(selector: object, of: Mapping[str, str]) -> bool:
    """Whether a label selector (matchLabels, matchExpressions) takes labels; an empty one takes all, None nothing.

    Source: k8s.io/apimachinery@v0.35.4 pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector.
    """
    if not isinstance(selector, dict):
        return False
    if any(of.get(str(key)) != value for key, value in mapping(selector.get("matchLabels")).items()):
        return False
    return all(_holds(term, of) for term in maps(selector.get("matchExpressions")))


def _holds(term: Body, of: Mapping[str, str]) -> bool:
    key, operator, values = text(term.get("key")), term.get("operator"), items(term.get("values"))
    if operator == "In":
        return of.get(key) in values
    if operator == "NotIn":
        return of.get(key) not in values
    return (key in of) is (operator == "Exists")


def _defined(crds: Sequence[Manifest]) -> Iterator[Resource]:
    for crd in crds:
        spec = mapping(crd.body.get("spec"))
        names = mapping(spec.get("names"))
        group, kind, plural = text(spec.get("group")), text(names.get("kind")), text(names.get("plural"))
        yield Resource(group, kind, plural, spec.get("scope") != "Cluster")


def _folders(path: str, spec: Body) -> Iterator[str]:
    """The fixed beginnings of a path in the template of an ApplicationSet: its own, or those of its Git generators."""
    fixed = _fixed(path)
    if fixed or not path:
        yield from filter(None, [fixed])
        return
    for generator in maps(spec.get("generators")):
        git = mapping(generator.get("git"))
        for row in (*maps(git.get("directories")), *maps(git.get("files"))):
            if row.get("exclude") is not True:
                yield from filter(None, [_fixed(text(row.get("path")))])


def _fixed(path: str) -> str:
    """The folders of a path before the first with a placeholder or a wildcard."""
    steps = path.strip("/").removeprefix("./").split("/")
    return "/".join(takewhile(lambda step: step != "." and not set(step) & set("{*?["), steps))


def _kyverno_generates(body: Body) -> Iterator[str]:
    for rule in maps(mapping(body.get("spec")).get("rules")):
        generate = mapping(rule.get("generate"))
        for part in (generate, *maps(generate.get("foreach"))):
            if kind := text(part.get("kind")):
                group, slash, _ = text(part.get("apiVersion")).partition("/")
                yield f"{kind}.{group}" if slash else kind
            for kind in items(mapping(part.get("cloneList")).get("kinds")):
                path = text(kind).split("/")  # v1/Secret, networking.k8s.io/v1/NetworkPolicy
                yield f"{path[-1]}.{path[0]}" if len(path) == 3 else path[-1]
