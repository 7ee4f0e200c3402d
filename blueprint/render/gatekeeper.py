"""Gatekeeper: a ConstraintTemplate with the same CEL for each policy, and the one constraint that applies it.

Its own generation of admission policies is off: what it generates takes the constraint as parameter, and a cluster
that starts without the constraint's CRD then refuses everything (gatekeeper issue 4530).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from blueprint.finding import Ref
from blueprint.render.names import name, part_name
from blueprint.render.plan import Item
from blueprint.render.rulebook import APPLICATION, Rulebook
from blueprint.render.site import MANAGED_BY, Site

CONSTRAINTS: Final = "constraints.gatekeeper.sh"
ACTIONS: Final = {"Deny": "deny", "Audit": "dryrun", "Warn": "warn"}

#: A variable that Gatekeeper brings itself, and whose name it refuses (gatekeeper v3.23.1 k8scel/schema/schema.go).
_OWN: Final = frozenset({"anyObject"})

_LONGEST: Final = 63  # the plural of a CRD is a DNS label


def constraint_kind(policy: str) -> str:
    """The kind that a policy's template makes; the template's name is the same in lower case."""
    kind = "Blueprint" + "".join(part[:1].upper() + part[1:] for part in policy.split("-"))
    return kind if len(kind) <= _LONGEST else part_name(kind)


def ref(policy: str) -> Ref:
    """The constraint by which Gatekeeper enforces a policy."""
    return Ref(CONSTRAINTS, constraint_kind(policy), "", name("Constraint", policy))


def items(site: Site, book: Rulebook) -> Iterator[Item]:
    """Template and constraint of a policy; nothing where a resource has no known kind, which Gatekeeper needs."""
    if not all(resource.kind for resource in book.resources):
        return
    source = site.templates.render(
        "CelSource",
        source=book.source,
        variables=[row for row in book.variables if row["name"] not in _OWN] or None,
        operations=_asked(book),
        rules=book.rules,
    )
    yield template(site, book, "K8sNativeValidation", source)
    yield constraint(site, book)


def template(
    site: Site, book: Rulebook, engine: str, source: dict[str, Any], parameters: dict[str, Any] | None = None
) -> Item:
    """A ConstraintTemplate; `parameters` are the properties of the constraint's own schema."""
    kind = constraint_kind(book.policy)
    return site.item(
        APPLICATION,
        "ConstraintTemplate",
        book.source,
        name=kind.lower(),
        kind=kind,
        labels=MANAGED_BY,
        annotations=book.annotations,
        parameters=parameters,
        operations=book.operations,
        engine=engine,
        code=source,
    )


def constraint(site: Site, book: Rulebook, parameters: dict[str, Any] | None = None) -> Item:
    """The constraint of a policy."""
    kinds = sorted({(resource.group, resource.kind) for resource in book.resources})
    return site.item(
        APPLICATION,
        "Constraint",
        book.source,
        kind=constraint_kind(book.policy),
        name=ref(book.policy).name,
        labels=MANAGED_BY,
        action=ACTIONS[book.action],
        kinds=[
            {"groups": [group], "kinds": [kind for _, kind in rows]}
            for group, rows in groupby(kinds, key=lambda row: row[0])
        ],
        namespaces=book.namespaces,
        parameters=parameters,
    )


def _asked(book: Rulebook) -> str:
    """The verbs as a condition: constraints match by kind only, and the audit asks without a verb."""
    verbs = ["", *book.operations] if book.scans else book.operations
    return f"request.operation in [{', '.join(repr(verb) for verb in verbs)}]"
