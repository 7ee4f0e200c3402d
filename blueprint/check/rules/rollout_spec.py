"""Rollouts that the controller calls InvalidSpec, and canaries that nothing can stop.

The API server accepts them: Argo Rollouts has no webhook, the controller writes a condition and does nothing more.
Sources: argo-rollouts v1.10.2 pkg/apis/rollouts/validation/validation.go and validation_references.go,
rollout/templateref.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph, selects
from blueprint.check.rollouts import HASH_LABEL, Rollout, hosts, rollouts, seconds
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import items, known, mapping, maps, number, placeholder, text
from blueprint.finding import Confidence, Finding, Ref, Severity

_STEPS = (
    "experiment",
    "pause",
    "setWeight",
    "analysis",
    "setCanaryScale",
    "setHeaderRoute",
    "setMirrorRoute",
    "plugin",
)
_APART = ("setWeight", "pause", "experiment", "analysis")
"""Actions of which a step may have one; the others go with each other."""
_CANARY = "spec.strategy.canary"
_PAIRED = ("alb", "smi", "apisix", "ambassador", "nginx", "appMesh", "traefik")
_REFERABLE = frozenset({("", "PodTemplate"), ("apps", "Deployment"), ("apps", "ReplicaSet")})


def strategies(graph: Graph) -> Iterator[Finding]:
    """ANA301: neither or both of canary and blueGreen, or no pod template, or two."""
    for rollout in rollouts(graph):
        spec, manifest = rollout.spec, rollout.manifest
        if not spec.keys() & {"template", "workloadRef", "selector"}:
            # Where it is a patch of another, it is right as it is.
            message = "there are no pods: neither template nor workloadRef; as it stands the controller refuses it"
            yield say("ANA301", manifest, message, "spec", "", Severity.WARNING, Confidence.LIKELY)
            continue
        given = [name for name in ("canary", "blueGreen") if isinstance(rollout.strategy.get(name), dict)]
        if len(given) != 1 and not (rollout.strategy.keys() and not given and None in rollout.strategy.values()):
            message = (
                "there is neither canary nor blueGreen" if not given else "canary and blueGreen exclude each other"
            )
            yield say("ANA301", manifest, message, "spec.strategy", "give one strategy")
        ref = mapping(spec.get("workloadRef"))
        if ref and mapping(spec.get("template")):
            yield say(
                "ANA301", manifest, "template and workloadRef exclude each other", "spec.template", "keep one of them"
            )
        elif not ref and not mapping(spec.get("template")):
            yield say("ANA301", manifest, "there is no pod template", "spec.template", "give template or workloadRef")
        if not ref and not mapping(spec.get("selector")):
            yield say("ANA301", manifest, "there is no selector", "spec.selector", "selector: {matchLabels: …}")
        selector = mapping(mapping(spec.get("selector")).get("matchLabels"))
        if not ref and selector and not selects(spec["selector"], rollout.labels):
            message = "the selector does not take the labels of the pod template: the controller refuses the Rollout"
            yield say("ANA312", manifest, message, "spec.selector", "the labels of the template")
        deadline, ready = number(spec.get("progressDeadlineSeconds"), 600), number(spec.get("minReadySeconds"), 0)
        if deadline is not None and ready is not None and deadline <= ready:
            message = f"progressDeadlineSeconds {deadline} is not above minReadySeconds {ready}"
            yield say("ANA301", manifest, message, "spec.progressDeadlineSeconds", f"more than {ready}")
        if ref and (group_kind := _group_kind(ref)) not in _REFERABLE and group_kind[1]:
            message = f"a Rollout cannot take its pods from a {group_kind[1]}"
            fix = (
                "a Deployment, a ReplicaSet or a PodTemplate; groups of pods need two workloads and a gateway's weights"
            )
            yield say("ANA301", manifest, message, "spec.workloadRef", fix)


def _group_kind(ref: dict[str, object]) -> tuple[str, str]:
    group, slash, _ = known(ref.get("apiVersion")).partition("/")
    return (group if slash else "", known(ref.get("kind")))


def canary_fields(graph: Graph) -> Iterator[Finding]:
    """ANA302: fields of a canary that need or exclude one another."""
    for rollout in rollouts(graph):
        for path, problem, fix in _canary_problems(rollout):
            yield say("ANA302", rollout.manifest, problem, f"{_CANARY}{path}", fix)
        blue = mapping(rollout.strategy.get("blueGreen"))
        if blue and blue.get("activeService") == blue.get("previewService"):
            message = "activeService and previewService are the same: two Services are needed"
            yield say(
                "ANA302", rollout.manifest, message, "spec.strategy.blueGreen.previewService", "name another Service"
            )


def _canary_problems(rollout: Rollout) -> Iterator[tuple[str, str, str]]:
    canary, routing = rollout.canary, rollout.routing
    stable, new = hosts(rollout)
    if stable and stable == new:
        yield ".canaryService", "canaryService and stableService are the same", "name two Services"
    routers = [name for name in _PAIRED if name in routing]
    istio = mapping(routing.get("istio"))
    paired = bool(routers) or ("istio" in routing and not istio.get("destinationRule"))
    for name in ("stableService", "canaryService"):
        if paired and "pingPong" not in canary and not canary.get(name):
            yield f".{name}", f"{name} is needed by {(routers or ['istio'])[0]}", "name the Service"
    if "plugins" in routing and not (stable and new) and "pingPong" not in canary:
        yield "", "the traffic router has no stableService and canaryService to shift between", "name the two Services"
    if "istio" in routing and bool(istio.get("virtualService")) is bool(istio.get("virtualServices")):
        yield (
            ".trafficRouting.istio",
            "virtualService or virtualServices, exactly one of the two",
            "name the VirtualService",
        )
    if not routing:
        for name in ("scaleDownDelaySeconds", "dynamicStableScale"):
            if canary.get(name):
                yield f".{name}", f"{name} needs trafficRouting", "leave it out, or route traffic"
    elif canary.get("dynamicStableScale") is True and canary.get("scaleDownDelaySeconds") is not None:
        yield ".dynamicStableScale", "dynamicStableScale excludes scaleDownDelaySeconds", "keep one of them"
    if {_share(canary.get("maxSurge")), _share(canary.get("maxUnavailable"))} == {0}:
        yield ".maxSurge", "maxSurge and maxUnavailable are both 0: nothing can be replaced", "let one be 1"


def _share(value: object) -> int | None:
    return int(text(value).rstrip("%")) if text(value).rstrip("%").isdigit() else number(value)


def steps(graph: Graph) -> Iterator[Finding]:
    """ANA303: steps with no or several actions, weights out of range, and actions that need a traffic router."""
    for rollout in rollouts(graph):
        routing, most = rollout.routing, number(rollout.routing.get("maxTrafficWeight"), 100) or 100
        managed = {text(row.get("name")) for row in maps(routing.get("managedRoutes"))}
        for index, step in enumerate(rollout.steps):
            path = f"{_CANARY}.steps[{index}]"
            actions = [name for name in _STEPS if name in step]
            apart = [name for name in _APART if name in step]
            if not actions or len(apart) > 1:
                message = "the step does nothing" if not actions else f"the step does {' and '.join(apart)}"
                yield say("ANA303", rollout.manifest, message, path, "one action in each step")
            weight = number(step.get("setWeight"))
            if weight is not None and not 0 <= weight <= most:
                yield say(
                    "ANA303",
                    rollout.manifest,
                    f"setWeight {weight} is not in 0 to {most}",
                    f"{path}.setWeight",
                    f"at most {most}",
                )
            for m, template in enumerate(maps(mapping(step.get("experiment")).get("templates"))):
                if template.get("weight") is not None and not routing.keys() & {"alb", "smi", "istio", "plugins"}:
                    message = "a weight in an experiment needs a router of alb, smi, istio or a plugin"
                    at = f"{path}.experiment.templates[{m}].weight"
                    yield say("ANA303", rollout.manifest, message, at, "leave the weight out")
            for name in ("setCanaryScale", "setHeaderRoute", "setMirrorRoute"):
                if name not in step:
                    continue
                if not routing:
                    yield say(
                        "ANA303", rollout.manifest, f"{name} needs trafficRouting", f"{path}.{name}", "route traffic"
                    )
                elif name != "setCanaryScale" and known(mapping(step[name]).get("name")) not in managed:
                    message = f"{name} names {text(mapping(step[name]).get('name'))!r}, which is none of managedRoutes"
                    yield say(
                        "ANA303", rollout.manifest, message, f"{path}.{name}", "list it in trafficRouting.managedRoutes"
                    )


def services(graph: Graph) -> Iterator[Finding]:
    """ANA304, ANA305: Services of a Rollout that are not there, or that do not select its pods."""
    for rollout in rollouts(graph):
        namespace, blue = rollout.manifest.ref.namespace, mapping(rollout.strategy.get("blueGreen"))
        names = {f"{_CANARY}.{key}": known(rollout.canary.get(key)) for key in ("stableService", "canaryService")}
        pair = mapping(rollout.canary.get("pingPong"))
        names |= {f"{_CANARY}.pingPong.{key}": known(pair.get(key)) for key in ("pingService", "pongService")}
        names |= {f"spec.strategy.blueGreen.{key}": known(blue.get(key)) for key in ("activeService", "previewService")}
        for path, name in names.items():
            service = graph.nearest(Ref("", "Service", namespace, name), rollout.manifest) if name else None
            if service is None:
                if name and graph.within(namespace, "Service") and graph.closed("Service"):
                    message = f"there is no Service {name} here; the Rollout stays InvalidSpec"
                    yield say("ANA304", rollout.manifest, message, path, "add the Service")
                continue
            labels = rollout.labels
            if not labels:
                continue
            for key, value in mapping(mapping(service.body.get("spec")).get("selector")).items():
                if key != HASH_LABEL and labels.get(str(key)) != value and not placeholder(value):
                    message = f"the Service {name} selects {key}={value}, which the pods of the Rollout do not have"
                    yield say("ANA305", rollout.manifest, message, path, "select labels of the pod template")
                    break


def doubled_pods(graph: Graph) -> Iterator[Finding]:
    """ANA306: the Deployment that a Rollout takes its pods from keeps running its own."""
    for rollout in rollouts(graph):
        ref, workload = mapping(rollout.spec.get("workloadRef")), rollout.workload
        if workload is None or workload.kind != "Deployment" or ref.get("scaleDown") in ("onsuccess", "progressively"):
            continue
        replicas = mapping(workload.body.get("spec")).get("replicas")
        if replicas != 0 and not placeholder(replicas):
            count = number(replicas, 1)
            message = f"the Deployment {workload.ref.name} keeps its {count} pods beside those of the Rollout"
            fix = "replicas: 0 in the Deployment, or workloadRef.scaleDown: onsuccess"
            yield say("ANA306", rollout.manifest, message, "spec.workloadRef", fix)


def unwatched_canaries(graph: Graph) -> Iterator[Finding]:
    """ANA307: a canary that goes on by the clock, with nothing that could stop it."""
    for rollout in rollouts(graph):
        weights = [step for step in rollout.steps if number(step.get("setWeight")) not in (None, 100)]
        held = any("pause" in step and not mapping(step["pause"]).get("duration") for step in rollout.steps)
        judged = any(step.keys() & {"analysis", "experiment", "plugin"} for step in rollout.steps)
        if weights and not held and not judged and not rollout.canary.get("analysis"):
            message = "the canary goes on by the clock alone: only a pod that does not get ready can stop it"
            fix = "an analysis in the steps or in the background, or a pause without duration"
            yield note("ANA307", rollout.manifest, message, f"{_CANARY}.steps", fix)


def weights_without_router(graph: Graph) -> Iterator[Finding]:
    """ANA308: without a traffic router a weight is a number of pods, and there are too few of them for it."""
    for rollout in rollouts(graph):
        replicas = number(rollout.spec.get("replicas"))
        if rollout.routing or not replicas:
            continue
        for index, step in enumerate(rollout.steps):
            weight = number(step.get("setWeight"))
            if not weight or weight >= 100:
                continue
            given = max(1, round(replicas * weight / 100)) / replicas
            if abs(given - weight / 100) > _ROUGH:
                message = f"{replicas} pods cannot share traffic at {weight} %: without a router they do at {given:.0%}"
                path = f"{_CANARY}.steps[{index}].setWeight"
                yield note("ANA308", rollout.manifest, message, path, "route traffic, or more replicas")
                break


def falling_weights(graph: Graph) -> Iterator[Finding]:
    """ANA313: a step gives the canary less traffic than the step before, and not none at all."""
    for rollout in rollouts(graph):
        before = 0
        for index, step in enumerate(rollout.steps):
            weight = number(step.get("setWeight"))
            if weight is None:
                before = 0 if "setWeight" in step else before
                continue
            if 0 < weight < before:
                message = f"setWeight falls from {before} to {weight}: the canary loses traffic that it had"
                path = f"{_CANARY}.steps[{index}].setWeight"
                yield warn("ANA313", rollout.manifest, message, path, "weights that rise from step to step")
            before = weight


_ROUGH = 0.2
"""How far the share of pods may be from the weight before it is another experiment."""


def route_destinations(graph: Graph) -> Iterator[Finding]:
    """ANA309: the VirtualService lacks the route or the destinations between which a Rollout shifts traffic."""
    for rollout in rollouts(graph):
        istio = mapping(rollout.routing.get("istio"))
        rows = (
            [mapping(istio.get("virtualService"))]
            if istio.get("virtualService")
            else maps(istio.get("virtualServices"))
        )
        for row in rows:
            name, dot, namespace = known(row.get("name")).partition(".")
            ref = Ref(
                "networking.istio.io", "VirtualService", namespace if dot else rollout.manifest.ref.namespace, name
            )
            service = graph.nearest(ref, rollout.manifest)
            path = f"{_CANARY}.trafficRouting.istio"
            if service is None:
                if name and graph.closed("VirtualService.networking.istio.io"):
                    yield say("ANA309", rollout.manifest, f"there is no VirtualService {name}", path, "add it")
                continue
            http = maps(mapping(service.body.get("spec")).get("http"))
            if not http:
                continue
            wanted = [known(each) for each in items(row.get("routes"))]
            there = {text(route.get("name")) for route in http}
            for each in wanted:
                if each and each not in there:
                    message = f"the VirtualService {name} has no route called {each}"
                    yield say("ANA309", rollout.manifest, message, path, f"name the route: {each}")
            routes = (
                [route for route in http if text(route.get("name")) in wanted]
                if wanted
                else http[:1]
                if len(http) == 1
                else []
            )
            for route in routes:
                yield from _destinations(rollout, mapping(istio.get("destinationRule")), route, name)


def _destinations(rollout: Rollout, rule: dict[str, object], route: dict[str, object], name: str) -> Iterator[Finding]:
    there = [mapping(each.get("destination")) for each in maps(route.get("route"))]
    stable, new = hosts(rollout)
    if "pingPong" in rollout.canary:
        return
    if rule:
        found = {text(each.get("subset")) for each in there}
        wanted = [known(rule.get("stableSubsetName")), known(rule.get("canarySubsetName"))]
        what = "subset"
    else:
        found = {text(each.get("host")).partition(".")[0] for each in there}
        wanted, what = [stable, new], "Service"
    for each in wanted:
        if each and each not in found:
            message = f"route {text(route.get('name'))!r} of VirtualService {name} does not lead to the {what} {each}"
            yield say(
                "ANA309",
                rollout.manifest,
                message,
                f"{_CANARY}.trafficRouting.istio",
                f"add it as a destination of weight {100 if each == wanted[0] else 0}",
            )


def short_pauses(graph: Graph) -> Iterator[Finding]:
    """ANA310: a pause that is no duration."""
    for rollout in rollouts(graph):
        for index, step in enumerate(rollout.steps):
            duration = mapping(step.get("pause")).get("duration")
            if duration is not None and not placeholder(duration) and seconds(duration) is None:
                message = f"{duration!r} is no duration: the Rollout does not get beyond this step"
                path = f"{_CANARY}.steps[{index}].pause.duration"
                yield say(
                    "ANA310",
                    rollout.manifest,
                    message,
                    path,
                    "a number of seconds, or text such as 5m",
                    confidence=Confidence.LIKELY,
                )


RULES = (
    strategies,
    canary_fields,
    steps,
    services,
    doubled_pods,
    unwatched_canaries,
    weights_without_router,
    falling_weights,
    route_destinations,
    short_pauses,
)
TREE = ()
