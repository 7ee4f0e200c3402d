"""Plain YAML scalars: what they mean in YAML 1.2, and which of them YAML 1.1 reads differently."""

from __future__ import annotations

import re
from typing import Final

Scalar = str | int | float | bool | None

# YAML 1.2.2 §10.3.2, the core schema.
_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMERIC_START = frozenset("+-.0123456789")
# More digits than any 64-bit number has; reading millions of digits takes time that grows with their square.
_DIGITS = 40

# YAML 1.1, https://yaml.org/type/{bool,int,float,timestamp,value}.html: the forms that 1.2 dropped or changed.
_BOOLEANS_1_1 = frozenset(
    {"y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"}
)
_SURPRISES: Final = (
    (re.compile(r"[-+]?0[0-9_]+"), "an octal number in YAML 1.1"),
    (re.compile(r"0o[0-7]+"), "an octal number in YAML 1.2 and a string in YAML 1.1"),
    (re.compile(r"[-+]?0b[01_]+"), "a binary number in YAML 1.1"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "a number in base 60 in YAML 1.1"),
    (re.compile(r"[-+]?(0x[0-9a-fA-F]*_[0-9a-fA-F_]*|[0-9]+_[0-9_]*(\.[0-9_]*)?)"), "a number in YAML 1.1"),
    (re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*_[0-9_]*"), "a number in YAML 1.1"),
    (re.compile(r"[-+](0x[0-9a-fA-F]+)"), "a number in YAML 1.1"),
    (re.compile(r"[-+]\.[0-9]+"), "a number in YAML 1.2 and a string in some parsers of YAML 1.1"),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t][ \t]*[0-9]{1,2}:[0-9]{2}:[0-9]{2}\S*([ \t]*\S+)?)?"),
        "a date in YAML 1.1",
    ),
    (
        re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][0-9]+|[-+]?[0-9]+[eE][-+]?[0-9]+"),
        "a number in YAML 1.2 and a string in YAML 1.1",
    ),
)
_ANY_SURPRISE = re.compile("|".join(form.pattern for form, _ in _SURPRISES))
_NOT_SURELY_TEXT: Final = _BOOLEANS_1_1 | set(_WORDS) | {"=", "<<"}


class NumberTooLarge(ValueError):
    """A number that JSON, and so Kubernetes, cannot hold: not finite, or an integer of more than 64 bits."""


def is_text(text: str) -> bool:
    """Whether a plain scalar is a string in both versions, at a glance: nearly all are."""
    return text not in _NOT_SURELY_TEXT and text[0] not in _NUMERIC_START


def resolve(text: str) -> Scalar:
    """The value of a plain scalar by the YAML 1.2 core schema.

    Raises:
        NumberTooLarge: it is a number, but none that JSON can hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    if _INT.fullmatch(text):
        return _integer(text, 10)
    if _BASED.fullmatch(text):
        return _integer(text, 0)
    if _SPECIAL.fullmatch(text):
        raise NumberTooLarge(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise NumberTooLarge(text)
        return number
    return text


def _integer(text: str, base: int) -> int:
    if len(text) > _DIGITS:
        raise NumberTooLarge(text)
    number = int(text, base)
    if not -(2**63) <= number < 2**63:
        raise NumberTooLarge(text)
    return number


def surprise(text: str) -> str:
    """What YAML 1.1 and 1.2 disagree on in a plain scalar, in words; "" where they agree."""
    if text in _BOOLEANS_1_1:
        return "a boolean in YAML 1.1 and a string in YAML 1.2"
    if text == "=":
        return "a special value in YAML 1.1"
    if text and text[0] in _NUMERIC_START and len(text) <= _DIGITS and _ANY_SURPRISE.fullmatch(text):
        return next((words for form, words in _SURPRISES if form.fullmatch(text)), "")
    return ""
