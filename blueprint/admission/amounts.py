"""Kueue's integers: milli-units for CPU, whole units rounded up for everything else.

Source: kueue v0.17.0 pkg/resources/requests.go `ResourceValue`, `ResourceQuantity`. Sums are taken of exact quantities
first and rounded once, as there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from blueprint.admission.body import mapping
from blueprint.quantity import Form, QuantityError, format_quantity, parse_quantity

CPU = "cpu"
PODS = "pods"
_BYTES = ("memory", "ephemeral-storage")

Resources = dict[str, Fraction]
"""Exact amounts by resource, in base units."""

Amounts = dict[str, int]
"""Kueue's integers by resource."""


class FlavorResource(NamedTuple):
    """What quota is counted for: a resource on a flavor."""

    flavor: str
    resource: str


Usage = dict[FlavorResource, int]
"""Kueue's integers by flavor and resource."""


def amount(resource: str, value: Fraction) -> int:
    """The integer that Kueue computes with."""
    return math.ceil(value * 1000) if resource == CPU else math.ceil(value)


def amounts(resources: Mapping[str, Fraction]) -> Amounts:
    """The integers of all resources."""
    return {name: amount(name, value) for name, value in resources.items()}


def quantity(value: object) -> Fraction | None:
    """The exact amount of a quantity in a manifest, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except QuantityError:
        return None


def resources(value: object, *path: str) -> Resources:
    """The resource list below the names; what is no quantity is passed over."""
    found = {name: quantity(item) for name, item in mapping(value, *path).items()}
    return {name: item for name, item in found.items() if item is not None}


def shown(resource: str, value: int) -> str:
    """The integer as a quantity that people write: 1500 CPU is `1500m`, bytes are in binary units."""
    if resource == CPU:
        return format_quantity(Fraction(value, 1000))
    binary = resource in _BYTES or resource.startswith("hugepages-")
    return format_quantity(value, Form.BINARY if binary else Form.DECIMAL)


def quotient(left: int, right: int) -> int:
    """Division that rounds towards zero, as Go's does."""
    return left // right if (left >= 0) == (right > 0) else -(-left // right)


def add(total: Resources, more: Mapping[str, Fraction]) -> None:
    """Add `more` to `total`."""
    for name, value in more.items():
        total[name] = total.get(name, Fraction()) + value


def raise_to(total: Resources, floor: Mapping[str, Fraction]) -> None:
    """Raise each amount of `total` to that of `floor`."""
    for name, value in floor.items():
        if name not in total or value > total[name]:
            total[name] = value


def filled(value: Mapping[str, Fraction], *fallbacks: Mapping[str, Fraction]) -> Resources:
    """`value`, with what it lacks from the first fallback that has it."""
    result: Resources = {}
    for source in (value, *fallbacks):
        for name, item in source.items():
            result.setdefault(name, item)
    return result


def summed(lists: Iterable[Mapping[str, int]]) -> Amounts:
    """The sum by resource."""
    total: Amounts = {}
    for each in lists:
        for name, value in each.items():
            total[name] = total.get(name, 0) + value
    return total
