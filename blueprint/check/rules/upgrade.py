"""What an upgrade takes away: APIs, labels, annotations, volumes and groups that the target release does not know.

The target is the Kubernetes version that the caller names, else that of the schema pack. Sources are in the tables
`api_lifecycle` and `legacy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from blueprint.catalog.components import Support, components
from blueprint.catalog.lifecycle import Release, lifecycle, off_by_default, release
from blueprint.catalog.references import walk
from blueprint.catalog.schemas import SchemaPack
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.images import image
from blueprint.check.pods import containers
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, maps, placeholder, text
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest


@cache
def _packed() -> str:
    return SchemaPack.shipped().kubernetes()


def target(graph: Graph) -> str:
    """The Kubernetes release that the objects are for, as `1.35`."""
    asked = release(graph.versions.get("kubernetes", "")) or release(_packed())
    return f"{asked[0]}.{asked[1]}" if asked else ""


def api_versions(graph: Graph) -> Iterator[Finding]:
    """UPG101, UPG102, UPG103: versions that the target serves no more, not yet, or only when told to."""
    name = target(graph)
    goal = release(name)
    said: dict[tuple[str, str], tuple[str, str, str] | None] = {}
    for manifest in graph.manifests if goal else ():
        key = manifest.api_version, manifest.kind
        if key not in said:
            said[key] = _trouble(*key, name)
        trouble = said[key]
        if trouble is not None:
            code, message, fix = trouble
            severity = Severity.WARNING if code == "UPG103" else Severity.ERROR
            yield say(code, manifest, message, "apiVersion", fix, severity)


def _trouble(api_version: str, kind: str, name: str) -> tuple[str, str, str] | None:
    """What is wrong with a kind in one version on a release: the code, the message and the fix."""
    life, goal = lifecycle(api_version, kind), release(name)
    if life is None or goal is None:
        return None
    removed, introduced = release(life.removed), release(life.introduced)
    served = _served(life.replacement, kind, goal)
    newer = f"use {served}" if served else ""
    if removed and removed <= goal:
        message = f"{api_version} {kind} is served until {life.removed}, and the target is Kubernetes {name}"
        return "UPG101", message, newer or "see what replaced it"
    if introduced and introduced > goal:
        message = f"{api_version} {kind} is served from {life.introduced} on, and the target is Kubernetes {name}"
        return "UPG102", message, "use an older version, or another way"
    if off_by_default(api_version, name):
        message = f"{api_version} is off unless the API server is started with --runtime-config for it"
        return "UPG103", message, newer or "switch it on, with its feature gate"
    return None


def _served(api_version: str, kind: str, goal: Release) -> str:
    """The first of the versions that replaced one another which the release serves, "" where it serves none."""
    seen: set[str] = set()
    while api_version and api_version not in seen:
        seen.add(api_version)
        life = lifecycle(api_version, kind)
        removed, introduced = (release(life.removed), release(life.introduced)) if life else (None, None)
        if not (removed and removed <= goal):
            return "" if introduced and introduced > goal else api_version
        api_version = life.replacement if life else ""
    return ""


def dead_annotations(graph: Graph) -> Iterator[Finding]:
    """UPG104: annotations of pods that nothing reads any more."""
    goal = release(target(graph))
    for manifest, pod in graph.pods:
        for key in mapping(pod.metadata.get("annotations")):
            for row in table("legacy")["annotations"]:
                same = str(key).startswith(row["key"]) if row.get("prefix") else key == row["key"]
                since = release(row["since"])
                if same and goal and since and since <= goal:
                    where = f"{pod.path}.metadata.annotations" if pod.path else "metadata.annotations"
                    message = f"{key} has had no effect since Kubernetes {row['since']}"
                    yield say("UPG104", manifest, message, where, f"use {row['instead']}", Severity.WARNING)


def dead_node_labels(graph: Graph) -> Iterator[Finding]:
    """UPG105: pods that ask for a label which no node carries any more."""
    rows = {row["key"]: row for row in table("legacy")["node_labels"]}
    for manifest, pod in graph.pods:
        for key, path in _wanted(pod.spec, pod.spec_path):
            if key in rows:
                message = f"{key} is set on no node since Kubernetes {rows[key]['since']}: the pod stays Pending"
                yield say("UPG105", manifest, message, path, f"use {rows[key]['instead']}")


def _wanted(spec: Body, path: str) -> Iterator[tuple[str, str]]:
    for key in mapping(spec.get("nodeSelector")):
        yield str(key), f"{path}.nodeSelector"
    node = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    terms = maps(mapping(node.get("requiredDuringSchedulingIgnoredDuringExecution")).get("nodeSelectorTerms"))
    if len(terms) == 1:  # any one of several terms is enough
        for term in maps(terms[0].get("matchExpressions")):
            if term.get("operator") in ("In", "Exists"):
                yield text(term.get("key")), f"{path}.affinity.nodeAffinity"


def dead_volumes(graph: Graph) -> Iterator[Finding]:
    """UPG106: volumes whose driver Kubernetes no longer has."""
    goal = release(target(graph))
    rows = {row["field"]: row for row in table("legacy")["volumes"]}
    places = [
        (m, f"{p.spec_path}.volumes[{n}]", v) for m, p in graph.pods for n, v in enumerate(maps(p.spec.get("volumes")))
    ]
    places += [(m, "spec", mapping(m.body.get("spec"))) for m in graph.kind("PersistentVolume")]
    for manifest, path, volume in places:
        for field in volume.keys() & rows.keys():
            since = release(rows[field]["since"])
            if goal and since and since <= goal:
                message = f"Kubernetes has had no driver for {field} since {rows[field]['since']}: the pod never starts"
                yield say("UPG106", manifest, message, f"{path}.{field}", "use a CSI driver")


def moved_groups(graph: Graph) -> Iterator[Finding]:
    """UPG107: a route to an object by the group that its project has left."""
    for row in table("legacy")["groups"]:
        old, new = f"{row['kind']}.{row['old']}", f"{row['kind']}.{row['new']}"
        for route in graph.kind("HTTPRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io"):
            for path, backend, _ in walk(route.body, ("spec", "rules", "[]", "backendRefs", "[]")):
                if mapping(backend).get("group") != row["old"] or mapping(backend).get("kind") != row["kind"]:
                    continue
                namespace = text(backend.get("namespace")) or route.ref.namespace
                name = text(backend.get("name"))
                if graph.get(Ref(row["old"], row["kind"], namespace, name)) or placeholder(name):
                    continue
                moved = graph.get(Ref(row["new"], row["kind"], namespace, name)) is not None
                if moved or (graph.kind(new) and not graph.kind(old)):
                    message = (
                        f"the route names {row['kind']} {name} of {row['old']}, and the tree has it in {row['new']}: "
                        "the route is not resolved (ResolvedRefs False)"
                    )
                    sureness = None if moved else Confidence.LIKELY
                    yield say("UPG107", route, message, f"{path}.group", f"group: {row['new']}", confidence=sureness)


def unsupported_pairs(graph: Graph) -> Iterator[Finding]:
    """UPG108: a component in the version that the catalog knows, on a Kubernetes that its makers call too old."""
    name = target(graph)
    found = {each.name: each for each in components()}
    for manifest, pod in graph.pods:
        for _, container in containers(pod.spec):
            parts = image(text(container.get("image")))
            component = found.get(parts.repository.rpartition("/")[2])
            if component is None or parts.tag.removeprefix("v") != component.version.removeprefix("v"):
                continue
            if component.support(name) is Support.TOO_OLD:
                message = (
                    f"{component.name} {component.version} wants Kubernetes {component.minimum}; the target is {name}"
                )
                yield warn("UPG108", manifest, message, "", "use an older release of it")


def crd_versions(graph: Graph) -> Iterator[Finding]:
    """UPG109: objects in a version that the CRD of this very tree does not serve."""
    served: dict[tuple[str, str], set[str]] = {}
    owners: dict[tuple[str, str], Manifest] = {}
    for crd in graph.kind("CustomResourceDefinition.apiextensions.k8s.io"):
        spec = mapping(crd.body.get("spec"))
        key = (text(spec.get("group")), text(mapping(spec.get("names")).get("kind")))
        names = {text(row.get("name")) for row in maps(spec.get("versions")) if row.get("served") is True}
        served[key] = served.get(key, set()) | names
        owners[key] = crd
    for manifest in graph.manifests if served else ():
        ref = manifest.ref
        versions = served.get((ref.group, ref.kind))
        asked = manifest.api_version.rpartition("/")[2]
        if versions and asked not in versions:
            message = f"{owners[ref.group, ref.kind].ref} serves {', '.join(sorted(versions))}, not {asked}"
            yield say("UPG109", manifest, message, "apiVersion", f"use {ref.group}/{max(versions)}")


RULES = (
    api_versions,
    dead_annotations,
    dead_node_labels,
    dead_volumes,
    moved_groups,
    unsupported_pairs,
    crd_versions,
)
TREE = ()
