"""Who comes in by what annotations say, and where the objects of an Application come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blueprint.check.shapes import items, mapping, maps
from blueprint.review.diff import MISSING
from blueprint.review.model import Risk
from blueprint.review.words import named, shown_pair

if TYPE_CHECKING:
    from blueprint.review.special import Case

Said = tuple[Risk, str]

_CONTROLLERS = ("ingress", "load-balancer", "loadbalancer", "nginx", "haproxy", "traefik", "alb.", "istio", "gateway")
_WAY_IN = (
    *("auth", "whitelist", "allowlist", "denylist", "allow", "ssl", "tls", "snippet", "internal", "scheme", "cidr"),
    *("cors", "secure", "waf", "modsecurity", "source-range", "class"),
)


def way_in(case: Case) -> Said | None:
    """Annotations by which controllers decide who comes in, and how."""
    whole = {**mapping(case.edit.before), **mapping(case.edit.after)}
    keys = [key for key in map(str, whole or case.edit.steps[-1:]) if any(word in key for word in _CONTROLLERS)]
    if not keys:
        return Risk.NONE, f"annotation {case.default}"
    gates = [key for key in keys if any(word in key.lower() for word in _WAY_IN)]
    values = " → ".join(shown_pair(case.edit))
    if gates:
        return Risk.SECURITY, f"who comes in, and how: {named(gates)} {values}"
    return Risk.TRAFFIC, f"{named(keys)} {values}"


def generators(case: Case) -> Said | None:
    """Which Applications an ApplicationSet makes; those that it makes no more take their objects with them."""
    old = mapping(mapping(case.pair.old.body.get("spec")).get("syncPolicy")) if case.pair.old else {}
    before = items(case.edit.before)
    if case.edit.before is MISSING or (before and all(each in items(case.edit.after) for each in before)):
        return Risk.CAPACITY, f"which Applications it makes: {case.default}"
    if old.get("preserveResourcesOnDeletion") is True:
        return Risk.TRAFFIC, f"which Applications it makes: {case.default}; what those that go hold stays, unowned"
    return (
        Risk.DESTRUCTIVE,
        f"which Applications it makes: {case.default}; those that go are deleted with all they hold",
    )


def folders(case: Case) -> Said | None:
    """Sources of an Application, of which it has several."""
    before, after = (maps(value) for value in (case.edit.before, case.edit.after))
    if case.edit.after is MISSING or (isinstance(case.edit.before, list) and not all(each in after for each in before)):
        return Risk.DESTRUCTIVE, f"reads less: {case.default}; what only that held is pruned"
    return None
