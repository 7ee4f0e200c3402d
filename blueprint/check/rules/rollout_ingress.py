"""Ingresses between which a Rollout shifts traffic: by nginx, by an ALB.

Sources: argo-rollouts v1.10.2 pkg/apis/rollouts/validation/validation_references.go (ValidateIngress,
ValidateRolloutNginxIngressesConfig), utils/ingress/ingress.go (HasRuleWithService).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph
from blueprint.check.rollouts import Rollout, hosts, rollouts
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.shapes import Body, known, mapping, maps, text, texts
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_INGRESS = "networking.k8s.io"
_AT = "spec.strategy.canary.trafficRouting"
_FIELDS = {"nginx": ("stableIngress", "stableIngresses"), "alb": ("ingress", "ingresses")}


def ingresses(graph: Graph) -> Iterator[Finding]:
    """ANA314: the Ingress of a canary has no path to the Service of the stable version."""
    for rollout in rollouts(graph):
        for router, (one, many) in _FIELDS.items():
            routing = mapping(rollout.routing.get(router))
            if router not in rollout.routing:
                continue
            single, several = known(routing.get(one)), [name for name in texts(routing.get(many)) if known(name)]
            if router == "nginx" and bool(routing.get(one)) == bool(routing.get(many)):
                message = f"exactly one of {one} and {many} must be given: the Rollout stays InvalidSpec"
                yield say("ANA314", rollout.manifest, message, f"{_AT}.nginx", f"keep {one}")
                continue
            service = _service(rollout, router, routing)
            if not service:
                continue
            for name, field in ((single, one), *((each, many) for each in several)):
                if name:
                    yield from _of_ingress(graph, rollout, name, service, f"{_AT}.{router}.{field}")


def _service(rollout: Rollout, router: str, routing: Body) -> str:
    if router == "alb" and routing.get("rootService"):
        return known(routing.get("rootService"))
    return "" if "pingPong" in rollout.canary else hosts(rollout)[0]


def _of_ingress(graph: Graph, rollout: Rollout, name: str, service: str, path: str) -> Iterator[Finding]:
    ref = Ref(_INGRESS, "Ingress", rollout.manifest.ref.namespace, name)
    ingress = graph.nearest(ref, rollout.manifest)
    if ingress is None:
        peers = graph.within(ref.namespace, f"Ingress.{_INGRESS}")
        if peers and graph.closed(f"Ingress.{_INGRESS}"):
            message = f"there is no Ingress {name} here: the Rollout stays InvalidSpec"
            yield warn("ANA314", rollout.manifest, message, path, one_of(sorted(each.ref.name for each in peers)))
        return
    there = list(_backends(ingress))
    if service not in there and not ingress.unknown and "" not in there:
        message = f"Ingress {name} has no path to the Service {service}: the Rollout stays InvalidSpec"
        leads = f"let a path lead to {service}" + (f", not to {there[0]}" if there else "")
        yield say("ANA314", rollout.manifest, message, path, leads)


def _backends(ingress: Manifest) -> Iterator[str]:
    """The Services of every path; "" for one that is not known."""
    for rule in maps(mapping(ingress.body.get("spec")).get("rules")):
        for path in maps(mapping(rule.get("http")).get("paths")):
            yield known(text(mapping(mapping(path.get("backend")).get("service")).get("name")))


RULES = (ingresses,)
TREE = ()
