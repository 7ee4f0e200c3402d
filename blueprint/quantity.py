"""Kubernetes quantities (`100m`, `1.5Gi`, `1e3`): exact reading and the canonical form.

The rules are those of `k8s.io/apimachinery@v0.35.4 pkg/api/resource` (`ParseQuantity`, `CanonicalizeBytes`).
A leaf: rendering, checks and admission use it, it imports nothing of ours.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class QuantityError(ValueError):
    """The text or number is no quantity that Kubernetes reads."""


class Form(StrEnum):
    """The class of suffix, which Kubernetes remembers and writes again."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class Quantity(NamedTuple):
    """An exact value in the base unit (cores, bytes, devices), and how it was written."""

    value: Fraction
    form: Form


# Every part may be empty, as in `Gi` (which is 0), `.5`, `4.` and `+`: ParseQuantity reads them all.
_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NEEDS_DIGITS = ("Pi", "Ei")  # where ParseQuantity leaves the path for small numbers, it wants a digit
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

_NANO = 10**9
_BINARY_MAX = Fraction(2**63 - 1)
# Bounds on what is worth computing: the server would spend the same effort in vain.
_MAX_TEXT = 512
_MAX_EXPONENT = 400


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Quantity:
    stripped = text.strip()  # the server trims, too: `UnmarshalJSON` calls strings.TrimSpace
    match = _SHAPE.fullmatch(stripped) if stripped and len(stripped) <= _MAX_TEXT else None
    if match is None:
        raise QuantityError(
            f"{text[:60]!r} is no quantity: write a number and a suffix such as m, k, M, G, Ki, Mi or Gi"
        )
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4]
    unscaled = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if suffix in _DECIMAL:
        value, form = unscaled * Fraction(10) ** _DECIMAL[suffix], Form.DECIMAL
    elif suffix in _BINARY and (whole or fraction or suffix not in _NEEDS_DIGITS):
        value, form = unscaled * 2 ** _BINARY[suffix], Form.BINARY
    elif power := _EXPONENT.fullmatch(suffix):
        exponent = int(power[1])
        if exponent > _MAX_EXPONENT or (exponent < -9 and not whole + fraction):
            raise QuantityError(f"{text[:60]!r} is no quantity: its exponent is out of range")
        value, form = unscaled * Fraction(10) ** max(exponent, -_MAX_EXPONENT - _MAX_TEXT), Form.EXPONENT
    else:
        raise QuantityError(f"{text[:60]!r} is no quantity: there is no suffix {suffix!r}")
    if value and _NANO % value.denominator:
        value = Fraction(math.ceil(value * _NANO), _NANO)  # away from zero: a little asked for is never nothing
    if form is Form.BINARY:
        value = min(value, _BINARY_MAX)
    return Quantity(-value if sign == "-" else value, form)


def read_quantity(value: str | int | float) -> Quantity:
    """Read a quantity as the API server does, keeping its class of suffix.

    Values finer than a nano-unit are rounded away from zero; binary ones stop at 2⁶³-1. Numbers are read by their
    shortest decimal text, so 0.1 is exactly a tenth. Raises QuantityError for everything that is no quantity.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(f"{value!r} is no quantity: a {type(value).__name__} has no amount")
    if isinstance(value, float) and not math.isfinite(value):
        raise QuantityError(f"{value!r} is no quantity")
    quantity = _parse_text(repr(value))
    return Quantity(quantity.value, Form.DECIMAL)


def parse_quantity(value: str | int | float) -> Fraction:
    """The exact amount in the base unit: `100m` is 1/10, `1Gi` is 2³⁰. Raises QuantityError."""
    return read_quantity(value).value


def format_quantity(value: Fraction | int, form: Form = Form.DECIMAL) -> str:
    """Write the canonical text: no fraction, no lost precision, the largest suffix of the class that allows it.

    As in Kubernetes, a binary amount below 1024 or with a fraction is written in the decimal class. Unlike Kubernetes,
    a multiple of 1000E is written with an exponent (`1e21`): the server would drop the suffix and lose the amount.
    Raises QuantityError for an amount that is no multiple of a nano-unit.
    """
    value = Fraction(value)
    if not value:
        return "0"
    if form is Form.BINARY and value.denominator == 1 and abs(value) >= 1024:
        number, exponent = value.numerator, 0
        while number % 1024 == 0 and exponent < 60:
            number, exponent = number // 1024, exponent + 10
        return f"{number}{_BINARY_SUFFIX.get(exponent, '')}"
    if _NANO % value.denominator:
        raise QuantityError(f"{value} has parts finer than a nano-unit")
    number, exponent = value.numerator * (_NANO // value.denominator), -9
    while number % 1000 == 0:
        number, exponent = number // 1000, exponent + 3
    if form is Form.EXPONENT or exponent not in _DECIMAL_SUFFIX:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"


@lru_cache(maxsize=4096)
def _canonical_text(text: str) -> str:
    value, form = _parse_text(text)
    written = format_quantity(value, form) if form is Form.BINARY else ""
    # Without its suffix a binary amount reads back as a decimal one (62.5Ki is 64000 is 64k).
    return written if written.endswith("i") else format_quantity(value)


def canonical_quantity(value: str | int | float) -> str:
    """The text we write for a quantity: `1000m` → `1`, 0.1 → `100m`, `1024Mi` → `1Gi`, `1e3` → `1k`.

    The API server gives each of these texts back unchanged. It would keep `1e3`, too; we write the suffix that people
    know. Raises QuantityError.
    """
    if isinstance(value, str):
        return _canonical_text(value)
    return format_quantity(read_quantity(value).value)
