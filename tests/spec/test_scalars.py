"""Plain scalars, against PyYAML for YAML 1.1 and a second parser for YAML 1.2."""

import math
import re

import pytest
import yaml
import yaml_rs
from hypothesis import assume, given
from hypothesis import strategies as st

from blueprint.spec.scalars import NumberTooLarge, resolve, surprise


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
        ("8", 8),
        ("-8", -8),
        ("+8", 8),
        ("0x1F", 31),
        ("0o17", 15),
        ("0777", 777),
        ("1.10", 1.1),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("0.33.0", "0.33.0"),
        ("1g.10gb", "1g.10gb"),
        ("5%", "5%"),
        ("120/s", "120/s"),
        ("-", "-"),
        (".", "."),
        ("+", "+"),
        ("--flag", "--flag"),
        ("10.0.0.1:5000", "10.0.0.1:5000"),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_the_core_schema(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    "text", [".inf", "-.INF", ".nan", "1e999", "9223372036854775808", "-9223372036854775809", "9" * 100_000]
)
def test_numbers_that_json_cannot_hold(text: str) -> None:
    with pytest.raises(NumberTooLarge):
        resolve(text)


@pytest.mark.parametrize(
    "text",
    re.split(
        " ",
        "y N yes No ON off = 0777 08 00 0o17 0b101 1:30 190:20:30 1_000 0x_1F 1_0.5 2026-11-30 2026-11-30T10:00:00Z "
        "1e3 2.5e3 -1e-3 +0x1F",
    ),
)
def test_what_two_versions_read_differently_is_a_surprise(text: str) -> None:
    assert surprise(text)


@pytest.mark.parametrize(
    "text",
    re.split(
        " ",
        "8 -8 0 1.10 0.5 1.5e+3 0x1F true null ~ yess nope none v1.2 1.2.3 1g.10gb 64Gi 5% 10m 1h30m host:8080 "
        "10.0.0.1:5000 2026-11 2026 +1 a_b 12a 0.33.0 sha256:0123 1-2 oidc:chat",
    ),
)
def test_what_both_read_alike_is_none(text: str) -> None:
    assert surprise(text) == ""


_TEXTS = st.one_of(
    st.text("0123456789+-._:eExob", min_size=1, max_size=9),
    st.sampled_from(["y", "on", "Off", "NULL", "TRUE", "~", "None", "nan", ".NaN"]),
)


@given(_TEXTS)
def test_what_is_no_surprise_reads_the_same_in_a_yaml_1_1_parser(text: str) -> None:
    assume(not surprise(text))
    assume(text not in ("-", "?", ":") and not text.startswith((": ", "- ")) and not text.endswith(":"))
    assume(": " not in text and not text.startswith(("---", "...")))
    try:
        ours = resolve(text)
    except NumberTooLarge:
        return
    theirs = yaml.safe_load(text)
    assert type(ours) is type(theirs)
    assert ours == theirs or (isinstance(ours, float) and math.isclose(ours, theirs))


@given(st.from_regex(r"[-+]?(0|[1-9][0-9]{0,9})(\.[0-9]{0,5})?([eE][-+][0-9]{1,2})?|0x[0-9a-f]{1,8}", fullmatch=True))
def test_a_yaml_1_2_parser_agrees_on_numbers(text: str) -> None:
    assume(not surprise(text))
    assert resolve(text) == yaml_rs.loads(text)
