"""Which fields of which objects something in the cluster writes, as rules for Argo CD that travel with the objects.

Plain pointers become an annotation on the object (`options.annotated`), jq paths an entry in its Application.
Sources and kinds are in the table `drift`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blueprint.catalog.references import references
from blueprint.catalog.tables import table
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest
from blueprint.render.plan import Drift, Item

_QUEUE = "kueue.x-k8s.io/queue-name"
_ROLLOUT = ("argoproj.io", "Rollout")
_SCALERS = {("keda.sh", "ScaledObject"), ("autoscaling", "HorizontalPodAutoscaler")}


@dataclass(frozen=True, slots=True)
class Ignored:
    """What one Application must say: its `ignoreDifferences`, and whether it needs `RespectIgnoreDifferences=true`."""

    entries: tuple[dict[str, Any], ...]
    respect: bool
    findings: tuple[Finding, ...]


def with_drift(items: Sequence[Item]) -> list[Item]:
    """The items of one cluster, each with the rules that follow from the others added to its own."""
    scaled, named = _written_by_others(items)
    result = []
    for item in items:
        found = tuple(_rules(item.manifest, item.manifest.ref, scaled, named))
        result.append(replace(item, drift=item.drift + found) if found else item)
    return result


def ignored(items: Iterable[Item]) -> Ignored:
    """What the Application of these items (all of one Application) must say, in a stable order."""
    entries = []
    respected: Item | None = None
    frozen: list[Item] = []
    for item in sorted(items, key=lambda one: one.manifest.ref):
        ref = item.manifest.ref
        paths = sorted({path for rule in item.drift for path in rule.jq})
        if paths:
            where = {"namespace": ref.namespace} if ref.namespace else {}
            entries.append(
                {"group": ref.group, "kind": ref.kind, "name": ref.name, **where, "jqPathExpressions": paths}
            )
        if respected is None and any(rule.respect for rule in item.drift):
            respected = item
        if any("[" in path for rule in item.drift for path in rule.jq) and "." in ref.group:
            frozen.append(item)
    findings = tuple(_freezes(item, respected) for item in frozen) if respected else ()
    return Ignored(tuple(entries), respected is not None, findings)


def _written_by_others(items: Sequence[Item]) -> tuple[set[Ref], dict[Ref, str]]:
    """The objects that a scaler scales, and those that a Rollout writes to with the name of the rule."""
    scaled: set[Ref] = set()
    named: dict[Ref, str] = {}
    routable = table("drift")["routed"]["jq"]
    for item in items:
        ref = item.manifest.ref
        if (ref.group, ref.kind) in _SCALERS:
            scaled |= {r.target for r in references(item.manifest) if r.path == "spec.scaleTargetRef.name"}
        elif (ref.group, ref.kind) == _ROLLOUT:
            for target in _written_by_rollout(item.manifest, ref):
                if target.kind == "Service":
                    named[target] = "selected"
                elif f"{target.kind}.{target.group}" in routable:
                    named[target] = "routed"
    return scaled, named


def _written_by_rollout(rollout: Manifest, ref: Ref) -> Iterator[Ref]:
    strategy = _get(rollout.body, "spec", "strategy")
    for path in (("canary", "stableService"), ("canary", "canaryService"), ("blueGreen", "activeService"),
                 ("blueGreen", "previewService")):  # fmt: skip
        name = _get(strategy, *path)
        if isinstance(name, str):
            yield Ref("", "Service", ref.namespace, name)
    routing = _get(strategy, "canary", "trafficRouting")
    istio = _get(routing, "istio")
    many = _get(istio, "virtualServices")
    for service in [_get(istio, "virtualService"), *(many if isinstance(many, list) else [])]:
        name = _get(service, "name")
        if isinstance(name, str):
            yield Ref("networking.istio.io", "VirtualService", ref.namespace, name)
    name = _get(istio, "destinationRule", "name")
    if isinstance(name, str):
        yield Ref("networking.istio.io", "DestinationRule", ref.namespace, name)
    plugin = _get(routing, "plugins", "argoproj-labs/gatewayAPI")
    many = _get(plugin, "httpRoutes")
    for route in [plugin and {"name": _get(plugin, "httpRoute")}, *(many if isinstance(many, list) else [])]:
        name = _get(route, "name")
        if isinstance(name, str):
            where = _get(plugin, "namespace")
            namespace = where if isinstance(where, str) else ref.namespace
            yield Ref("gateway.networking.k8s.io", "HTTPRoute", namespace, name)


def _rules(manifest: Manifest, ref: Ref, scaled: set[Ref], named: dict[Ref, str]) -> Iterator[Drift]:
    facts = table("drift")
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    if ref in scaled:
        yield from _present(manifest, facts["scaled"]["reason"], facts["scaled"]["pointers"])
    if kind in facts["queued"]["kinds"] and _get(manifest.body, "metadata", "labels", _QUEUE):
        yield from _present(manifest, facts["queued"]["reason"], facts["queued"]["kinds"][kind])
    if named.get(ref) == "selected":
        yield Drift(facts["selected"]["reason"], pointers=tuple(facts["selected"]["always"]), respect=False)
    if named.get(ref) == "routed":
        # Respecting a path inside a list of a custom resource would keep the whole live list: Git could not change it.
        yield Drift(facts["routed"]["reason"], jq=tuple(facts["routed"]["jq"][kind]), respect=False)


def _present(manifest: Manifest, reason: str, pointers: Iterable[str]) -> Iterator[Drift]:
    """A rule for those pointers that lead to a field the object sets."""
    found = tuple(there for pointer in pointers for there in _expand(manifest.body, pointer.split("/")[1:], ""))
    if found:
        yield Drift(reason, pointers=found)


def _expand(value: object, steps: Sequence[str], path: str) -> Iterator[str]:
    if not steps:
        yield path
    elif isinstance(value, dict):
        for key in sorted(value) if steps[0] == "{}" else [steps[0]]:
            if key in value:
                escaped = key.replace("~", "~0").replace("/", "~1")
                yield from _expand(value[key], steps[1:], f"{path}/{escaped}")


def _get(value: object, *path: str) -> Any:  # noqa: ANN401 - whatever the object holds there
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _freezes(item: Item, respected: Item) -> Finding:
    ref = item.manifest.ref
    paths = ", ".join(path for rule in item.drift for path in rule.jq)
    return Finding(
        "WAV109",
        f"changes in Git to the lists around {paths} of {ref} will not be applied: its Application respects ignored "
        f"differences (because of {respected.manifest.ref}), which keeps whole lists of custom resources as they are",
        source=item.manifest.source,
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
        object=ref,
        fix=f"put {ref.kind} {ref.name} into another Application than {respected.manifest.ref.kind} "
        f"{respected.manifest.ref.name}, or leave out the field that the cluster writes",
    )
