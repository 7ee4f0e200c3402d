"""Policies of Kyverno: those that let anybody sign, that cannot verify, or that judge less than they seem to.

Sources: kyverno v1.19.1 pkg/image/verifiers/ivpol/cosign, pkg/controllers, cmd/internal/flag.go; github.com/kyverno/api
policies.kyverno.io.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.catalog.schemas import SchemaPack
from blueprint.catalog.versions import version
from blueprint.check.graph import Graph, kind_of, labels_of
from blueprint.check.images import image
from blueprint.check.matching import asks_about, kind_problem, rules_of
from blueprint.check.pods import containers
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Finding, Severity
from blueprint.objects import Manifest

_IMAGES = ("ImageValidatingPolicy.policies.kyverno.io", "NamespacedImageValidatingPolicy.policies.kyverno.io")
_VALIDATING = ("ValidatingPolicy.policies.kyverno.io", "NamespacedValidatingPolicy.policies.kyverno.io")
_LEGACY = ("ClusterPolicy.kyverno.io", "Policy.kyverno.io")
_EXCEPTIONS = ("PolicyException.policies.kyverno.io", "PolicyException.kyverno.io")
_AGGREGATE = "rbac.kyverno.io/aggregate-to-reports-controller"


def _attestors(policy: Manifest) -> Iterator[tuple[str, Body]]:
    for index, row in enumerate(maps(mapping(policy.body.get("spec")).get("attestors"))):
        if "cosign" in row:
            yield f"spec.attestors[{index}].cosign", mapping(row["cosign"])


def anybody_signs(graph: Graph) -> Iterator[Finding]:
    """POL301: an identity that is left open matches everybody who can log in at the issuer."""
    for policy in graph.kind(*_IMAGES):
        for path, cosign in _attestors(policy):
            if "keyless" not in cosign:
                continue
            identities = maps(mapping(cosign["keyless"]).get("identities"))
            if not identities:
                message = "no identity is named: a certificate of anybody is enough"
                yield say("POL301", policy, message, f"{path}.keyless", "name issuer and subject")
            for index, identity in enumerate(identities):
                if problem := _open(identity):
                    where = f"{path}.keyless.identities[{index}]"
                    yield say(
                        "POL301", policy, problem, where, "name issuer and subject in full, or anchor with ^ and $"
                    )


_SUBJECT = ("subject", "subjectRegExp", "subjectExpression")
_ANY = re.compile(r"\^?\(?\.[*+]\)?\$?|")


def _open(identity: Body) -> str:
    """Why an identity is open, "" where it is not."""
    given = [name for name in (*_SUBJECT, "issuer", "issuerRegExp") if identity.get(name)]
    if any(placeholder(identity[name]) for name in given):
        return ""
    if not any(name in _SUBJECT for name in given):
        return "no subject is named: every workflow and user of this issuer may sign"
    if not any(name.startswith("issuer") for name in given):
        return "no issuer is named: a subject of that name at any issuer may sign"
    for name in ("subjectRegExp", "issuerRegExp"):
        pattern = text(identity.get(name))
        if name in given and _ANY.fullmatch(pattern):
            return f"{name} matches everything"
        if name in given and not pattern.startswith("^"):
            return f"{name} {pattern!r} is not anchored: any text that contains it matches"
    return ""


def trust_from_outside(graph: Graph) -> Iterator[Finding]:
    """POL302: a keyless attestor with a trust root of its own still asks the public TUF mirror first."""
    for policy in graph.kind(*_IMAGES):
        for path, cosign in _attestors(policy):
            if "keyless" in cosign and "trustedRoot" in cosign and not mapping(cosign.get("tuf")).get("mirror"):
                message = (
                    "Kyverno asks the public TUF mirror before it looks at trustedRoot: "
                    "without a way out of the cluster no image is verified"
                )
                fix = "give tuf.mirror and tuf.root of a mirror inside, or use a key and insecureIgnoreTlog"
                yield say("POL302", policy, message, path, fix)


def log_without_address(graph: Graph) -> Iterator[Finding]:
    """POL303: a ctlog block without the address of the log."""
    for policy in graph.kind(*_IMAGES):
        for path, cosign in _attestors(policy):
            log = mapping(cosign.get("ctlog"))
            if "ctlog" in cosign and not log.get("url") and log.get("insecureIgnoreTlog") is not True:
                message = "ctlog without url: every verification fails with `rekor URL must be provided`"
                yield say(
                    "POL303", policy, message, f"{path}.ctlog", "leave ctlog out, or set url, or insecureIgnoreTlog"
                )


_LISTS = ("containers", "initContainers", "ephemeralContainers")


def containers_left_out(graph: Graph) -> Iterator[Finding]:
    """POL304: images of init or debug containers that nobody verifies."""
    for policy in graph.kind(*_IMAGES):
        spec = mapping(policy.body.get("spec"))
        rules = rules_of(spec.get("matchConstraints"))
        written = " ".join(
            text(row.get("expression")) for row in maps(spec.get("validations")) + maps(spec.get("variables"))
        )
        if not any(asks_about(rule, "", "pods") for rule in rules) or "images.containers" not in written:
            continue
        left = [name for name in _LISTS if f"images.{name}" not in written]
        if left:
            message = (
                f"the images of {' and '.join(left)} are not verified: whoever may edit the pod runs any image there"
            )
            yield warn("POL304", policy, message, "spec.validations", f"repeat the rule for images.{left[0]}")
        elif not any(asks_about(rule, "", "pods/ephemeralcontainers") for rule in rules):
            message = "debug containers are added through pods/ephemeralcontainers, which the policy does not ask for"
            yield warn("POL304", policy, message, "spec.matchConstraints.resourceRules", "add pods/ephemeralcontainers")


def digests_against_git(graph: Graph) -> Iterator[Finding]:
    """POL305: the policy writes digests into objects, which Git then does not hold."""
    for policy in graph.kind(*_IMAGES):
        spec = mapping(policy.body.get("spec"))
        settings = mapping(spec.get("validationConfigurations"))
        audits = items(spec.get("validationActions")) == ["Audit"]
        if settings.get("mutateDigest") is not False and audits:
            message = (
                "mutateDigest is true unless it is set to false: a policy that only audits rewrites images all the same"
            )
            fix = "set mutateDigest: false, and write digests in Git"
            yield say("POL305", policy, message, "spec.validationConfigurations", fix)
    for policy in graph.kind(*_LEGACY):
        for index, rule in enumerate(maps(mapping(policy.body.get("spec")).get("rules"))):
            for number, check in enumerate(maps(rule.get("verifyImages"))):
                action = check.get("failureAction") or mapping(policy.body.get("spec")).get("validationFailureAction")
                if check.get("mutateDigest") is not False and text(action).lower() == "audit":
                    message = "mutateDigest must be false in a rule that only audits; Kyverno refuses the policy"
                    where = f"spec.rules[{index}].verifyImages[{number}]"
                    yield say("POL305", policy, message, where, "set mutateDigest: false")


def generated_policies(graph: Graph) -> Iterator[Finding]:
    """POL306, POL307: what Kyverno is to make a ValidatingAdmissionPolicy of."""
    for policy in graph.kind(*_VALIDATING):
        spec = mapping(policy.body.get("spec"))
        autogen = mapping(spec.get("autogen"))
        wanted = mapping(autogen.get("validatingAdmissionPolicy")).get("enabled") is True
        if wanted and items(mapping(autogen.get("podControllers")).get("controllers")):
            message = "with podControllers Kyverno makes no ValidatingAdmissionPolicy, and says nothing"
            yield say("POL306", policy, message, "spec.autogen", "keep one of the two")
        if "validationActions" not in spec and "validations" in spec:
            older = "; releases before 1.16 make no ValidatingAdmissionPolicy then" if wanted else ""
            message = f"nothing says what a violation does; the current release takes Deny{older}"
            severity = Severity.WARNING if wanted else Severity.NOTE
            yield say("POL307", policy, message, "spec.validationActions", "write validationActions: [Deny]", severity)


def _flags(graph: Graph) -> Iterator[tuple[Manifest, str, str]]:
    """The flags of Kyverno's admission controllers, with the version of their image."""
    for manifest, pod in graph.pods:
        for _, container in containers(pod.spec):
            parts = image(text(container.get("image")))
            if parts.repository.endswith("/kyverno/kyverno"):
                for flag in items(container.get("args")):
                    yield manifest, text(flag).lstrip("-"), parts.tag


def exceptions(graph: Graph) -> Iterator[Finding]:
    """POL308, POL309: exceptions without an end, where they do not count, or that count from anywhere."""
    allowed = ""
    for manifest, flag, tag in _flags(graph):
        if flag.startswith("exceptionNamespace="):
            allowed = flag.partition("=")[2]
            running = version(graph.versions.get("kyverno", "")) or version(tag)
            if running and running[:3] == (1, 19, 0) and not _guarded(graph):
                message = (
                    "Kyverno 1.19.0 takes exceptions of v1 and v1beta1 from every namespace, whatever this flag says"
                )
                fix = "use 1.19.1, or a policy that refuses PolicyExceptions elsewhere"
                yield say("POL308", manifest, message, "spec.template.spec.containers", fix)
        elif flag == "exceptionNamespace" or flag.startswith("exceptionNamespace "):
            allowed = flag.partition(" ")[2]
    for exception in graph.kind(*_EXCEPTIONS):
        namespace = exception.ref.namespace
        if allowed not in ("", "*") and namespace and namespace != allowed and not placeholder(namespace):
            message = f"Kyverno takes exceptions only from {allowed}: this one has no effect"
            yield warn("POL308", exception, message, "metadata.namespace", f"move it to {allowed}")
        new = kind_of(exception) == _EXCEPTIONS[0] and exception.api_version.endswith("/v1")
        if new and not mapping(exception.body.get("spec")).get("expiresAt"):
            message = "the exception never ends"
            yield warn("POL309", exception, message, "spec", "set expiresAt")


def _guarded(graph: Graph) -> bool:
    """Whether some policy judges PolicyExceptions themselves."""
    guards = graph.kind("ValidatingAdmissionPolicy.admissionregistration.k8s.io", *_VALIDATING)
    rules = (rule for m in guards for rule in rules_of(mapping(m.body.get("spec")).get("matchConstraints")))
    return any(asks_about(rule, "policies.kyverno.io", "policyexceptions") for rule in rules)


def reports_without_rights(graph: Graph) -> Iterator[Finding]:
    """POL310: Kyverno may not list a custom resource that a policy judges, so that all its reports stand still."""
    granted = [
        rule
        for role in graph.kind("ClusterRole.rbac.authorization.k8s.io")
        if labels_of(role.body).get(_AGGREGATE) == "true"
        for rule in maps(role.body.get("rules"))
    ]
    for policy in graph.kind(*_VALIDATING):
        spec = mapping(policy.body.get("spec"))
        if mapping(mapping(spec.get("evaluation")).get("background")).get("enabled") is False:
            continue
        for index, rule in enumerate(rules_of(spec.get("matchConstraints"))):
            missing = next(_ungranted(graph, rule, granted), "")
            if missing:
                message = (
                    f"no ClusterRole lets Kyverno's reports controller list {missing}; then no report is written at all"
                )
                where = f"spec.matchConstraints.resourceRules[{index}]"
                fix = f'a ClusterRole with get, list, watch on {missing}, labelled {_AGGREGATE}: "true"'
                severity = Severity.ERROR if granted else Severity.WARNING
                yield say("POL310", policy, message, where, fix, severity)
                break


def _ungranted(graph: Graph, rule: Body, granted: list[Body]) -> Iterator[str]:
    for group in map(text, items(rule.get("apiGroups"))):
        for name in map(text, items(rule.get("resources"))):
            plain = name.partition("/")[0]
            resource = graph.resources.plural(group, plain)
            if not group or "*" in group + plain or placeholder(group) or (resource and resource.builtin):
                continue
            if resource is None and (not group.count(".") or group.endswith(".k8s.io")):
                continue
            if not any(
                {group, "*"} & set(map(text, items(row.get("apiGroups"))))
                and {plain, "*"} & set(map(text, items(row.get("resources"))))
                for row in granted
            ):
                yield f"{plain}.{group}"


def kinds_that_are_none(graph: Graph) -> Iterator[Finding]:
    """POL101: a rule of an old policy about a kind that there is not."""
    for policy in graph.kind(*_LEGACY):
        for index, rule in enumerate(maps(mapping(policy.body.get("spec")).get("rules"))):
            match = mapping(rule.get("match"))
            blocks = [match, *maps(match.get("any")), *maps(match.get("all"))]
            for kind in (
                text(each) for block in blocks for each in items(mapping(block.get("resources")).get("kinds"))
            ):
                if problem := _no_kind(graph, kind):
                    message = f"{problem}: the rule {text(rule.get('name'))} never matches"
                    sure = "did you mean" in message or "capital" in message
                    severity = Severity.ERROR if sure else Severity.WARNING
                    fix = "write the kind as in `kind:`"
                    yield say("POL101", policy, message, f"spec.rules[{index}].match", fix, severity)


_VERSION = re.compile(r"v\d(?:(?:alpha|beta)\d)?|\*")


def _split(kind: str) -> tuple[str, str, str]:
    """The group, version and kind of `apps/v1/Deployment`, `v1/Pod` or `Pod/exec`; "*" for what is not said."""
    parts = kind.split("/")
    if len(parts) == 1 or not (_VERSION.fullmatch(parts[0]) or len(parts) > 2):
        return "*", "*", parts[0]
    if _VERSION.fullmatch(parts[0]):
        return "*", parts[0], parts[1]
    return parts[0], parts[1], parts[2]


def _no_kind(graph: Graph, written: str) -> str | None:
    """Why no object is of the kind that a rule names, None where that is not known."""
    if not known(written):
        return None
    group, served, name = _split(written)
    if "*" in name or not name:
        return None
    if name[:1].islower() and "/" not in written:
        return f"{written!r} is no kind; kinds begin with a capital letter"
    if "*" in group:
        return _no_kind_anywhere(graph, name)
    resource = graph.resources.kind(group, name)
    if resource is None or not resource.builtin or "*" in served:
        return kind_problem(graph, group, name)
    there = SchemaPack.shipped().versions(group, name)
    if not there or served in there:
        return None
    return f"{name} of {group or 'the core group'} has no version {served}; did you mean {there[0]}?"


def _no_kind_anywhere(graph: Graph, name: str) -> str | None:
    kinds = graph.derived(_every_kind)
    if name in kinds.values():
        return None
    plural = kinds.get(name.lower(), "")
    near = get_close_matches(name, sorted(set(kinds.values())), 2, _NEAR)
    close = plural or next((each for each in near if each[0] == name[0] and abs(len(each) - len(name)) < 2), "")
    return f"no known kind is called {name!r}; did you mean {close}?" if close else None


_NEAR = 0.88


def _every_kind(graph: Graph) -> dict[str, str]:
    """Every known kind by its plural and by itself in small letters."""
    every = list(graph.resources.every())
    return {each.plural: each.kind for each in every} | {each.kind.lower(): each.kind for each in every}


RULES = (
    anybody_signs,
    trust_from_outside,
    log_without_address,
    containers_left_out,
    digests_against_git,
    generated_policies,
    exceptions,
    reports_without_rights,
    kinds_that_are_none,
)
TREE = ()
