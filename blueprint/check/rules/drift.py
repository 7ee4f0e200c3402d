"""Fields that Git and something in the cluster both write, so that Argo CD, or every apply, undoes the other's work.

Which controller writes which field is in the table `drift`. Sources: argo-cd v3.6.1 docs/user-guide/diffing.md,
gitops-engine v3.6.1 pkg/diff/diff.go; argo-cd issues 23283, 26588; kserve issue 2232.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blueprint.catalog.references import references, walk
from blueprint.catalog.tables import table
from blueprint.check.applications import Application, config
from blueprint.check.globs import glob
from blueprint.check.graph import Graph, annotations_of, kind_of, labels_of
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, mapping, maps, placeholder, text
from blueprint.finding import Finding, Ref, Severity
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, format_quantity, read_quantity

_SCALERS = ("ScaledObject.keda.sh", "HorizontalPodAutoscaler.autoscaling")
_QUEUE = "kueue.x-k8s.io/queue-name"
_BUNDLES: Mapping[str, tuple[str, ...]] = {
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": ("webhooks", "[]", "clientConfig", "caBundle"),
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": ("webhooks", "[]", "clientConfig", "caBundle"),
    "CustomResourceDefinition.apiextensions.k8s.io": ("spec", "conversion", "webhook", "clientConfig", "caBundle"),
    "APIService.apiregistration.k8s.io": ("spec", "caBundle"),
}
_OWN = "argocd.argoproj.io/ignore-differences"
_SELECTS = re.compile(r"select\(.*(?:metadata|labels|annotations|status|weight)\b.*\)")
"""A jq expression that selects by something that a controller writes; the name of a rule or a Service is in Git."""


def _ignored(graph: Graph, manifest: Manifest, pointer: str) -> bool:
    """Whether some rule tells Argo CD to overlook a field: of the Application, of the object, or of all of its kind."""
    last = pointer.rpartition("/")[2]
    if pointer in annotations_of(manifest.body).get(_OWN, ""):
        return True
    data = config(graph) or {}
    key = f"resource.customizations.ignoreDifferences.{manifest.ref.group}_{manifest.kind}"
    if any(last in text(data.get(each)) for each in (key, "resource.customizations.ignoreDifferences.all")):
        return True
    for application in graph.deliveries.owners.get(id(manifest), ()):
        for row in application.ignored:
            if _row_takes(row, manifest) and (
                any(
                    last in text(path)
                    for path in [*items(row.get("jsonPointers")), *items(row.get("jqPathExpressions"))]
                )
                or items(row.get("managedFieldsManagers"))
            ):
                return True
    return False


def _row_takes(row: Body, manifest: Manifest) -> bool:
    ref = manifest.ref
    said = ((row.get("kind"), ref.kind), (row.get("group") or "", ref.group))
    if not all(glob(text(pattern), value) for pattern, value in said):
        return False
    return text(row.get("name")) in ("", ref.name) and text(row.get("namespace")) in ("", ref.namespace)


def _healer(graph: Graph, manifest: Manifest) -> Application | None:
    return next((each for each in graph.deliveries.owners.get(id(manifest), ()) if each.automated is not None), None)


def replicas_with_scaler(graph: Graph) -> Iterator[Finding]:
    """DRF101: Git sets the replicas of something that an autoscaler scales."""
    for scaler in graph.kind(*_SCALERS):
        for reference in references(scaler):
            if reference.path != "spec.scaleTargetRef.name":
                continue
            target = graph.get(reference.target)
            if target is None or mapping(target.body.get("spec")).get("replicas") is None:
                continue
            if _ignored(graph, target, "/spec/replicas"):
                continue
            owner = _healer(graph, target)
            who = f"Application {owner.name}" if owner else "every apply"
            message = f"{who} sets the replicas that {scaler.ref} scales, and undoes its work"
            fix = "leave spec.replicas out"
            # Who heals sets them back at every look, not only with the next apply.
            severity = Severity.ERROR if owner and owner.self_heals else Severity.WARNING
            yield say("DRF101", target, message, "spec.replicas", fix, severity)


def suspended_by_kueue(graph: Graph) -> Iterator[Finding]:
    """DRF102: an Application that heals itself holds a job that Kueue suspends and starts."""
    for kind, pointers in table("drift")["queued"]["kinds"].items():
        pointer = pointers[0]
        for manifest in graph.kind(kind):
            owner = _healer(graph, manifest)
            if _QUEUE not in labels_of(manifest.body) or owner is None or not owner.self_heals:
                continue
            there = list(walk(manifest.body, tuple(pointer.strip("/").split("/"))))
            if there and not _ignored(graph, manifest, pointer):
                path = pointer.strip("/").replace("/", ".")
                message = (
                    f"Application {owner.name} sets {path} back each time that Kueue changes it: "
                    "a job that never starts, or does not wait for quota"
                )
                fix = f"leave {path} out, or ignore {pointer} with RespectIgnoreDifferences=true"
                yield say("DRF102", manifest, message, path, fix)


def empty_ca_bundles(graph: Graph) -> Iterator[Finding]:
    """DRF103: Git holds a caBundle that a controller fills in."""
    for kind, steps in _BUNDLES.items():
        for manifest in graph.kind(kind):
            owner = _healer(graph, manifest)
            if owner is None or _ignored(graph, manifest, "/caBundle"):
                continue
            injected = any("inject" in key for key in annotations_of(manifest.body))
            for path, value, _ in walk(manifest.body, steps):
                if injected or value in ("", "Cg==", "\n"):
                    message = f"a controller writes this caBundle, and Application {owner.name} sets it back"
                    yield warn("DRF103", manifest, message, path, "leave caBundle out of Git")
                    break


def frozen_lists(graph: Graph) -> Iterator[Finding]:
    """WAV109: respecting an ignored path inside a list of a custom resource keeps the whole live list."""
    for application in graph.deliveries.applications:
        if "RespectIgnoreDifferences=true" not in application.options:
            continue
        for number, row in enumerate(application.ignored):
            paths = [text(path) for path in items(row.get("jqPathExpressions"))]
            inside = [path for path in paths if "[" in path.replace('["', "")]
            resource = graph.resources.kind(text(row.get("group")), text(row.get("kind")))
            if resource is not None and resource.builtin:
                continue
            if inside:
                message = (
                    f"RespectIgnoreDifferences keeps the whole live list around {inside[0]} of {row.get('kind')}: "
                    "changes to it in Git are not applied"
                )
                fix = "drop the option, or put the object into an Application of its own"
                where = f"spec.ignoreDifferences[{number}]"
                yield say("WAV109", application.manifest, message, where, fix)


def shifted_weights(graph: Graph) -> Iterator[Finding]:
    """DRF104: a canary shifts the weights of a route, and the Application sets them back."""
    routed = table("drift")["routed"]["jq"]
    for rollout in graph.kind("Rollout.argoproj.io"):
        for target in _routes(rollout):
            manifest = graph.get(target)
            if manifest is None or kind_of(manifest) not in routed:
                continue
            owner = _healer(graph, manifest)
            if owner is None or not owner.self_heals:
                continue
            rows = [row for row in owner.ignored if _row_takes(row, manifest)]
            odd = [text(p) for row in rows for p in items(row.get("jqPathExpressions")) if _SELECTS.search(text(p))]
            if odd:
                message = (
                    f"{odd[0]} selects by what Argo Rollouts writes, which Git does not hold: a lasting difference"
                )
                yield warn("DRF104", manifest, message, "spec", f"ignore {routed[kind_of(manifest)][0]}")
            elif not _ignored(graph, manifest, "/weight"):
                message = f"{rollout.ref} shifts the weights of this route; Application {owner.name} sets them back"
                yield say(
                    "DRF104", manifest, message, "spec", f"ignore {routed[kind_of(manifest)][0]} in the Application"
                )


def _routes(rollout: Manifest) -> Iterator[Ref]:
    strategy = mapping(mapping(mapping(rollout.body.get("spec")).get("strategy")).get("canary"))
    routing = mapping(strategy.get("trafficRouting"))
    istio = mapping(routing.get("istio"))
    plugin = mapping(mapping(routing.get("plugins")).get("argoproj-labs/gatewayAPI"))
    for service in [mapping(istio.get("virtualService")), *maps(istio.get("virtualServices"))]:
        if name := text(service.get("name")):
            yield Ref("networking.istio.io", "VirtualService", rollout.ref.namespace, name)
    where = text(plugin.get("namespace")) or rollout.ref.namespace
    for route in [{"name": plugin.get("httpRoute")}, *maps(plugin.get("httpRoutes"))]:
        if name := text(route.get("name")):
            yield Ref("gateway.networking.k8s.io", "HTTPRoute", where, name)


def quantities_rewritten(graph: Graph) -> Iterator[Finding]:
    """DRF105: an amount that Kueue's webhook writes in another form than Git: a lasting difference."""
    data = config(graph) or {}
    for kind in ("ClusterQueue", "Cohort"):
        if f"resource.customizations.knownTypeFields.kueue.x-k8s.io_{kind}" in data:
            continue
        for manifest in graph.kind(f"{kind}.kueue.x-k8s.io"):
            found = rewritten_amounts(manifest.body)
            owners = graph.deliveries.owners.get(id(manifest), ())
            if not found or any(_on_the_server(owner) for owner in owners):
                continue
            path, value, written = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            message = f"{value} is stored as {written}{more}; compared with Git, Argo CD shows a lasting difference"
            severity = Severity.WARNING if owners else Severity.NOTE
            yield say("DRF105", manifest, message, path, f"write {written}", severity)


def rewritten_amounts(body: Body) -> list[tuple[str, Any, str]]:
    """The amounts of a ClusterQueue or Cohort that the server keeps in another form: path, value, that form."""
    return [(path, value, written) for path, value in _amounts(body) if (written := _canonical(value))]


def _amounts(body: Body) -> Iterator[tuple[str, Any]]:
    for path, value, _ in walk(body, ("spec", "resourceGroups", "[]", "flavors", "[]", "resources", "[]")):
        for key in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            if key in mapping(value):
                yield f"{path}.{key}", value[key]


def _canonical(value: object) -> str:
    """The form in which the server keeps an amount, "" where it is the same, or no amount at all."""
    if placeholder(value) or isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    try:
        quantity = read_quantity(value)
        written = format_quantity(quantity.value, quantity.form)
    except QuantityError:
        return ""
    return "" if written == str(value) else written


def deprecated_forms(graph: Graph) -> Iterator[Finding]:
    """DRF106: a form that a webhook converts to another one, so that Git never agrees with the cluster."""
    for row in table("drift")["converted"]:
        for manifest in graph.kind(row["kind"]):
            for path, value, _ in walk(manifest.body, tuple(row["at"].split("."))):
                old = [name for name in mapping(value) if name in row["fields"]]
                if old:
                    message = f"{row['by']} rewrites {path}.{old[0]}: {row['to']}; Argo CD shows a lasting difference"
                    yield warn("DRF106", manifest, message, f"{path}.{old[0]}", row["fix"].format(name=old[0]))


def defaults_in_lists(graph: Graph) -> Iterator[Finding]:
    """DRF107: fields that the server fills in inside a list of a custom resource, which the old comparison sees."""
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = table("drift")["defaulted"]
    for kind, fields in rows.items():
        for manifest in graph.kind(kind):
            owner = _healer(graph, manifest)
            if owner is None or _on_the_server(owner):
                continue
            places = ((row["field"], value) for row in fields for _, value, _ in walk(manifest.body, tuple(row["at"])))
            missing = sorted({name for name, value in places if name not in mapping(value)})
            if missing and not _ignored(graph, manifest, f"/{missing[0]}"):
                message = (
                    f"the server fills in {', '.join(missing)} inside a list; compared without the server's help "
                    f"Application {owner.name} is never in sync"
                )
                fix = "write the defaults, or set ServerSideApply=true (compared with a dry run on the server)"
                yield warn("DRF107", manifest, message, "spec", fix)


def _on_the_server(application: Application) -> bool:
    """Whether Argo CD compares by a dry run on the server: since 3.6 with server-side apply, or when asked to."""
    compare = annotations_of(application.manifest.body).get("argocd.argoproj.io/compare-options", "")
    if "ServerSideDiff=false" in compare:
        return False
    return "ServerSideApply=true" in application.options or "ServerSideDiff=true" in compare


RULES = (
    replicas_with_scaler,
    suspended_by_kueue,
    empty_ca_bundles,
    shifted_weights,
    quantities_rewritten,
    deprecated_forms,
    defaults_in_lists,
)
TREE = (frozen_lists,)
