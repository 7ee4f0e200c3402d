"""Where one field does not say what a change does: a function for each `code` of the table of risks.

Each takes the edit and what lies around it, and says the class and the words, or None to let the row's own words stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blueprint.catalog.crds import Json
from blueprint.check.documents import load_yaml
from blueprint.check.scalars import Unreadable
from blueprint.check.shapes import items, mapping, maps, text
from blueprint.review import guards, holders, images, schemas, stores, ways
from blueprint.review.around import Around
from blueprint.review.diff import MISSING, Edit, Item, diff, keyed_path
from blueprint.review.model import Pair, Risk
from blueprint.review.risks import field, item
from blueprint.review.words import named, shown, shown_pair

Said = tuple[Risk, str]

_GUARDS = ("Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm")
_FORCES = {
    "Replace=true": "replaced instead of patched: fields that controllers wrote are lost",
    "Force=true": "deleted and made anew where an update is refused",
}
_LOOSE = {
    "privileged": True,
    "allowPrivilegeEscalation": True,
    "runAsNonRoot": False,
    "readOnlyRootFilesystem": False,
}
_GATES = (
    "admin.enabled",
    "exec.enabled",
    "accounts.",
    "users.",
    "oidc.",
    "dex.",
    "server.insecure",
    "server.disable.auth",
)
"""Keys of argocd-cm and argocd-cmd-params-cm by which people come in (argo-cd v3.6.1 docs/operator-manual)."""
_MODES = {"DISABLE": 0, "PERMISSIVE": 1, "UNSET": 1, "STRICT": 2}


@dataclass(frozen=True, slots=True)
class Case:
    """One edit of one object, and what lies around."""

    pair: Pair
    edit: Edit
    around: Around

    @property
    def default(self) -> str:
        """Field, before and after."""
        before, after = shown_pair(self.edit)
        return f"{field(self.edit)} {before} → {after}"


def options(case: Case) -> Said | None:
    """Options of Argo CD, in an annotation or in an Application."""
    before, after = _options(case.edit.before), _options(case.edit.after)
    lost, won = before - after, after - before
    guards = sorted(option for option in lost if option in _GUARDS)
    weaker = [guard for guard in guards if not any(each.startswith(guard[:6]) and each in _GUARDS for each in won)]
    if weaker:
        return Risk.DESTRUCTIVE, f"no longer protected: {', '.join(weaker)} is gone, and a prune deletes it unasked"
    forces = [f"{option}: {_FORCES[option]}" for option in sorted(won) if option in _FORCES]
    if forces:
        return Risk.DESTRUCTIVE, forces[0]
    return Risk.NONE, f"sync options {shown(sorted(lost))} → {shown(sorted(won))}"


def _options(value: Json) -> set[str]:
    if isinstance(value, list):
        return {each for each in value if isinstance(each, str)}
    return {each.strip() for each in value.split(",") if each.strip()} if isinstance(value, str) else set()


def quota(case: Case) -> Said | None:
    """Rows of a ClusterQueue or Cohort, by flavor and resource."""
    named = [step.keys[0][1] for step in case.edit.steps if isinstance(step, Item)]
    before, after = shown_pair(case.edit)
    last = case.edit.steps[-1]
    if len(named) == 2 and isinstance(last, str):
        words = {"nominalQuota": "nominal", "borrowingLimit": "borrowing limit", "lendingLimit": "lending limit"}
        unlimited = "no limit" if last != "nominalQuota" else "nothing"
        before, after = (unlimited if each == "nothing" else each for each in (before, after))
        return Risk.CAPACITY, f"{words.get(last, last)} of {named[1]} on {named[0]} {before} → {after}"
    if isinstance(last, Item) and len(named) == 1:
        return Risk.CAPACITY, f"flavor {named[0]} {'comes' if case.edit.before is MISSING else 'goes'}"
    if isinstance(last, Item):
        return Risk.CAPACITY, f"{named[1]} on {named[0]} {'comes' if case.edit.before is MISSING else 'goes'}"
    return Risk.CAPACITY, f"{field(case.edit)}: {_flavors(case.edit.before)} → {_flavors(case.edit.after)}"


def _flavors(value: Json) -> str:
    found = [
        f"{text(flavor.get('name'))} ({', '.join(text(row.get('name')) for row in maps(flavor.get('resources')))})"
        for group in maps(value)
        for flavor in maps(group.get("flavors"))
    ]
    return ", ".join(found) if found else shown(value)


def namespace_label(case: Case) -> Said | None:
    """A label of a namespace matters to those that select namespaces by it."""
    key = str(case.edit.steps[-1])
    readers = case.around.selecting(key)
    before, after = shown_pair(case.edit)
    if not readers:
        return Risk.NONE, f"label {key} {before} → {after}"
    return Risk.SECURITY, f"label {key} {before} → {after}: {named(readers)} select namespaces by it"


def mtls(case: Case) -> Said | None:
    """How the mesh takes connections."""
    before, after = (_MODES.get(str(v), 1) for v in (case.edit.before, case.edit.after))
    words = f"{shown(case.edit.before)} → {shown(case.edit.after)}"
    return Risk.SECURITY, f"takes plain text, too ({words})" if after < before else f"takes only mutual TLS ({words})"


def volumes(case: Case) -> Said | None:
    """Volumes of a pod: the node's own files are another matter."""
    name = item(case.edit)
    before, after = shown_pair(case.edit)
    come = maps(case.edit.after) or [mapping(case.edit.after)]
    hosts = [each for each in come if "hostPath" in each and each not in items(case.edit.before)]
    if hosts or "hostPath" in case.edit.path:
        name = name or (text(hosts[0].get("name")) if hosts else "")
        path = mapping(hosts[0]["hostPath"]).get("path") if hosts else case.edit.after
        return Risk.SECURITY, f"volume {name} is a folder of the node: {shown(path)}"
    old = [name] if name else [text(each.get("name")) for each in maps(case.edit.before)]
    found = [told for each in old if (told := stores.volume(case.pair, each)) is not None]
    if found:
        return max(found, key=lambda told: told[0].rank)
    if not name:
        return Risk.RESTART, f"volumes {before} → {after}"
    if isinstance(case.edit.steps[-1], Item) and (case.edit.before is MISSING or case.edit.after is MISSING):
        return Risk.RESTART, f"volume {name} {'comes' if case.edit.before is MISSING else 'goes'}"
    return Risk.RESTART, f"volume {name}: {field(case.edit)} {before} → {after}"


def security_context(case: Case) -> Said | None:
    """What a container may do on its node."""
    last = str(case.edit.steps[-1])
    before, after = shown_pair(case.edit)
    if last in _LOOSE:
        may = _LOOSE[last]
        weaker = case.edit.after is may or (case.edit.after is MISSING and case.edit.before is not may)
        verb = "may do more" if weaker else "may do less"
        return Risk.SECURITY, f"{verb} on its node: {last} {before} → {after}"
    return Risk.SECURITY, f"what it may do on its node: {field(case.edit)} {before} → {after}"


def job_shape(case: Case) -> Said | None:
    """The size of a job."""
    return Risk.CAPACITY, case.default


def canary(case: Case) -> Said | None:
    """The steps of a canary as weights."""
    if "steps" not in case.edit.path:
        return Risk.TRAFFIC, case.default
    old, new = (_weights(manifest.body if manifest else {}) for manifest in (case.pair.old, case.pair.new))
    if old != new:
        return Risk.TRAFFIC, f"canary steps {_percent(old)} become {_percent(new)}"
    checks = [_analyses(m.body if m else {}) for m in (case.pair.old, case.pair.new)]
    if checks[1] < checks[0]:
        return Risk.TRAFFIC, f"canary is judged {checks[1]} times instead of {checks[0]}: steps without analysis"
    return Risk.TRAFFIC, f"canary steps: {case.default}"


def _steps(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    spec = mapping(mapping(mapping(body.get("spec")).get("strategy")).get("canary"))
    return maps(spec.get("steps"))


def _weights(body: Mapping[str, Any]) -> list[int]:
    return [step["setWeight"] for step in _steps(body) if isinstance(step.get("setWeight"), int)]


def _analyses(body: Mapping[str, Any]) -> int:
    return sum("analysis" in step for step in _steps(body))


def _percent(weights: list[int]) -> str:
    return ", ".join(f"{weight} %" for weight in weights) or "none"


def configuration(case: Case) -> Said | None:
    """A ConfigMap: who reads it, and whether that is a component of the platform."""
    readers, component = case.around.readers(case.pair), case.around.component(case.pair)
    key = field(case.edit).removeprefix("data.")
    if component:
        gate = case.pair.ref.name == "argocd-rbac-cm" or key.startswith(_GATES)
        risk = Risk.CAPACITY if component == "Kueue" else Risk.SECURITY if gate else Risk.TRAFFIC
        what = " (who may do what there)" if risk is Risk.SECURITY else ""
        inside = _inside(case.edit)
        if inside == _SAME:
            return Risk.NONE, f"{component}'s own configuration: {key} says the same, written otherwise"
        return risk, f"{component}'s own configuration: {inside or f'{key} changes'}{what}"
    if not readers:
        return Risk.NONE, f"{key} changes; no pod of the tree reads it"
    return (
        Risk.RESTART,
        f"{key} changes, read by {named(readers)}: seen after a restart where it is in the environment",
    )


_SAME = "the same"


def _inside(edit: Edit) -> str:
    """What changes in a configuration that is YAML in a text; "" for other text."""
    if not (isinstance(edit.before, str) and isinstance(edit.after, str)):
        return ""
    try:
        before, after = (load_yaml(value)[0] for value in (edit.before, edit.after))
    except Unreadable:
        return ""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return ""
    found = diff(before, after).edits
    if not found:
        return _SAME
    told = [f"{keyed_path(each.steps)} {' → '.join(shown_pair(each))}" for each in found[:3]]
    return ", ".join(told) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


def version(case: Case) -> Said | None:
    """The same object in another version of its API."""
    old, new = text(case.edit.before), text(case.edit.after)
    if old.rpartition("/")[0] != new.rpartition("/")[0]:
        return Risk.UNKNOWN, f"another API group: {old} → {new}"
    if case.around.pack.kind(new, case.pair.ref.kind) is None:
        return Risk.UNKNOWN, f"{new} is not known: {old} → {new}"
    return Risk.NONE, f"written as {new} instead of {old}"


def account(case: Case) -> Said | None:
    """Another service account, and what it may do that few may."""
    before, after = shown_pair(case.edit)
    namespace = case.pair.ref.namespace or "default"
    name = case.edit.after if isinstance(case.edit.after, str) else "default"
    told = holders.of_account(case.pair.cluster, namespace, name, case.around)
    words = f"runs as service account {after} instead of {before}"
    return Risk.SECURITY, f"{words}, which {told}" if told else words


def _beyond(name: str) -> Callable[[Case], Said | None]:
    """Functions that need rooms of their own are looked up when they are needed."""

    def ask(case: Case) -> Said | None:
        from blueprint.review import access

        found: Said | None = getattr(access, name)(case.pair, case.edit, case.around)
        return found

    return ask


CODES: dict[str, Callable[[Case], Said | None]] = {
    "account": account,
    "sync_options": options,
    "app_options": options,
    "quota": quota,
    "pod_security": guards.pod_security,
    "namespace_label": namespace_label,
    "rights": _beyond("rights"),
    "enforcement": guards.enforcement,
    "policy": guards.policy,
    "network": _beyond("network"),
    "mtls": mtls,
    "volumes": volumes,
    "security_context": security_context,
    "image": images.image,
    "job_shape": job_shape,
    "canary": canary,
    "configuration": configuration,
    "project": guards.project,
    "crd_schema": schemas.changed,
    "version": version,
    "way_in": ways.way_in,
    "folders": ways.folders,
    "container": images.container,
    "generators": ways.generators,
    "mounts": lambda case: stores.mount(case.pair, case.edit),
    "fewer": lambda case: stores.fewer(case.pair, case.edit),
}
