"""Devices through Dynamic Resource Allocation: whether Kueue counts them, accepts the claim, and the claim can be met.

Sources: kueue v0.17.0 pkg/dra/{claims,mapper}.go, pkg/controller/core/workload_controller.go; kubernetes v1.35.4
pkg/apis/resource/validation, pkg/registry/resource/resourceclaim/strategy.go; NVIDIA k8s-dra-driver-gpu v25.12.0
deployments/helm templates (DeviceClasses) and cmd/gpu-kubelet-plugin/deviceinfo.go (attributes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from blueprint.admission.podsets import QUEUE_LABEL
from blueprint.admission.reasons import Verdict
from blueprint.catalog.gpus import gpus
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph, kind_of, labels_of
from blueprint.check.kueue import JOBS, Kueue, kueue
from blueprint.check.machines import GPU
from blueprint.check.pods import PodTemplate, containers
from blueprint.check.rules.kueue_paths import closest
from blueprint.check.rules.say import note, one_of, say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

GROUP = "resource.k8s.io"
TEMPLATE, CLAIM, CLASS = (f"{kind}.{GROUP}" for kind in ("ResourceClaimTemplate", "ResourceClaim", "DeviceClass"))
_ADMIN = "resource.kubernetes.io/admin-access"


def missing_claims(graph: Graph) -> Iterator[Finding]:
    """KQ511: a pod names a claim or a template that is not there, among its peers."""
    for manifest, pod in graph.pods:
        for index, row in enumerate(maps(pod.spec.get("resourceClaims"))):
            for field, kind in (("resourceClaimTemplateName", TEMPLATE), ("resourceClaimName", CLAIM)):
                name = known(row.get(field))
                peers = [each.ref.name for each in graph.within(manifest.ref.namespace, kind)]
                if name and peers and name not in peers and graph.closed(kind):
                    message = f"there is no {kind.partition('.')[0]} {name} in {manifest.ref.namespace}: the pod waits"
                    path = f"{pod.spec_path}.resourceClaims[{index}].{field}"
                    yield warn("KQ511", manifest, message, path, closest(name, peers) or one_of(peers))


def missing_requests(graph: Graph) -> Iterator[Finding]:
    """KQ506: a container takes a request that its claim does not have."""
    templates = {(each.ref.namespace, each.ref.name): each for each in graph.kind(TEMPLATE)}
    for manifest, pod in graph.pods if templates else ():
        for row in maps(pod.spec.get("resourceClaims")):
            claim = templates.get((manifest.ref.namespace, text(row.get("resourceClaimTemplateName"))))
            names = [text(request.get("name")) for _, request, _ in requests(claim)] if claim else []
            for path, container in containers(pod.spec) if names else ():
                for index, taken in enumerate(maps(mapping(container.get("resources")).get("claims"))):
                    asked = known(taken.get("request"))
                    if taken.get("name") == row.get("name") and asked and asked.partition("/")[0] not in names:
                        message = f"the claim {row.get('name')} has no request {asked}: the pod never starts"
                        where = f"{pod.spec_path}.{path}.resources.claims[{index}].request"
                        yield warn("KQ506", manifest, message, where, one_of(names))


def _devices(manifest: Manifest) -> tuple[str, Body]:
    """The path and the body of a claim's `devices`."""
    spec = mapping(manifest.body.get("spec"))
    if manifest.kind == "ResourceClaimTemplate":
        return "spec.spec.devices", mapping(mapping(spec.get("spec")).get("devices"))
    return "spec.devices", mapping(spec.get("devices"))


def requests(manifest: Manifest) -> Iterator[tuple[str, Body, Body]]:
    """Every request of a claim or template: its path, itself, and what it asks for exactly (also in old versions)."""
    path, body = _devices(manifest)
    for index, request in enumerate(maps(body.get("requests"))):
        yield f"{path}.requests[{index}]", request, mapping(request.get("exactly")) or request


def _users(graph: Graph, manifest: Manifest) -> list[tuple[Manifest, PodTemplate]]:
    """Pods that take a claim from a template."""
    return graph.derived(_by_template).get((manifest.ref.namespace, manifest.ref.name), [])


def _by_template(graph: Graph) -> dict[tuple[str, str], list[tuple[Manifest, PodTemplate]]]:
    found: dict[tuple[str, str], list[tuple[Manifest, PodTemplate]]] = {}
    for manifest, pod in graph.pods:
        for row in maps(pod.spec.get("resourceClaims")):
            name = text(row.get("resourceClaimTemplateName"))
            if name:
                found.setdefault((manifest.ref.namespace, name), []).append((manifest, pod))
    return found


def _queued(manifest: Manifest, pod: PodTemplate) -> bool:
    own = QUEUE_LABEL in labels_of(manifest.body)
    return kind_of(manifest) in JOBS and (own or QUEUE_LABEL in labels_of({"metadata": pod.metadata}))


def _counted(found: Kueue, manifest: Manifest) -> bool | None:
    """Whether Kueue looks at claims from a template; None where nothing in the tree tells."""
    users = _users(found.graph, manifest)
    if users:
        return any(_queued(*user) for user in users)
    mapped = {text(exact.get("deviceClassName")) for _, _, exact in requests(manifest)} & set(
        found.world.settings.devices
    )
    return True if mapped else None


def refused(graph: Graph) -> Iterator[Finding]:
    """KQ502: a claim template has what this version of Kueue does not accept: the Workload becomes inadmissible."""
    found = kueue(graph)
    settings = found.world.settings
    if settings.given and not settings.counts_devices:
        return  # claims are not looked at: KQ503
    for manifest in graph.kind(TEMPLATE):
        counted = _counted(found, manifest)
        if counted is False:
            continue
        for path, what in _unaccepted(found, manifest):
            message = f"Kueue {found.version} does not accept {what}: a job with this claim is inadmissible"
            fix = "put the selector into a DeviceClass of its own, mapped one to one"
            if counted:
                yield say("KQ502", manifest, message, path, fix if "selectors" in what else "leave it out")
            elif path.endswith(".constraints"):
                yield note("KQ502", manifest, f"{message}, if it is queued", path, "")


def _unaccepted(found: Kueue, manifest: Manifest) -> Iterator[tuple[str, str]]:
    settings = found.world.settings
    path, body = _devices(manifest)
    if body.get("constraints") and not settings.behaves("dra-constraints"):
        yield f"{path}.constraints", "constraints between requests"
    if body.get("config") and not settings.behaves("dra-config"):
        yield f"{path}.config", "configuration of devices"
    with_selectors = []
    for place, request, exact in requests(manifest):
        if "firstAvailable" in request:
            yield f"{place}.firstAvailable", "firstAvailable"
        if exact.get("selectors") and not settings.behaves("dra-selectors"):
            with_selectors.append(place)
        if exact.get("adminAccess") is True:
            yield f"{place}.exactly.adminAccess", "adminAccess"
        if text(exact.get("allocationMode")) not in ("", "ExactCount"):
            yield f"{place}.exactly.allocationMode", f"allocationMode {exact['allocationMode']}"
    if with_selectors:
        yield f"{with_selectors[0]}.exactly.selectors", "selectors of a request"


def direct_claims(graph: Graph) -> Iterator[Finding]:
    """KQ502: pods of a queued job name a ResourceClaim, or a template that is not there."""
    found = kueue(graph)
    for judged in found.judged:
        for reason in judged.reasons:
            missing = reason.object is not None and reason.object.kind == "ResourceClaimTemplate"
            if reason.code != "KQ502" or reason.verdict is not Verdict.NEVER:
                continue
            if reason.object is None and "directly" in reason.message:
                yield say("KQ502", judged.manifest, reason.message, "spec", "use a ResourceClaimTemplate")
            elif missing and reason.message.endswith("does not exist") and graph.closed(TEMPLATE):
                names = [each.ref.name for each in graph.kind(TEMPLATE)]
                fix = closest(reason.object.name if reason.object else "", names)
                yield say("KQ502", judged.manifest, f"{reason.message}: the Workload is inadmissible", "spec", fix)
            break


def unmapped(graph: Graph) -> Iterator[Finding]:
    """KQ501: a queued job claims devices of a class that the configuration does not map to a resource."""
    for judged in kueue(graph).judged:
        for reason in judged.reasons:
            if reason.code == "KQ501" and kueue(graph).world.settings.given:
                fix = "map the DeviceClass in resources.deviceClassMappings, and cover the resource in the queue"
                message = f"{reason.message}: the Workload is inadmissible"
                yield say("KQ501", judged.manifest, message, "spec", fix)
                break


def not_counted(graph: Graph) -> Iterator[Finding]:
    """KQ503: the gate is closed, so devices of claims are taken beside all quota."""
    found = kueue(graph)
    if not found.world.settings.given:
        return
    for judged in found.judged:
        if any(reason.code == "KQ503" for reason in judged.reasons):
            count = sum(each.count for each in judged.job.podsets)
            message = (
                f"the feature gate DynamicResourceAllocation of Kueue {found.version} is closed: the claims of "
                f"{count} pods count against no quota"
            )
            fix = "open the gate, map the DeviceClass in resources.deviceClassMappings, cover the resource in the queue"
            yield say("KQ503", judged.manifest, message, "spec", fix)


def unused_claims(graph: Graph) -> Iterator[Finding]:
    """KQ506: a pod claims a device, and none of its containers gets it."""
    for manifest, pod in graph.pods:
        claims = [text(row.get("name")) for row in maps(pod.spec.get("resourceClaims"))]
        if not claims:
            continue
        given = {
            text(row.get("name"))
            for _, container in containers(pod.spec)
            for row in maps(mapping(container.get("resources")).get("claims"))
        }
        given |= {text(row.get("name")) for row in maps(mapping(pod.spec.get("resources")).get("claims"))}
        for index, name in enumerate(claims):
            if name and name not in given:
                message = f"the pod claims {name}, and no container lists it in resources.claims: none gets the device"
                path = f"{pod.spec_path}.resourceClaims[{index}]"
                yield say("KQ506", manifest, message, path, f"add resources.claims: [{{name: {name}}}] to a container")


def admin_access(graph: Graph) -> Iterator[Finding]:
    """KQ507: adminAccess in a namespace that is not labelled for it: the API server refuses the claim."""
    for manifest in graph.kind(TEMPLATE, CLAIM):
        labels = graph.labels_of_namespace(manifest.ref.namespace)
        if labels is None or labels.get(_ADMIN) == "true":
            continue
        for path, _, exact in requests(manifest):
            if exact.get("adminAccess") is True:
                message = f'adminAccess needs the label {_ADMIN}: "true" on namespace {manifest.ref.namespace}'
                yield say("KQ507", manifest, message, path, "leave adminAccess to monitoring in a labelled namespace")


_SELECTED = re.compile(r"device\.(?:attributes|capacity)\s*\[\s*['\"]([^'\"]+)['\"]\s*\]")
_DRIVER = re.compile(r"device\.driver\s*==\s*['\"]([^'\"]+)['\"]|['\"]([^'\"]+)['\"]\s*==\s*device\.driver")
_PRODUCT = re.compile(r"\bproductName\s*(?:==\s*|\.(?:matches|startsWith|contains)\(\s*)['\"]([^'\"]+)['\"]")


def expressions(graph: Graph) -> Iterator[Finding]:
    """KQ508: a selector that no device of NVIDIA's driver satisfies: a class for the driver, a name with dashes."""
    classes = frozenset(table("kueue_rules")["nvidia_device_classes"]["classes"])
    products = {name for each in gpus() for name in each.products}
    for manifest in graph.kind(CLASS, TEMPLATE, CLAIM):
        for path, expression in _expressions(manifest):
            domains = [*_SELECTED.findall(expression), *(one or two for one, two in _DRIVER.findall(expression))]
            wrong = [name for name in domains if name in classes]
            if wrong:
                message = (
                    f"{wrong[0]} is the name of a DeviceClass; driver and attribute domain are gpu.nvidia.com: this "
                    "never matches a device"
                )
                yield say("KQ508", manifest, message, path, "gpu.nvidia.com, and compare the attribute type")
            for name in _PRODUCT.findall(expression):
                if name in products and "-" in name and " " not in name:
                    message = (
                        f"productName {name} is the form of the node label; the driver gives the name of the GPU with "
                        "blanks: this never matches a device"
                    )
                    yield warn("KQ508", manifest, message, path, f"did you mean {name.replace('-', ' ')}?")


def _expressions(manifest: Manifest) -> Iterator[tuple[str, str]]:
    rows = [("spec", mapping(manifest.body.get("spec")))] if manifest.kind == "DeviceClass" else []
    rows += [
        (f"{path}.exactly" if "exactly" in request else path, exact) for path, request, exact in requests(manifest)
    ]
    for path, body in rows:
        for index, selector in enumerate(maps(body.get("selectors"))):
            expression = text(mapping(selector.get("cel")).get("expression"))
            if expression and not placeholder(expression):
                yield f"{path}.selectors[{index}].cel.expression", expression


def uncovered_mapping(graph: Graph) -> Iterator[Finding]:
    """KQ509: the resource of a device mapping is in no queue: every job with such a claim is refused."""
    found = kueue(graph)
    covered = {name for queue in found.world.queues.values() for group in queue.groups for name in group.covered}
    mapped = dict.fromkeys(found.world.settings.devices.values())
    if not covered or found.open or not found.world.settings.counts_devices:
        return
    for each in found.configurations[:1]:
        for name in mapped:
            if name not in covered and not placeholder(name):
                message = (
                    f"deviceClassMappings charge {name}, and no ClusterQueue covers it: such jobs are never admitted"
                )
                path = each.at("resources.deviceClassMappings")
                yield warn("KQ509", each.manifest, message, path, closest(name, sorted(covered)) or f"cover {name}")


def unknown_classes(graph: Graph) -> Iterator[Finding]:
    """KQ510: a claim names a DeviceClass that is not there, among its peers."""
    shipped = frozenset(table("kueue_rules")["nvidia_device_classes"]["classes"])
    names = [each.ref.name for each in graph.kind(CLASS)]
    if not graph.closed(CLASS):
        return
    for manifest in graph.kind(TEMPLATE, CLAIM):
        for path, _, exact in requests(manifest):
            name = known(exact.get("deviceClassName"))
            near = closest(name, names) if name else ""
            if name and name not in names and name not in shipped and near:
                message = f"there is no DeviceClass {name}: pods with this claim stay Pending"
                yield warn("KQ510", manifest, message, f"{path}.exactly.deviceClassName", near)


def advertised_twice(graph: Graph) -> Iterator[Finding]:
    """KQ504: NVIDIA's device plugin and its DRA driver may both run on a node, and give the same GPUs away twice."""
    rows = table("kueue_rules")["gpu_advertisers"]
    plugins, drivers = (_daemons(graph, rows[name]) for name in ("device_plugin", "dra_driver"))
    for driver, mine in drivers:
        for plugin, other in plugins:
            if driver.ref != plugin.ref and not _apart(mine.spec, other.spec):
                message = (
                    f"{plugin.ref} may run on the same nodes, and both hand out the same GPUs: one pod gets a GPU as "
                    f"{GPU}, another by a claim"
                )
                fix = "keep the two on different nodes by a node label, or switch one of them off"
                yield say("KQ504", driver, message, mine.spec_path, fix)
                break


def _daemons(graph: Graph, ends: list[str]) -> list[tuple[Manifest, PodTemplate]]:
    found = []
    for manifest, pod in graph.pods:
        if manifest.kind == "DaemonSet":
            images = [text(body.get("image")).partition("@")[0] for _, body in containers(pod.spec)]
            names = [name.rpartition("/")[2].partition(":")[0] for name in images]
            commands = [str(word) for _, body in containers(pod.spec) for word in items(body.get("command"))]
            if any(name in ends for name in names) or any(word.rpartition("/")[2] in ends for word in commands):
                found.append((manifest, pod))
    return found


def _apart(one: Body, other: Body) -> bool:
    """Whether node selectors or required affinities can never select the same node."""
    left, right = _wanted(one), _wanted(other)
    return any(not left[key] & right[key] for key in left.keys() & right.keys()) or any(
        key in _absent(theirs) for mine, theirs in ((left, other), (right, one)) for key in mine
    )


def _wanted(spec: Body) -> dict[str, set[str]]:
    """Label values that a pod insists on, from its selector and the terms that all have them."""
    found = {str(key): {text(value)} for key, value in mapping(spec.get("nodeSelector")).items()}
    terms = _terms(spec)
    for row in maps(terms[0].get("matchExpressions")) if len(terms) == 1 else ():
        if row.get("operator") == "In":
            found[text(row.get("key"))] = set(map(text, items(row.get("values"))))
    return found


def _absent(spec: Body) -> set[str]:
    terms = _terms(spec)
    rows = maps(terms[0].get("matchExpressions")) if len(terms) == 1 else []
    return {text(row.get("key")) for row in rows if row.get("operator") == "DoesNotExist"}


def _terms(spec: Body) -> list[Body]:
    node = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    return maps(mapping(node.get("requiredDuringSchedulingIgnoredDuringExecution")).get("nodeSelectorTerms"))


RULES = (
    refused,
    direct_claims,
    unmapped,
    not_counted,
    unused_claims,
    missing_claims,
    missing_requests,
    admin_access,
    expressions,
    uncovered_mapping,
    unknown_classes,
    advertised_twice,
)
TREE = ()
