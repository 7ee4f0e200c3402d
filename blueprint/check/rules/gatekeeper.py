"""Policies of Gatekeeper: constraints of no kind, actions that are none, and checks that answer yes when they fail.

Sources: gatekeeper v3.23.1 pkg/util/enforcement_action.go, pkg/webhook/policy.go, charts/gatekeeper;
frameworks/constraint pkg/externaldata/cache.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.check.graph import Graph, selects
from blueprint.check.matching import SYSTEM, kind_problem
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_TEMPLATE = "ConstraintTemplate.templates.gatekeeper.sh"
_PROVIDER = "Provider.externaldata.gatekeeper.sh"
_ACTIONS = ("deny", "warn", "dryrun", "scoped")
_POINTS = ("validation.gatekeeper.sh", "audit.gatekeeper.sh", "gator.gatekeeper.sh", "vap.k8s.io", "*")
_PINS = re.compile(r"issuer|subject|identit|signer|key|cert|trust|root", re.IGNORECASE)


def _constraints(graph: Graph) -> list[Manifest]:
    return graph.group("constraints.gatekeeper.sh")


def _kind(template: Manifest) -> str:
    crd = mapping(mapping(mapping(template.body.get("spec")).get("crd")).get("spec"))
    return text(mapping(crd.get("names")).get("kind"))


def _code(template: Manifest) -> Iterator[tuple[str, Body, Body]]:
    """Every program of a template with its engine (`Rego` for the old form too), its source and its target."""
    for target in maps(mapping(template.body.get("spec")).get("targets")):
        if target.get("rego"):
            yield "old", {"rego": target["rego"], "libs": target.get("libs")}, target
        for row in maps(target.get("code")):
            yield text(row.get("engine")), mapping(row.get("source")), target


def of_no_template(graph: Graph) -> Iterator[Finding]:
    """POL401: a constraint whose kind no template of the tree makes."""
    kinds = {_kind(template): template for template in graph.kind(_TEMPLATE)}
    if not graph.closed(_TEMPLATE):
        return
    for constraint in _constraints(graph):
        if constraint.kind not in kinds:
            close = get_close_matches(constraint.kind, kinds, 1, 0.8)
            sure = bool(close) or bool(graph.said_closed & {_TEMPLATE, "*"})
            fix = f"did you mean {close[0]}?" if close else "add the template"
            message = f"no ConstraintTemplate makes the kind {constraint.kind}: the API server refuses the constraint"
            severity = Severity.ERROR if sure else Severity.WARNING
            yield say("POL401", constraint, message, "kind", fix, severity, None if sure else Confidence.LIKELY)


def actions(graph: Graph) -> Iterator[Finding]:
    """POL402: an enforcement action or point that Gatekeeper does not know."""
    for constraint in _constraints(graph):
        spec = mapping(constraint.body.get("spec"))
        action = spec.get("enforcementAction")
        if isinstance(action, str) and action and action not in _ACTIONS and not placeholder(action):
            close = get_close_matches(action.lower(), _ACTIONS, 1)
            fix = f"did you mean {close[0]}?" if close else f"one of {', '.join(_ACTIONS)}"
            message = f"{action!r} is no enforcement action; Gatekeeper refuses the constraint"
            yield say("POL402", constraint, message, "spec.enforcementAction", fix)
        scoped = maps(spec.get("scopedEnforcementActions"))
        if action == "scoped" and not scoped:
            message = "the action is scoped, and no scopedEnforcementActions say where: nothing is enforced"
            yield say("POL402", constraint, message, "spec.enforcementAction", "list scopedEnforcementActions")
        if scoped and action != "scoped":
            message = "scopedEnforcementActions count only with enforcementAction: scoped"
            yield warn("POL402", constraint, message, "spec.scopedEnforcementActions", "enforcementAction: scoped")
        for index, row in enumerate(scoped if action == "scoped" else ()):
            names = [text(point.get("name")) for point in maps(row.get("enforcementPoints"))]
            wrong = [name for name in names if name not in _POINTS]
            if row.get("action") not in _ACTIONS[:3] or wrong:
                what = wrong[0] if wrong else row.get("action")
                message = (
                    f"{what!r} is no enforcement {'point' if wrong else 'action'}; Gatekeeper refuses the constraint"
                )
                yield say("POL402", constraint, message, f"spec.scopedEnforcementActions[{index}]", "correct it")


def kinds_that_are_none(graph: Graph) -> Iterator[Finding]:
    """POL101: a constraint about a kind that there is not."""
    for constraint in _constraints(graph):
        match = mapping(mapping(constraint.body.get("spec")).get("match"))
        for index, row in enumerate(maps(match.get("kinds"))):
            groups = [text(group) for group in items(row.get("apiGroups"))]
            for kind in map(text, items(row.get("kinds"))):
                found = [kind_problem(graph, group, kind) for group in groups if "*" not in group]
                if found and all(found) and len(found) == len(groups):
                    message = f"{found[0]}: the constraint never matches by it"
                    severity = Severity.ERROR if "did you mean" in message else Severity.WARNING
                    fix = "write the kind as in `kind:`"
                    yield say("POL101", constraint, message, f"spec.match.kinds[{index}]", fix, severity)


def two_programs(graph: Graph) -> Iterator[Finding]:
    """POL403: several programs in one template, of which only one runs."""
    for template in graph.kind(_TEMPLATE):
        for number, target in enumerate(maps(mapping(template.body.get("spec")).get("targets"))):
            engines = [text(row.get("engine")) for row in maps(target.get("code"))]
            path = f"spec.targets[{number}]"
            if target.get("rego") and "Rego" in engines:
                message = "rego beside code: the old field wins, and the program in code never runs"
                yield say("POL403", template, message, f"{path}.rego", "keep one of the two")
            elif "K8sNativeValidation" in engines and ("Rego" in engines or target.get("rego")):
                message = "CEL beside Rego: the CEL program runs, and the Rego one never does"
                yield warn("POL403", template, message, path, "keep one engine")


_V1 = re.compile(r"^\s*(?:\w+ contains .*\bif\b|\w+(?:\(.*\))? if \{|some \w+(?:, \w+)? in )", re.MULTILINE)


def new_rego_in_the_old_field(graph: Graph) -> Iterator[Finding]:
    """POL404: Rego v1 where Gatekeeper reads Rego v0."""
    for template in graph.kind(_TEMPLATE):
        for engine, source, _ in _code(template):
            program = text(source.get("rego"))
            old = engine == "old" or (engine == "Rego" and source.get("version") != "v1")
            if old and _V1.search(program) and "import rego.v1" not in program and "future.keywords" not in program:
                message = "the program is Rego v1 and is read as v0: it does not compile, and nothing is enforced"
                fix = 'put it under code, with engine: Rego and source.version: "v1"'
                yield say("POL404", template, message, "spec.targets", fix)


def providers(graph: Graph) -> Iterator[Finding]:
    """POL405: a provider that Gatekeeper does not take."""
    for provider in graph.kind(_PROVIDER):
        spec = mapping(provider.body.get("spec"))
        url = known(spec.get("url"))
        if url and not url.startswith("https://"):
            message = f"{url} is not https: Gatekeeper takes no other provider"
            yield say("POL405", provider, message, "spec.url", "serve it with https, and give caBundle")
        elif url and not spec.get("caBundle") and not any("inject" in key for key in _notes(provider)):
            message = "a provider with https needs a caBundle; Gatekeeper does not take it without"
            yield say("POL405", provider, message, "spec", "give the CA as caBundle")


def _notes(manifest: Manifest) -> Body:
    return mapping(mapping(manifest.body.get("metadata")).get("annotations"))


def anybody_signs(graph: Graph) -> Iterator[Finding]:
    """POL406: a constraint that asks a provider whether an image is signed, and not by whom."""
    for constraint in _constraints(graph):
        parameters = mapping(mapping(constraint.body.get("spec")).get("parameters"))
        provider = text(parameters.get("provider"))
        if not provider or placeholder(provider) or "ratify" in provider:
            continue
        if any(_PINS.search(str(key)) for key in parameters if key != "provider"):
            continue
        demo = provider == "cosign-gatekeeper-provider"
        if not demo and not ("sign" in provider or "sign" in constraint.kind.lower()):
            continue
        why = "; this provider is a demonstration, and has no way to name signers" if demo else ""
        message = f"no issuer, subject or key is named: an image signed by anybody passes{why}"
        severity = Severity.ERROR if demo else Severity.WARNING
        yield say("POL406", constraint, message, "spec.parameters", "name who may sign", severity)


def unheeded_errors(graph: Graph) -> Iterator[Finding]:
    """POL407: a program that asks a provider and does not look at what failed: absence of an answer is then a yes."""
    for template in graph.kind(_TEMPLATE):
        for _, source, _ in _code(template):
            program = "\n".join([text(source.get("rego")), *map(text, items(source.get("libs")))])
            if "external_data(" not in program or re.search(r"\.errors\b|\.system_error\b|\[\"errors\"\]", program):
                continue
            message = (
                "errors and system_error of the answer are not looked at: while the provider is down everything passes"
            )
            yield warn("POL407", template, message, "spec.targets", "deny when there are errors or a system_error")


def open_webhook(graph: Graph) -> Iterator[Finding]:
    """POL408: constraints that deny, behind a webhook that lets everything in while it is down."""
    denying = [c for c in _constraints(graph) if mapping(c.body.get("spec")).get("enforcementAction", "deny") == "deny"]
    if not denying:
        return
    for manifest in graph.kind("ValidatingWebhookConfiguration.admissionregistration.k8s.io"):
        for index, hook in enumerate(maps(manifest.body.get("webhooks"))):
            if text(hook.get("name")) == "validation.gatekeeper.sh" and hook.get("failurePolicy") == "Ignore":
                message = (
                    f"while Gatekeeper does not answer everything is let in, whatever {len(denying)} constraints deny"
                )
                yield warn("POL408", manifest, message, f"webhooks[{index}].failurePolicy", _CLOSED)
    for manifest in graph.kind("Application.argoproj.io", "HelmRelease.helm.toolkit.fluxcd.io"):
        written = str(manifest.body.get("spec"))
        if _CHART.search(written) and "validatingWebhookFailurePolicy" not in written:
            message = "the chart's webhook lets everything in while Gatekeeper does not answer (failurePolicy Ignore)"
            yield warn("POL408", manifest, message, "spec", f"validatingWebhookFailurePolicy: Fail; {_CLOSED}")


_CLOSED = "Fail, with at least two replicas, and kube-system and Gatekeeper's own namespace exempt"
_CHART = re.compile(r"'chart': (?:\{'spec': \{.*?'chart': )?'gatekeeper'")


def stopping_policies(graph: Graph) -> Iterator[Finding]:
    """POL409: a template in CEL becomes a policy of the API server that fails closed for the system, too."""
    native = {}
    for template in graph.kind(_TEMPLATE):
        for engine, source, _ in _code(template):
            makes = engine == "K8sNativeValidation" and source.get("generateVAP") is not False
            if makes and source.get("failurePolicy", "Fail") == "Fail":
                native[_kind(template)] = template
    for constraint in _constraints(graph):
        spec = mapping(constraint.body.get("spec"))
        if constraint.kind not in native or spec.get("enforcementAction", "deny") != "deny":
            continue
        match = mapping(spec.get("match"))
        spared = "kube-system" in items(match.get("excludedNamespaces")) or any(
            text(each).startswith("kube-") and "*" in text(each) for each in items(match.get("excludedNamespaces"))
        )
        selector = match.get("namespaceSelector")
        spared = spared or bool(items(match.get("namespaces"))) or (bool(selector) and not selects(selector, SYSTEM))
        kinds = {text(kind) for row in maps(match.get("kinds")) for kind in items(row.get("kinds"))}
        if not spared and (not kinds or kinds & {"*", "Pod", "Lease", "Node"}):
            message = (
                f"Gatekeeper makes a ValidatingAdmissionPolicy of {native[constraint.kind].ref.name} that fails closed "
                "and reads this constraint; while that cannot be read the control plane refuses its own pods and leases"
            )
            fix = "exclude kube-system and kube-node-lease, or set generateVAP: false"
            yield say("POL409", constraint, message, "spec.match", fix, Severity.WARNING, Confidence.LIKELY)


def unknown_providers(graph: Graph) -> Iterator[Finding]:
    """POL410: a constraint that asks a provider which the tree does not hold, though it holds others."""
    names = [manifest.ref.name for manifest in graph.kind(_PROVIDER)]
    if not graph.closed(_PROVIDER):
        return
    for constraint in _constraints(graph):
        provider = known(mapping(mapping(constraint.body.get("spec")).get("parameters")).get("provider"))
        if provider and provider not in names:
            close = get_close_matches(provider, names, 1)
            fix = f"did you mean {close[0]}?" if close else "add the Provider"
            message = f"there is no Provider {provider}: the question fails"
            yield say("POL410", constraint, message, "spec.parameters.provider", fix)


RULES = (
    of_no_template,
    actions,
    kinds_that_are_none,
    two_programs,
    new_rego_in_the_old_field,
    providers,
    anybody_signs,
    unheeded_errors,
    open_webhook,
    stopping_policies,
    unknown_providers,
)
TREE = ()
