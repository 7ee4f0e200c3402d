"""Kyverno: a ValidatingPolicy for each policy, and the right to read what its policies judge.

Only `policies.kyverno.io/v1` is written: the older kinds are deprecated (kyverno v1.19.1 config/crds). Nothing is
generated from these policies: Kubernetes' own are rendered beside them, and rules name their kinds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from blueprint.finding import Ref
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.rulebook import APPLICATION, Rulebook
from blueprint.render.site import MANAGED_BY, Site

GROUP: Final = "policies.kyverno.io"

#: Its controllers take up ClusterRoles by these labels (kyverno v1.19.1 charts/kyverno/templates/*/clusterrole.yaml).
#: Without the right to list a kind that a policy judges, all reports stand still.
_AGGREGATED: Final = {
    f"rbac.kyverno.io/aggregate-to-{controller}-controller": "true"
    for controller in ("admission", "background", "reports")
}


def ref(policy: str, *, images: bool = False) -> Ref:
    """The object by which Kyverno enforces a policy."""
    kind = "ImageValidatingPolicy" if images else "ValidatingPolicy"
    return Ref(GROUP, kind, "", name(kind, policy))


# `object` of a deleted object and `oldObject` of a new one are null for Kubernetes and Gatekeeper; Kyverno hands over
# an empty map (kyverno v1.19.1 pkg/utils/admission/resource.go ExtractResources).
_OBJECT: Final = r"(?<![\w.])(object|oldObject)\b"
_NULL: Final = re.compile(rf"{_OBJECT}\s*(==|!=)\s*null\b|\bnull\s*(==|!=)\s*{_OBJECT}(?!\s*[.\[])")


def spelt(text: str) -> str:
    """An expression as Kyverno has to be given it, so that it means what it means elsewhere."""

    def known(match: re.Match[str]) -> str:
        name, sign = match[1] or match[4], match[2] or match[3]
        return f"({name} {sign} null {'||' if sign == '==' else '&&'} {'!' * (sign == '==')}has({name}.metadata))"

    return _NULL.sub(known, text)


def item(site: Site, book: Rulebook) -> Item:
    """The ValidatingPolicy of a policy."""
    return site.item(
        APPLICATION,
        "ValidatingPolicy",
        book.source,
        name=ref(book.policy).name,
        labels=MANAGED_BY,
        annotations=book.annotations,
        actions=[book.action],
        background=book.scans,
        constraints=book.constraints(site),
        variables=[row | {"expression": spelt(row["expression"])} for row in book.variables] or None,
        rules=[row | {"expression": spelt(row["expression"])} for row in book.rules],
    )


def reader(site: Site, books: Sequence[Rulebook]) -> Item:
    """A ClusterRole that lets Kyverno's controllers read every kind that the policies judge, and nothing more."""
    resources = sorted({(row.group, row.plural.partition("/")[0]) for book in books for row in book.resources})
    rules = [
        {
            "groups": [group],
            "resources": [plural for _, plural in rows],
            "verbs": ["get", "list", "watch"],
            "names": None,
        }
        for group, rows in groupby(resources, key=lambda row: row[0])
    ]
    return site.item(
        APPLICATION,
        "ClusterRole",
        site.document.source,
        name=name("ClusterRole", "platform-kyverno-reader"),
        labels={**MANAGED_BY, **_AGGREGATED},
        rules=rules,
    )
