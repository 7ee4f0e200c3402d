"""Policies: one source in CEL, written for each engine that a spec names and the cluster has.

The three engines evaluate the same expressions over the same variables, kinds, verbs and namespaces; here is what they
share, and Kubernetes' own admission policies. `kyverno`, `gatekeeper` and `images` hold the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from blueprint.catalog.components import component
from blueprint.catalog.schemas import SchemaPack
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.render import expressions, gatekeeper, images, kyverno, names
from blueprint.render.plan import Item
from blueprint.render.rulebook import APPLICATION, Resource, Rulebook, selector
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec import Document, Policy
from blueprint.spec.cluster import Components
from blueprint.spec.policy import Engine, Match, PolicySpec, has_engine

NATIVE: Final = "ValidatingAdmissionPolicy"

#: A refusal is recorded in the audit log too, so that evidence does not depend on the engine's own reports.
_ACTIONS: Final = {"Deny": ["Deny", "Audit"], "Audit": ["Audit"], "Warn": ["Warn", "Audit"]}

#: The components of the catalog behind the fields of `spec.components`, where their names differ.
_MODULES: Final = {
    "training_operator": ("training-operator",),
    "trainer": ("trainer", "jobset"),
    "lws": ("leaderworkerset",),
    "argo_rollouts": ("argo-rollouts",),
    "prometheus_operator": ("prometheus-operator",),
}

# Who asks: controllers and nodes are `system:` users outside of the namespace. Without a user (Gatekeeper's audit,
# Kyverno's background scans) nobody can tell, and the object alone decides.
_ASKS: Final = "request.userInfo.username"
_GIVEN: Final = {
    "anyObject": "object == null ? oldObject : object",
    "byController": (
        f"!has(request.userInfo) || !has({_ASKS}) || {_ASKS} == '' || ({_ASKS}.startsWith('system:') && "
        f"!(has(request.namespace) && {_ASKS}.startsWith('system:serviceaccount:' + request.namespace + ':')))"
    ),
}


def items(site: Site) -> Iterator[Item]:
    """Every policy of the cluster for each of its engines, and what Kyverno must be allowed to read."""
    books: list[Rulebook] = []
    for document in site.platform.policies_on(site.name):
        if document.model.spec.images:
            yield from images.items(site, document)
            continue
        engines = _engines(site, document)
        for problem in expressions.problems(document, engines):
            site.problem(problem)
        book = _book(site, document)
        if not book.resources:
            continue
        if NATIVE in engines:
            yield from _native(site, book)
        if "Kyverno" in engines:
            books.append(book)
            yield kyverno.item(site, book)
        if "Gatekeeper" in engines:
            yield from gatekeeper.items(site, book)
    if books:
        yield kyverno.reader(site, books)


def judges(site: Site) -> list[Ref]:
    """What must be in force before anything of a tenant appears, for each policy the first engine that it names."""
    found: list[Ref] = []
    for document in site.platform.policies_on(site.name):
        spec, policy = document.model.spec, document.model.metadata.name
        engines = _engines(site, document)
        if not engines or (spec.match and not _known(site, spec.match)):
            continue
        if NATIVE in engines:
            found.append(Ref("admissionregistration.k8s.io", f"{NATIVE}Binding", "", policy_name(policy)))
        elif "Kyverno" in engines:
            found.append(kyverno.ref(policy, images=spec.images is not None))
        elif spec.images or all(resource.kind for resource in _known(site, spec.match)):
            found.append(gatekeeper.ref(policy))
    return found


def policy_name(policy: str) -> str:
    """The name of a policy's ValidatingAdmissionPolicy, and of its binding."""
    return names.name(NATIVE, policy)


def variables(spec: PolicySpec, given: tuple[str, ...] = tuple(_GIVEN)) -> list[dict[str, str]]:
    """The variables of a policy in order: those of `given` that its texts read, then its own."""
    texts = [variable.expression for variable in spec.variables] + [rule.expression for rule in spec.rules]
    read = {found for text in texts for found in re.findall(r"\bvariables\.(\w+)", text)}
    rows = [{"name": key, "expression": _GIVEN[key]} for key in given if key in read]
    return rows + [{"name": variable.name, "expression": variable.expression.strip()} for variable in spec.variables]


def _engines(site: Site, document: Document[Policy]) -> list[Engine]:
    return [engine for engine in document.model.spec.engines if has_engine(site.cluster, engine)]


def _native(site: Site, book: Rulebook) -> Iterator[Item]:
    name = policy_name(book.policy)
    yield site.item(
        APPLICATION,
        "ValidatingAdmissionPolicy",
        book.source,
        name=name,
        labels=MANAGED_BY,
        annotations=book.annotations,
        constraints=book.constraints(site),
        variables=book.variables or None,
        rules=book.rules,
    )
    yield site.item(
        APPLICATION,
        "ValidatingAdmissionPolicyBinding",
        book.source,
        name=name,
        labels=MANAGED_BY,
        policy=name,
        actions=_ACTIONS[book.action],
    )


def _book(site: Site, document: Document[Policy]) -> Rulebook:
    spec = document.model.spec
    match = spec.match
    resources = _known(site, match)
    for resource in resources:
        if not resource.kind:
            lacks = "Gatekeeper" in _engines(site, document)
            said = f"no kind is known under {resource.written}: the policy may judge nothing"
            site.problem(
                Finding(
                    "POL101",
                    f"{said}, and Gatekeeper cannot be told of it" if lacks else said,
                    document.locate("spec.match.resources"),
                    Severity.ERROR if lacks else Severity.WARNING,
                    Confidence.LIKELY,
                    path="spec.match.resources",
                    fix="write the plural and the group, such as jobs.batch",
                )
            )
    return Rulebook(
        policy=document.model.metadata.name,
        source=document.source,
        description=" ".join(spec.description.split()),
        action=spec.action,
        resources=resources,
        operations=list(match.operations) if match else [],
        namespaces=selector(site, match.namespaces if match else "tenants"),
        variables=variables(spec),
        rules=[{"expression": rule.expression.strip(), "message": rule.message} for rule in spec.rules],
    )


def _known(site: Site, match: Match | None) -> list[Resource]:
    """The resources that a policy judges on this cluster: those of components that it does not have are left out."""
    found = [_resource(text) for text in (match.resources if match else ())]
    absent = _absent(site.cluster.spec.components)
    return [resource for resource in found if (resource.group, resource.kind) not in absent]


def _absent(components: Components) -> set[tuple[str, str]]:
    """The kinds of every component that the cluster does not have."""
    lacking = [field for field in Components.model_fields if getattr(components, field) is None]
    modules = [component(module) for field in lacking for module in _MODULES.get(field, (field,))]
    return {kind for module in modules if module for kind in module.served}


@cache
def _plurals() -> dict[tuple[str, str], tuple[str, str]]:
    """(group, plural) → (version, kind) of every kind of the schema pack, in the version that it prefers."""
    pack = SchemaPack.shipped()
    return {
        (group, row.plural): (pack.versions(group, row.kind)[0], row.kind)
        for row in pack.listed()
        if row.served
        for group in [row.api_version.rpartition("/")[0]]
    }


def _resource(text: str) -> Resource:
    path, _, below = text.partition("/")
    plural, _, group = path.partition(".")
    version, kind = _plurals().get((group, plural), ("*", ""))
    return Resource(group, version, f"{plural}/{below}" if below else plural, kind, text)
