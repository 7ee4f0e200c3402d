"""What lies around a change: who selects, reads or is selected by what changed; read only where a statement asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from blueprint.catalog.crds import Json
from blueprint.catalog.schemas import SchemaPack
from blueprint.check.graph import selects
from blueprint.check.pods import PodTemplate, containers
from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.finding import Ref
from blueprint.objects import Manifest
from blueprint.review.model import Pair
from blueprint.review.pairs import Places
from blueprint.review.sides import Side, Sides
from blueprint.review.workloads import pods

_COMPONENTS = (
    ("controller_manager_config.yaml", "Kueue"),
    ("resource.customizations", "Argo CD"),
    ("resource.exclusions", "Argo CD"),
    ("argocd-cm", "Argo CD"),
    ("argocd-rbac-cm", "Argo CD"),
)
_POD_WORDS = (b"containers:", b'"containers"')


class Around:
    """Both sides, asked for what a single object does not say. `where` tells clusters apart."""

    def __init__(self, sides: Sides, where: Places, pack: SchemaPack) -> None:
        self.sides, self.where, self.pack = sides, where, pack
        self._selecting: dict[str, list[str]] = {}

    def selecting(self, key: str) -> list[str]:
        """The objects (`Kind name`) that select namespaces by a label."""
        if key not in self._selecting:
            # Of ten thousand files many select namespaces, and few of them by this label.
            found = self.sides.head.holding_all((b"amespaceSelector", key.encode()))
            named = (_named(m.ref) for m in found.manifests if key in _keys(m.body))
            self._selecting[key] = list(dict.fromkeys(named))
        return self._selecting[key]

    def component(self, pair: Pair) -> str:
        """The component whose own configuration a ConfigMap is, "" for none."""
        data = mapping(pair.there.body.get("data"))
        written = " ".join((pair.ref.name, *map(str, data)))
        return next((name for word, name in _COMPONENTS if word in written), "")

    @cached_property
    def _pods(self) -> Mapping[str, list[tuple[Manifest, PodTemplate]]]:
        """Pod templates of the head by cluster."""
        found: dict[str, list[tuple[Manifest, PodTemplate]]] = {}
        for manifest in self.sides.head.holding(_POD_WORDS).manifests:
            for pod in pods(manifest):
                found.setdefault(self.where.cluster(manifest), []).append((manifest, pod))
        return found

    def readers(self, pair: Pair) -> list[str]:
        """The workloads whose pods read a ConfigMap or Secret."""
        ref = pair.ref
        return list(
            dict.fromkeys(
                _named(manifest.ref)
                for manifest, pod in self._pods.get(pair.cluster, ())
                if manifest.ref.namespace == ref.namespace and ref.name in set(_reads(pod.spec, ref.kind))
            )
        )

    def users(self, pair: Pair) -> list[str]:
        """The workloads that mount a claim, or run as a service account."""
        ref, kind = pair.ref, pair.ref.kind
        return list(
            dict.fromkeys(
                _named(manifest.ref)
                for manifest, pod in self._pods.get(pair.cluster, ())
                if manifest.ref.namespace == ref.namespace
                and (
                    pod.spec.get("serviceAccountName") == ref.name
                    if kind == "ServiceAccount"
                    else ref.name in set(_claims(pod.spec))
                )
            )
        )

    @cached_property
    def _rights(self) -> Mapping[str, list[Manifest]]:
        """Roles, bindings and service accounts of the head by cluster."""
        found: dict[str, list[Manifest]] = {}
        for manifest in self.sides.head.holding((b"rbac.authorization.k8s.io", b"ServiceAccount")).manifests:
            if manifest.ref.group == "rbac.authorization.k8s.io" or manifest.ref.kind_name == "ServiceAccount":
                found.setdefault(self.where.cluster(manifest), []).append(manifest)
        return found

    def bindings(self, cluster: str) -> list[Manifest]:
        """The bindings of roles in a cluster, those that hold everywhere first."""
        found = [each for each in self._rights.get(cluster, ()) if each.ref.kind.endswith("Binding")]
        return sorted(found, key=lambda each: each.ref.kind != "ClusterRoleBinding")

    def role(self, cluster: str, kind: str, namespace: str, name: str) -> Manifest | None:
        """A role of the head, None where the tree does not hold it."""
        wanted = (kind, namespace, name)
        return next(
            (m for m in self._rights.get(cluster, ()) if (m.ref.kind, m.ref.namespace, m.ref.name) == wanted), None
        )

    def withholds_token(self, cluster: str, namespace: str, name: str) -> bool:
        """Whether a service account says that its token is in no pod."""
        account = self.role(cluster, "ServiceAccount", namespace, name)
        return account is not None and account.body.get("automountServiceAccountToken") is False

    def selected(self, cluster: str, namespace: str, selector: object) -> tuple[list[str], int]:
        """The workloads of a namespace whose pods a selector takes, and how many pods they write (replicas)."""
        names: list[str] = []
        pods = 0
        for manifest, pod in self._pods.get(cluster, ()):
            labels = {k: v for k, v in mapping(pod.metadata.get("labels")).items() if isinstance(v, str)}
            if manifest.ref.namespace == namespace and selects(selector, labels):
                names.append(_named(manifest.ref))
                pods += _copies(manifest.body)
        return list(dict.fromkeys(names)), pods

    def instances(self, crd: Manifest) -> list[Manifest]:
        """The objects of the kind that a CRD defines, in the base."""
        spec = mapping(crd.body.get("spec"))
        group, kind = text(spec.get("group")), text(mapping(spec.get("names")).get("kind"))
        if crd.kind == "ConstraintTemplate":
            names = mapping(mapping(mapping(spec.get("crd")).get("spec")).get("names"))
            group, kind = "constraints.gatekeeper.sh", text(names.get("kind"))
        if not kind:
            return []
        cluster = self.where.cluster(crd)
        found = self.sides.base.holding((kind.encode(),)).manifests
        return [m for m in found if m.ref.kind == kind and m.ref.group == group and self.where.cluster(m) == cluster]

    def inside(self, namespace: str, cluster: str) -> list[Manifest]:
        """The objects of a namespace, in the base."""
        found = self.sides.base.holding((namespace.encode(),)).manifests
        return [m for m in found if m.ref.namespace == namespace and self.where.cluster(m) == cluster]

    def folder(self, side: Side, application: Manifest) -> list[Manifest]:
        """The objects of a side that an Application brings, by the path of its source."""
        spec = mapping(application.body.get("spec"))
        paths = [text(s.get("path")) for s in (mapping(spec.get("source")), *maps(spec.get("sources")))]
        ends = tuple(path.strip("/") for path in paths if path.strip("./"))
        if not ends:
            return []
        chosen = [file for file in side.files if _below(file, side.place, ends)]
        return side.of(iter(chosen)).manifests if side.built is None else []


def _below(file: str, place: str, folders: tuple[str, ...]) -> bool:
    """Whether a file lies right in one of the folders; a review may be of a part of the repository only."""
    folder = f"{place}/{file}".strip("/").rpartition("/")[0]
    return any(folder == each or each.endswith(f"/{folder}") or folder.endswith(f"/{each}") for each in folders)


def _named(ref: Ref) -> str:
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def _keys(value: Json, inside: bool = False) -> Iterator[str]:
    """The label keys that any namespaceSelector below a value asks for."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each, inside)
    elif isinstance(value, dict):
        if inside:
            yield from (str(key) for key in mapping(value.get("matchLabels")))
            yield from (text(term.get("key")) for term in maps(value.get("matchExpressions")))
        for name, each in value.items():
            yield from _keys(each, name == "namespaceSelector")


def _reads(spec: Body, kind: str) -> Iterator[str]:
    source, field, reference = (
        ("configMap", "name", "configMap") if kind == "ConfigMap" else ("secret", "secretName", "secret")
    )
    for volume in maps(spec.get("volumes")):
        for part in (volume, *maps(mapping(volume.get("projected")).get("sources"))):
            found = mapping(part.get(source))
            yield text(found.get(field)) or text(found.get("name"))
    for _, container in containers(spec):
        for origin in maps(container.get("envFrom")):
            yield text(mapping(origin.get(f"{reference}Ref")).get("name"))
        for variable in maps(container.get("env")):
            yield text(mapping(mapping(variable.get("valueFrom")).get(f"{reference}KeyRef")).get("name"))


def _claims(spec: Body) -> Iterator[str]:
    for volume in items(spec.get("volumes")):
        yield text(mapping(mapping(volume).get("persistentVolumeClaim")).get("claimName"))


def _copies(body: Body) -> int:
    count = mapping(body.get("spec")).get("replicas")
    return count if isinstance(count, int) and not isinstance(count, bool) else 1
