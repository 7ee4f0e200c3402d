"""Autoscalers that are refused, or that scale nothing: groups, targets, bounds, triggers.

Sources: keda v2.21.0 apis/keda/v1alpha1/scaledobject_webhook.go, scaledobject_types.go, scaletriggers_types.go,
schema/generated/scalers-schema.json; k8s.io/kubernetes@v1.35.4 pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from blueprint.catalog.facts import served_versions
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.matching import kind_problem
from blueprint.check.rollouts import rollouts
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.scalers import Scaler, scalers
from blueprint.check.shapes import Body, known, mapping, maps, number, placeholder, text
from blueprint.finding import Finding, Ref

_LONGEST = 63
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_RESOURCE = frozenset({"cpu", "memory"})


def foreign_groups(graph: Graph) -> Iterator[Finding]:
    """SCL101: a HorizontalPodAutoscaler in a group that has no such kind."""
    for kind in graph.kinds():
        name, _, group = kind.partition(".")
        if name in {"HorizontalPodAutoscaler", "ScaledObject"}:
            right = "autoscaling" if name.startswith("H") else "keda.sh"
            for manifest in graph.kind(kind) if group != right else ():
                message = f"the group {group or 'of the core'} has no {name}; no such object can be created"
                version = "autoscaling/v2" if right == "autoscaling" else "keda.sh/v1alpha1"
                yield say("SCL101", manifest, message, "apiVersion", f"apiVersion: {version}")


def rivals(graph: Graph) -> Iterator[Finding]:
    """SCL102: two autoscalers of one workload, or two ScaledObjects with one HorizontalPodAutoscaler."""
    first: dict[Ref, Scaler] = {}
    names: dict[tuple[str, str], Scaler] = {}
    for scaler in scalers(graph):
        if annotations_of(scaler.manifest.body).get("validations.keda.sh/hpa-ownership") == "false":
            continue
        if scaler.target is not None:
            other = first.setdefault(scaler.target, scaler)
            same = other.manifest.ref == scaler.manifest.ref or _taken_over(scaler, other) or _taken_over(other, scaler)
            if other is not scaler and not same:
                message = f"{scaler.target} is scaled by {other.manifest.ref}, too: each undoes what the other does"
                yield say("SCL102", scaler.manifest, message, "spec.scaleTargetRef", "leave one of them")
        if scaler.by_keda:
            key = scaler.manifest.ref.namespace, _hpa_name(scaler)
            other = names.setdefault(key, scaler)
            if other is not scaler and other.manifest.ref != scaler.manifest.ref:
                message = f"the HorizontalPodAutoscaler {key[1]} belongs to {other.manifest.ref} already"
                yield say("SCL102", scaler.manifest, message, "spec.advanced", "another name")


def _hpa_name(scaler: Scaler) -> str:
    own = mapping(mapping(scaler.spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
    return known(own.get("name")) or f"keda-hpa-{scaler.manifest.ref.name}"


def _taken_over(scaler: Scaler, other: Scaler) -> bool:
    notes = annotations_of(scaler.manifest.body)
    return (
        scaler.by_keda
        and notes.get("scaledobject.keda.sh/transfer-hpa-ownership") == "true"
        and _hpa_name(scaler) == other.manifest.ref.name
    )


def targets(graph: Graph) -> Iterator[Finding]:
    """SCL103, SCL104, SCL105: the target is not there, is driven by a Rollout, or has a version that nobody serves."""
    driven = {}
    for rollout in rollouts(graph):
        ref = mapping(rollout.spec.get("workloadRef"))
        if ref:
            group, slash, _ = known(ref.get("apiVersion")).partition("/")
            driven[
                Ref(
                    group if slash else "",
                    known(ref.get("kind")),
                    rollout.manifest.ref.namespace,
                    known(ref.get("name")),
                )
            ] = rollout
    for scaler in scalers(graph):
        target, path = scaler.target, "spec.scaleTargetRef"
        if target is None:
            continue
        if target in driven:
            name = driven[target].manifest.ref.name
            message = f"{target} is only the template of Rollout {name}, which scales its own pods"
            fix = f"apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: {name}"
            yield say("SCL104", scaler.manifest, message, path, fix)
        elif scaler.workload is None:
            kind = f"{target.kind}.{target.group}" if target.group else target.kind
            peers = graph.within(target.namespace, kind) if graph.closed(kind) else ()
            if peers:
                message = f"there is no {target.kind} {target.name} in its namespace: nothing is scaled"
                close = get_close_matches(target.name, [m.ref.name for m in peers], 1)
                yield say(
                    "SCL103",
                    scaler.manifest,
                    message,
                    path,
                    f"did you mean {close[0]}?" if close else "name a workload",
                )
            elif target.kind and (problem := kind_problem(graph, target.group, target.kind)):
                yield say("SCL103", scaler.manifest, f"{problem}: nothing is scaled", f"{path}.kind", "write the kind")
        version, served = scaler.target_api.rpartition("/")[2], served_versions(target.group, target.kind)
        if served and version not in served:
            message = f"{target.kind} has no version {version}: the API server does not find what is to be scaled"
            yield say("SCL105", scaler.manifest, message, f"{path}.apiVersion", f"{target.group}/{served[0]}")


def bounds(graph: Graph) -> Iterator[Finding]:
    """SCL106: bounds of a ScaledObject, its name, its fallback, and its formula, as KEDA's webhook refuses them."""
    for scaler in scalers(graph):
        if not scaler.by_keda:
            continue
        idle, least, most = number(scaler.spec.get("idleReplicaCount")), scaler.least, scaler.most
        if idle is not None and least is not None and idle >= least:
            message = f"idleReplicaCount {idle} is not below minReplicaCount {least}"
            yield say(
                "SCL106", scaler.manifest, message, "spec.idleReplicaCount", "0, and a minReplicaCount of 1 or more"
            )
        if least is not None and most is not None and least > most:
            message = f"minReplicaCount {least} is above maxReplicaCount {most}"
            yield say("SCL106", scaler.manifest, message, "spec.maxReplicaCount", f"at least {least}")
        name = _hpa_name(scaler)
        if len(name) > _LONGEST and not placeholder(scaler.manifest.ref.name):
            message = (
                f"the name of its HorizontalPodAutoscaler, {name}, has {len(name)} characters; {_LONGEST} are allowed"
            )
            fix = "a shorter name, or advanced.horizontalPodAutoscalerConfig.name"
            yield say("SCL106", scaler.manifest, message, "metadata.name", fix)
        kinds = {text(trigger.get("type")) for trigger in scaler.triggers}
        if kinds and kinds <= _RESOURCE:
            if scaler.spec.get("fallback") and not _formula(scaler):
                message = "a fallback needs a trigger other than cpu and memory"
                yield say("SCL106", scaler.manifest, message, "spec.fallback", "leave it out")
            if least == 0:
                message = "cpu and memory cannot wake what runs no pod: minReplicaCount 0 needs another trigger"
                yield say("SCL106", scaler.manifest, message, "spec.minReplicaCount", "1, or a trigger from outside")
        yield from _formula_problems(scaler)


def _formula(scaler: Scaler) -> Body:
    return mapping(mapping(scaler.spec.get("advanced")).get("scalingModifiers"))


def _formula_problems(scaler: Scaler) -> Iterator[Finding]:
    modifiers, path = _formula(scaler), "spec.advanced.scalingModifiers"
    formula = text(modifiers.get("formula"))
    if not modifiers or placeholder(formula):
        return
    if not formula:
        yield say("SCL106", scaler.manifest, "scalingModifiers need a formula", f"{path}.formula", "write the formula")
    elif not modifiers.get("target"):
        yield say("SCL106", scaler.manifest, "a formula needs a target", f"{path}.target", "what one replica takes")
    names = {text(trigger.get("name")) for trigger in scaler.triggers if text(trigger.get("type")) not in _RESOURCE}
    used = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*\()", re.sub(r'"[^"]*"|\'[^\']*\'', "", formula)))
    for each in sorted(used - names - _WORDS):
        message = f"the formula names {each}, and no trigger is called so"
        yield say("SCL106", scaler.manifest, message, f"{path}.formula", f"name: {each} at the trigger it means")


_WORDS = frozenset(
    {"nil", "true", "false", "let", "in", "not", "and", "or", "matches", "contains", "if", "else", "e", "E"}
)


def triggers(graph: Graph) -> Iterator[Finding]:
    """SCL107, SCL108: triggers that KEDA refuses, and parameters that it does not know and ignores."""
    known_scalers = table("keda_scalers")["scalers"]
    for manifest in graph.kind("ScaledObject.keda.sh", "ScaledJob.keda.sh"):
        rows = maps(mapping(manifest.body.get("spec")).get("triggers"))
        for name, count in Counter(text(row.get("name")) for row in rows if row.get("name")).items():
            if count > 1:
                yield say(
                    "SCL107", manifest, f"{count} triggers are called {name}", "spec.triggers", "each its own name"
                )
        for index, row in enumerate(rows):
            path, kind = f"spec.triggers[{index}]", known(row.get("type"))
            scaler = known_scalers.get(kind)
            if scaler is None:
                if kind:
                    close = get_close_matches(kind, known_scalers, 1)
                    fix = f"did you mean {close[0]}?" if close else "see the list of scalers of KEDA"
                    yield say("SCL107", manifest, f"KEDA has no scaler {kind}", f"{path}.type", fix)
                continue
            if row.get("useCachedMetrics") is True and kind in {"cpu", "memory", "cron"}:
                yield say(
                    "SCL107", manifest, f"{kind} takes no useCachedMetrics", f"{path}.useCachedMetrics", "leave it out"
                )
            metadata = mapping(row.get("metadata"))
            given = {str(key).removesuffix("FromEnv") for key in metadata}
            for name in scaler.get("needed", ()):
                if name not in given:
                    message = f"{kind} needs {name}; the trigger is never active"
                    yield say("SCL107", manifest, message, f"{path}.metadata", f"{name}: …")
            for name in sorted(given):
                if name in scaler.get("gone", ()):
                    yield warn(
                        "SCL108", manifest, f"{name} of {kind} is gone", f"{path}.metadata.{name}", scaler["gone"][name]
                    )
                elif name not in _names(scaler):
                    close = get_close_matches(name, _names(scaler), 1)
                    fix = f"did you mean {close[0]}?" if close else "leave it out"
                    message = f"{kind} has no parameter {name}: KEDA ignores it"
                    yield warn("SCL108", manifest, message, f"{path}.metadata.{name}", fix)
                elif (values := scaler.get("values", {}).get(name)) and known(metadata.get(name)):
                    wrong = [each for each in re.split(r"[,;]\s*", known(metadata[name])) if each not in values]
                    if wrong:
                        message = f"{name} of {kind} cannot be {wrong[0]}"
                        yield say("SCL107", manifest, message, f"{path}.metadata.{name}", one_of(values))
            for name in ("threshold", "activationThreshold") if kind == "prometheus" else ():
                if known(metadata.get(name)) and not _NUMBER.fullmatch(known(metadata[name])):
                    message = f"{name} {metadata[name]!r} is no number"
                    yield say("SCL107", manifest, message, f"{path}.metadata.{name}", 'a number as text: "5"')


def _names(scaler: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key in ("needed", "more", "by_auth", "gone"):
        found += [str(each) for each in scaler.get(key, ())]
    return found


def rival_adapters(graph: Graph) -> Iterator[Finding]:
    """SCL109: external metrics come from another adapter than KEDA, of which a cluster can have only one."""
    if not graph.kind("ScaledObject.keda.sh"):
        return
    for service in graph.kind("APIService.apiregistration.k8s.io"):
        if service.ref.name.endswith(".external.metrics.k8s.io"):
            name = text(mapping(mapping(service.body.get("spec")).get("service")).get("name"))
            if name and "keda" not in name and not placeholder(name):
                message = f"external metrics come from {name}; ScaledObjects need KEDA's server, and there can be one"
                yield say("SCL109", service, message, "spec.service", "keda-operator-metrics-apiserver")


RULES = (foreign_groups, rivals, targets, bounds, triggers, rival_adapters)
TREE = ()
