"""Backups by Velero: those that it refuses, those that save nothing, and what nobody saves.

Sources: velero v1.18.3 pkg/controller/backup_controller.go prepareBackupRequest, schedule_controller.go,
pkg/util/collections/includes_excludes.go; velero issue 6212 (completed without a volume).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blueprint.catalog.gating import standing_namespaces
from blueprint.check.durations import hours_between_runs, seconds
from blueprint.check.globs import glob
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, known, mapping, placeholder, text
from blueprint.cron import schedule_problem
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

SCHEDULE, BACKUP, LOCATION = "Schedule.velero.io", "Backup.velero.io", "BackupStorageLocation.velero.io"


def _backups(graph: Graph) -> Iterator[tuple[Manifest, Body, str]]:
    """Every backup and every template of one, with the path to it."""
    for manifest in graph.kind(BACKUP):
        yield manifest, mapping(manifest.body.get("spec")), "spec"
    for manifest in graph.kind(SCHEDULE):
        yield manifest, mapping(mapping(manifest.body.get("spec")).get("template")), "spec.template"


def _names(value: object) -> list[str]:
    return [text(each) for each in items(value)]


def refused(graph: Graph) -> Iterator[Finding]:
    """BAK101: lists and selectors with which Velero fails the validation of every backup."""
    for manifest, spec, path in _backups(graph):
        for problem, field in _problems(spec):
            fix = "keep one of the two" if "together" in problem else "correct the lists"
            yield say("BAK101", manifest, f"Velero refuses the backup: {problem}", f"{path}.{field}", fix)


_OLD = ("includedResources", "excludedResources", "includeClusterResources")
_NEW = tuple(f"{way}{scope}ScopedResources" for way in ("included", "excluded") for scope in ("Cluster", "Namespace"))


def _problems(spec: Body) -> Iterator[tuple[str, str]]:
    old = [name for name in _OLD if spec.get(name) not in (None, [])]
    new = [name for name in _NEW if spec.get(name)]
    if old and new:
        yield f"{old[0]} and {new[0]} cannot be used together", new[0]
    if spec.get("labelSelector") is not None and spec.get("orLabelSelectors") is not None:
        yield "labelSelector and orLabelSelectors cannot be used together", "orLabelSelectors"
    for what in ("Namespaces", "Resources", "ClusterScopedResources", "NamespaceScopedResources"):
        included, excluded = _names(spec.get(f"included{what}")), _names(spec.get(f"excluded{what}"))
        both = sorted(set(included) & set(excluded))
        scoped = "Scoped" in what
        if len(set(included)) > 1 and "*" in included:
            yield f"included{what} holds * beside other names", f"included{what}"
        if "*" in excluded and (not scoped or included or len(set(excluded)) > 1):
            yield f"excluded{what} holds *", f"excluded{what}"
        elif both:
            yield f"{both[0]} is included and excluded", f"excluded{what}"


def locations(graph: Graph) -> Iterator[Finding]:
    """BAK102, BAK103: a storage location that is not there, or that may only be read."""
    for manifest, spec, path in _backups(graph):
        namespace = manifest.ref.namespace
        name = known(spec.get("storageLocation"))
        if not name:
            continue
        location = graph.get(Ref("velero.io", "BackupStorageLocation", namespace, name))
        if location is None:
            others = [m.ref for m in graph.kind(LOCATION) if m.ref.namespace == namespace or m.ref.name == name]
            if graph.closed(LOCATION) and (others or graph.said_closed):
                message = f"there is no BackupStorageLocation {name} in the namespace {namespace}; every backup fails"
                yield say("BAK102", manifest, message, f"{path}.storageLocation", "name one that is there")
        elif mapping(location.body.get("spec")).get("accessMode") == "ReadOnly":
            message = f"{name} may only be read; every backup to it fails"
            yield say(
                "BAK103", manifest, message, f"{path}.storageLocation", "name a location with accessMode ReadWrite"
            )


def default_locations(graph: Graph) -> Iterator[Finding]:
    """BAK104: two locations are the default one; which of them is taken is left to chance."""
    first: dict[str, Manifest] = {}
    for manifest in graph.kind(LOCATION):
        if mapping(manifest.body.get("spec")).get("default") is not True:
            continue
        other = first.setdefault(manifest.ref.namespace, manifest)
        if other is not manifest:
            message = f"{other.ref.name} is the default location, too; Velero takes the first one it is given"
            yield warn("BAK104", manifest, message, "spec.default", "make one of them the default")


def schedules(graph: Graph) -> Iterator[Finding]:
    """BAK105, BAK106, BAK107: a schedule that never runs, keeps nothing, or owns what it makes."""
    for manifest in graph.kind(SCHEDULE):
        spec = mapping(manifest.body.get("spec"))
        cron = known(spec.get("schedule"))
        plain = cron.partition(" ")[2] if "TZ=" in cron.partition(" ")[0] else cron
        problem = schedule_problem(plain) if plain else ""
        if problem:
            message = f"{cron!r} is no schedule ({problem}): Velero never makes a backup"
            yield say("BAK105", manifest, message, "spec.schedule", 'five fields, as "17 2 * * *"')
        ttl, apart = known(mapping(spec.get("template")).get("ttl")), hours_between_runs(cron)
        length = seconds(ttl) if ttl else None
        if length is not None and apart is not None and 0 < length <= apart * 3600:
            message = (
                f"a backup is deleted after {ttl}, and the next one comes after {apart:g} h: at times there is none"
            )
            yield say("BAK106", manifest, message, "spec.template.ttl", "keep several: a ttl of some intervals")
        pruning = [each.name for each in graph.deliveries.owners.get(id(manifest), []) if each.prunes]
        if spec.get("useOwnerReferencesInBackup") is True and pruning:
            message = f"backups belong to the schedule; when Application {pruning[0]} prunes it they are deleted, too"
            yield say("BAK107", manifest, message, "spec.useOwnerReferencesInBackup", "set it to false")


def without_volumes(graph: Graph) -> Iterator[Finding]:
    """BAK108: a backup that completes and holds no data: no snapshots, and no copies of files."""
    for manifest, spec, path in _backups(graph):
        if spec.get("snapshotVolumes") is not False or spec.get("defaultVolumesToFsBackup") is True:
            continue
        if spec.get("defaultVolumesToRestic") is True or spec.get("snapshotMoveData") is True:
            continue
        saved = _saved(spec)
        claims = [
            claim
            for claim in graph.kind("PersistentVolumeClaim")
            if saved(claim.ref.namespace) and not _opted_in(graph, claim.ref.namespace)
        ]
        if claims:
            more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
            message = (
                f"the backup completes without the data of {claims[0].ref}{more}: volumes are not saved in any way"
            )
            fix = "set snapshotVolumes or defaultVolumesToFsBackup"
            yield say("BAK108", manifest, message, f"{path}.snapshotVolumes", fix)


def _opted_in(graph: Graph, namespace: str) -> bool:
    """Whether pods of a namespace name volumes whose files are to be copied."""
    return any(
        "backup.velero.io/backup-volumes" in mapping(pod.metadata.get("annotations"))
        for manifest, pod in graph.pods
        if manifest.ref.namespace == namespace
    )


class _Namespaces:
    """Which namespaces a backup takes."""

    def __init__(self, included: Sequence[str], excluded: Sequence[str]) -> None:
        self._included, self._excluded = included, excluded

    def __call__(self, namespace: str) -> bool:
        """Whether a namespace is saved; True where a placeholder leaves it open."""
        if any(placeholder(each) for each in [*self._included, *self._excluded]):
            return True
        if any(glob(each, namespace) for each in self._excluded):
            return False
        return not self._included or any(glob(each, namespace) for each in self._included)


def _saved(spec: Body) -> _Namespaces:
    return _Namespaces(_names(spec.get("includedNamespaces")), _names(spec.get("excludedNamespaces")))


def unsaved_namespaces(graph: Graph) -> Iterator[Finding]:
    """BAK109: claims in a namespace that no schedule takes, though there are schedules."""
    takes = [_saved(mapping(mapping(m.body.get("spec")).get("template"))) for m in graph.kind(SCHEDULE)]
    if not takes or not graph.closed(SCHEDULE):
        return
    said: set[str] = set()
    for claim in graph.kind("PersistentVolumeClaim"):
        namespace = claim.ref.namespace
        if (
            namespace
            and namespace not in said
            and not placeholder(namespace)
            and not any(take(namespace) for take in takes)
        ):
            said.add(namespace)
            message = f"no schedule saves the namespace {namespace}, which holds volumes"
            yield warn("BAK109", claim, message, "metadata.namespace", "add it to includedNamespaces of a schedule")


def missing_namespaces(graph: Graph) -> Iterator[Finding]:
    """BAK110: a namespace to be saved that is not among those of the tree: most often a name that was changed."""
    if not graph.closed("Namespace"):
        return
    there = {m.ref.name for m in graph.kind("Namespace")} | set(graph.namespaces())
    there |= {each.namespace for each in graph.deliveries.applications}
    for manifest, spec, path in _backups(graph):
        for index, name in enumerate(_names(spec.get("includedNamespaces"))):
            if (
                name
                and name not in there
                and not placeholder(name)
                and not set(name) & set("*?[")
                and name not in standing_namespaces()
            ):
                message = f"there is no namespace {name} in this tree; the backup of it is empty"
                yield warn("BAK110", manifest, message, f"{path}.includedNamespaces[{index}]", "correct the name")


RULES = (
    refused,
    locations,
    default_locations,
    schedules,
    without_volumes,
    unsaved_namespaces,
    missing_namespaces,
)
TREE = ()
