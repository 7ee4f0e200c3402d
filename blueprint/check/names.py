"""Names, labels, annotations and the rest of an object's metadata.

Sources: k8s.io/apimachinery@v0.35.4 pkg/api/validation/objectmeta.go; the forms of names by kind are in
catalog/data/name_rules.yaml, each with its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

import yaml_rs

from blueprint.catalog.schemas import Kind
from blueprint.check import forms
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_FORMS: dict[str, Callable[[str], str]] = {
    "label_1123": forms.label_1123,
    "label_1035": forms.label_1035,
    "path_segment": forms.path_segment,
    "subdomain": forms.subdomain,
}
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_STATEFUL_SET = 52
_TRACKING = ("argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance")


class NameRule(NamedTuple):
    """The form and length of a kind's names; `sure` where the API server itself refuses others."""

    form: Callable[[str], str]
    most: int
    sure: bool
    why: str


@cache
def _table() -> Body:
    data = resources.files("blueprint.catalog").joinpath("data/name_rules.yaml").read_text("utf-8")
    return mapping(yaml_rs.loads(data))


@cache
def name_rules(api_version: str, kind: str) -> tuple[NameRule, ...]:
    """The rules for the names of a kind, the server's own first."""
    group, slash, _ = api_version.partition("/")
    key = f"{kind}.{group}" if slash else kind
    rules = [
        NameRule(_FORMS[row["form"]], row.get("most", 0), row.get("sure", False), row.get("why", ""))
        for row in _table()["rules"]
        if row["kind"] == key
    ]
    if not any(rule.sure for rule in rules):
        rules.insert(0, NameRule(forms.subdomain, 0, True, ""))
    return tuple(rules)


def names(manifest: Manifest, kind: Kind | None) -> list[Finding]:
    """NAM1xx (the API server refuses it) and NAM2xx (something breaks later)."""
    metadata = mapping(manifest.body.get("metadata"))
    found: list[Finding] = []

    def add(
        code: str,
        path: str,
        message: str,
        fix: str = "",
        confidence: Confidence = Confidence.CERTAIN,
        severity: Severity = Severity.ERROR,
    ) -> None:
        found.append(Finding(code, message, manifest.source, severity, confidence, manifest.ref, path, fix))

    # A document of no known kind and without metadata is hardly an object: many programs keep their files in this form.
    if kind is not None or "metadata" in manifest.body:
        _name(manifest, metadata, add)
    _namespace(manifest, metadata, kind, add)
    _labels(metadata, add)
    for key in mapping(metadata.get("annotations")):
        if problem := forms.annotation_key(str(key)):
            add("NAM105", "metadata.annotations", f"annotation key {key!r}: {problem}")
    if metadata.keys() & {"finalizers", "ownerReferences"}:
        _owners(manifest, metadata, add)
    if manifest.kind in _FIXED:
        _fixed_name(manifest, metadata, add)
    name = text(metadata.get("name"))
    for derived, most, what in derived_names(manifest, name):
        if len(derived) > most:
            message = f"{what} would be called {derived}: {len(derived)} characters, and {most} are allowed"
            add("NAM201", "metadata.name", message, "choose a shorter name", Confidence.LIKELY)
            break
    return found


_Add = Callable[..., None]


def _name(manifest: Manifest, metadata: Body, add: _Add) -> None:
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if not name:
        if name is not None and not isinstance(name, str):
            return
        if not prefix:
            path = "metadata.name" if "name" in metadata else "metadata"
            sure = (
                Confidence.LIKELY if manifest.kind == "LimitRange" else Confidence.CERTAIN
            )  # the server would name it
            add("NAM101", path, "the object has no name", "", sure)
            return
        add(
            "NAM202",
            "metadata.generateName",
            "an object with generateName can be created but not applied",
            "give it a name",
            Confidence.LIKELY,
            Severity.WARNING,
        )
    if not isinstance(name, str):
        name = ""
    for rule in name_rules(manifest.api_version, manifest.kind):
        if isinstance(prefix, str) and prefix and rule.sure:
            stem = prefix[:-1] + "a" if prefix.endswith("-") else prefix
            if problem := rule.form(stem):
                add("NAM102", "metadata.generateName", f"generateName {prefix!r} {problem}")
        if not name:
            continue
        problem = rule.form(name)
        if not problem and rule.most and len(name) > rule.most:
            problem = f"must be no more than {rule.most} characters"
        if problem:
            code, how = ("NAM102", Confidence.CERTAIN) if rule.sure else ("NAM201", Confidence.LIKELY)
            add(code, "metadata.name", f"name {name!r} {problem}" + (f": {rule.why}" if rule.why else ""), "", how)
            return


def derived_names(manifest: Manifest, name: str) -> Iterator[tuple[str, int, str]]:
    """The longest names that a controller makes of an object's name, how long each may be, and what bears it."""
    spec, kind = mapping(manifest.body.get("spec")), manifest.kind
    key = f"{kind}.{manifest.ref.group}"
    if key in _table()["replicas"]:
        for role, replica in mapping(spec.get(_table()["replicas"][key])).items():
            last = max(number(mapping(replica).get("replicas"), 1) or 1, 1) - 1
            yield f"{name}-{str(role).lower()}-{last}", forms.LABEL_LENGTH, "a pod and its Service"
    elif key == "JobSet.jobset.x-k8s.io":
        for job in maps(spec.get("replicatedJobs")):
            inner = mapping(mapping(job.get("template")).get("spec"))
            last = max(number(job.get("replicas"), 1) or 1, 1) - 1
            pods = max(number(inner.get("completions"), number(inner.get("parallelism"), 1)) or 1, 1) - 1
            yield f"{name}-{text(job.get('name'))}-{last}-{pods}-xxxxx", forms.LABEL_LENGTH, "a pod"
    elif key == "TrainJob.trainer.kubeflow.org":
        nodes = max(number(mapping(spec.get("trainer")).get("numNodes"), 1) or 1, 1) - 1
        yield f"{name}-node-0-{nodes}-xxxxx", forms.LABEL_LENGTH, "a pod"
    elif key == "LeaderWorkerSet.leaderworkerset.x-k8s.io":
        last = max(number(spec.get("replicas"), 1) or 1, 1) - 1
        yield f"{name}-{last}", _STATEFUL_SET, "the StatefulSet of a group"
    elif key == "ScaledObject.keda.sh":
        # refused by its webhook: github.com/kedacore/keda/v2@v2.21.0 apis/keda/v1alpha1/scaledobject_webhook.go
        given = text(mapping(mapping(spec.get("advanced")).get("horizontalPodAutoscalerConfig")).get("name"))
        yield given or f"keda-hpa-{name}", forms.LABEL_LENGTH, "its HorizontalPodAutoscaler"


def _namespace(manifest: Manifest, metadata: Body, kind: Kind | None, add: _Add) -> None:
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace:
        if kind is not None and not kind.namespaced:
            message = f"a {manifest.kind} lives in no namespace; {namespace} is ignored"
            add("NAM203", "metadata.namespace", message, "remove it", Confidence.STYLE, Severity.NOTE)
        elif problem := forms.label_1123(namespace):
            add("NAM103", "metadata.namespace", f"namespace {namespace!r} {problem}")
    if manifest.kind == "Namespace" and manifest.api_version == "v1":
        name = text(metadata.get("name"))
        table = _table()
        if name.startswith(table["reserved_prefix"]) and name not in table["reserved_namespaces"]:
            message = f"namespaces whose names start with {table['reserved_prefix']} are for Kubernetes itself"
            add("NAM204", "metadata.name", message, "choose another name", Confidence.LIKELY, Severity.WARNING)
        label = mapping(metadata.get("labels")).get("kubernetes.io/metadata.name")
        if label not in (None, name):
            message = f"the label kubernetes.io/metadata.name is always the name; {label!r} is overwritten"
            add("NAM206", "metadata.labels", message, "remove the label", Confidence.STYLE, Severity.NOTE)


def _labels(metadata: Body, add: _Add) -> None:
    for key, value in mapping(metadata.get("labels")).items():
        if problem := forms.qualified_name(str(key)):
            add("NAM104", "metadata.labels", f"label key {key!r}: {problem}")
        if isinstance(value, str) and (problem := forms.label_value(value)):
            add("NAM104", "metadata.labels", f"label {key}: value {value!r} {problem}")
    for name in ("labels", "annotations"):
        given = mapping(metadata.get(name))
        for key in _TRACKING:
            if key in given:
                message = f"Argo CD writes {key} itself, to know which application owns the object"
                add("NAM205", f"metadata.{name}", message, "remove it", Confidence.LIKELY, Severity.WARNING)


def _owners(manifest: Manifest, metadata: Body, add: _Add) -> None:
    built_in = "." not in manifest.ref.group or manifest.ref.group.endswith(".k8s.io")
    for index, name in enumerate(items(metadata.get("finalizers"))):
        if not isinstance(name, str):
            continue
        problem = forms.qualified_name(name)
        if not problem and built_in and "/" not in name and name not in _STANDARD_FINALIZERS:
            problem = "must be domain/name"
        if problem:
            add("NAM106", f"metadata.finalizers[{index}]", f"finalizer {name!r}: {problem}")
    controllers = 0
    for index, owner in enumerate(maps(metadata.get("ownerReferences"))):
        for field in ("apiVersion", "kind", "name", "uid"):
            if owner.get(field) == "":
                add("NAM107", f"metadata.ownerReferences[{index}].{field}", f"{field} of an owner is empty")
        controllers += owner.get("controller") is True
    if controllers > 1:
        add("NAM107", "metadata.ownerReferences", "two owners are controllers; only one can be")


def _fixed_name(manifest: Manifest, metadata: Body, add: _Add) -> None:
    """Names that follow from the content of the object."""
    group, wanted = _FIXED[manifest.kind]
    name = metadata.get("name")
    if manifest.ref.group != group or not isinstance(name, str):
        return
    expected = wanted(mapping(manifest.body.get("spec")))
    if expected and name != expected:
        add("NAM108", "metadata.name", f"the name of this {manifest.kind} must be {expected!r}, not {name!r}")


def _crd_name(spec: Body) -> str:
    plural, group = text(mapping(spec.get("names")).get("plural")), text(spec.get("group"))
    return f"{plural}.{group}" if plural and group else ""


def _constraint_name(spec: Body) -> str:
    crd = mapping(mapping(spec.get("crd")).get("spec"))
    return text(mapping(crd.get("names")).get("kind")).lower()


def _api_name(spec: Body) -> str:
    version = text(spec.get("version"))
    return f"{version}.{text(spec.get('group'))}" if version else ""


_FIXED: dict[str, tuple[str, Callable[[Body], str]]] = {
    "CustomResourceDefinition": ("apiextensions.k8s.io", _crd_name),
    "ConstraintTemplate": ("templates.gatekeeper.sh", _constraint_name),
    "APIService": ("apiregistration.k8s.io", _api_name),
}
