"""Quantities: the texts and values were recorded from apimachinery v0.35.4 `ParseQuantity` and `String`."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.quantity import Form, QuantityError, canonical_quantity, format_quantity, parse_quantity, read_quantity

KI = 1024

# text → (value, what Kubernetes writes from the value and the class of suffix)
KUBERNETES = {
    "0": (Fraction(0), "0"),
    "1": (Fraction(1), "1"),
    "1000m": (Fraction(1), "1"),
    "0.1": (Fraction(1, 10), "100m"),
    "1.5": (Fraction(3, 2), "1500m"),
    "1.5Gi": (Fraction(3 * KI**3, 2), "1536Mi"),
    "1024Mi": (Fraction(KI**3), "1Gi"),
    "1025Mi": (Fraction(1025 * KI**2), "1025Mi"),
    "0.5Ki": (Fraction(512), "512"),
    "1.1Ki": (Fraction("1126.4"), "1126400m"),
    "62.5Ki": (Fraction(64000), "64000"),
    "1000k": (Fraction(10**6), "1M"),
    "1e3": (Fraction(1000), "1e3"),
    "1E3": (Fraction(1000), "1e3"),
    "12e-1": (Fraction(6, 5), "1200e-3"),
    "1E": (Fraction(10**18), "1E"),
    "1Ei": (Fraction(KI**6), "1Ei"),
    "9Ei": (Fraction(2**63 - 1), "9223372036854775807"),
    "0.1n": (Fraction(1, 10**9), "1n"),
    "-0.1n": (Fraction(-1, 10**9), "-1n"),
    "-1500m": (Fraction(-3, 2), "-1500m"),
    "+2": (Fraction(2), "2"),
    "007": (Fraction(7), "7"),
    ".5": (Fraction(1, 2), "500m"),
    "4.": (Fraction(4), "4"),
    "1.G": (Fraction(10**9), "1G"),
    "Gi": (Fraction(0), "0"),
    "m": (Fraction(0), "0"),
    "+": (Fraction(0), "0"),
    "12345678901234567890": (Fraction(12345678901234567890), "12345678901234567890"),
}

REFUSED = ["", "ten", "1GB", "100K", "0x10", "1e", "1 0", "1_000", "--1", "1..2", "1.2.3", "1k3", "1ki", "Pi", "Ei"]
REFUSED += ["e-12", "1Ee3", "١", "1\u0000", "NaN", "Infinity", "1e999999999999", "9" * 600]


@pytest.mark.parametrize("text", KUBERNETES)
def test_reads_and_writes_as_kubernetes(text):
    value, written = KUBERNETES[text]
    quantity = read_quantity(text)
    assert quantity.value == value
    assert format_quantity(*quantity) == written


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_what_kubernetes_refuses(text):
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("value", [True, None, [], float("nan"), float("inf")])
def test_refuses_what_is_no_amount(value):
    with pytest.raises(QuantityError):
        parse_quantity(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8, "8"),
        (1000, "1k"),
        (0.1, "100m"),
        (0.5, "500m"),
        (2.0, "2"),
        (1e21, "1e21"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1e3", "1k"),
        ("2000E", "2e21"),
        (" 1 ", "1"),
        ("62.5Ki", "64k"),
        ("0Gi", "0"),
    ],
)
def test_canonical_text(value, text):
    assert canonical_quantity(value) == text


def test_exact_arithmetic():
    assert parse_quantity("0.1") + parse_quantity("0.2") == parse_quantity("300m")


def test_an_amount_finer_than_a_nano_unit_cannot_be_written():
    with pytest.raises(QuantityError):
        format_quantity(Fraction(1, 3))


numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-(10**12), 10**12, allow_nan=False, places=6).map(lambda d: format(d, "f")),
)
suffixes = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e7", "E-3"]
)


@given(numbers, suffixes)
def test_canonical_text_keeps_the_value_and_is_stable(number, suffix):
    text = number + suffix
    canonical = canonical_quantity(text)
    assert parse_quantity(canonical) == parse_quantity(text)
    assert canonical_quantity(canonical) == canonical
    assert "." not in canonical


@given(st.integers(-(2**62), 2**62), st.sampled_from(list(Form)))
def test_every_whole_amount_survives(amount, form):
    assert parse_quantity(format_quantity(amount, form)) == amount


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    try:
        parse_quantity(text)
    except QuantityError:
        return
    canonical_quantity(text)
