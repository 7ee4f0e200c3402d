"""Unquoted scalars as Kubernetes reads them, and where other YAML parsers read them differently.

Sources: go.yaml.in/yaml/v2@v2.4.3 resolve.go; sigs.k8s.io/yaml@v1.6.0 yaml.go (keys);
k8s.io/apimachinery@v0.35.4 pkg/util/json/json.go (numbers).
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from blueprint.finding import Confidence, Severity

Json: TypeAlias = Any
"""What JSON can hold: None, bool, int, float, str, lists and maps with string keys."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to tell about a place in a document; line and column count from 0."""

    code: str
    message: str
    line: int
    column: int
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    fix: str = ""


class Unreadable(Exception):
    """The document has no value; internal to reading."""

    def __init__(self, remark: Remark) -> None:
        super().__init__(remark.message)
        self.remark = remark


_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_CORE_CONSTANTS = {
    text: value
    for text, value in _CONSTANTS.items()
    if not (isinstance(value, bool) and text.lower() not in ("true", "false"))
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DOT_FLOAT = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_GO_INT = re.compile(r"([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_CORE_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
ONLY_YAML_11 = re.compile(
    r"(?P<time>[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)|(?P<date>\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d.*)?)|="
)
INT64 = range(-(2**63), 2**63)


def narrow(number: float) -> int | float:
    """A float as JSON carries it through Go: whole ones come out as integers where they fit 64 bits."""
    if not math.isfinite(number) or number != math.floor(number) or abs(number) >= 1e21:
        return number
    whole = int(Decimal(repr(number)))  # Go writes the shortest digits, then reads them as an integer
    return whole if whole in INT64 else number


def _go_int(text: str) -> int | None:
    """Go's ParseInt with base 0, falling back to ParseUint; None when it does not parse or overflows 64 bits."""
    match = _GO_INT.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, hex_digits, binary, bits, octal, decimal = match.groups()
    if hexadecimal:
        value = int(hex_digits, 16)
    elif binary:
        value = int(bits, 2)
    else:
        if len(decimal or "") > 20:  # more digits than any 64 bits have
            return None
        value = int(octal, 8) if octal else int(decimal)
    if sign == "-":
        return -value if -value in INT64 else None
    return value if value < (2**63 if sign else 2**64) else None


def resolve(text: str) -> Json:
    """The value Kubernetes reads from an unquoted, untagged scalar: None, bool, int, float (also inf, nan) or str."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    first = text[0]
    if first == ".":
        number = float(text.replace("_", "")) if _DOT_FLOAT.fullmatch(text) else math.inf
        return text if math.isinf(number) else number
    if first not in "+-0123456789":
        return text
    bare = text.replace("_", "")
    whole = _go_int(bare)
    if whole is not None:
        return whole
    if _FLOAT.fullmatch(bare):
        number = float(bare)
        return text if math.isinf(number) else number
    return text


def resolve_core(text: str) -> Json:
    """The value of the same scalar under the core schema of YAML 1.2."""
    if text in _CORE_CONSTANTS:
        return _CORE_CONSTANTS[text]
    if _CORE_INT.fullmatch(text):
        if text[:2] in ("0o", "0x"):
            return int(text, 0)
        return int(text) if len(text) < 4000 else float(text)  # Python reads no longer ones
    return float(text) if _FLOAT.fullmatch(text) else text


def difference(text: str) -> Remark | None:
    """What to say about an unquoted scalar that parsers read differently, at line and column 0."""
    value, core = resolve(text), resolve_core(text)
    same = repr(narrow(value) if isinstance(value, float) else value) == repr(
        narrow(core) if isinstance(core, float) else core
    )
    if not same:
        octal = isinstance(value, int) and not isinstance(value, bool) and isinstance(core, int)
        read = "true" if value is True else "false" if value is False else repr(value)
        return Remark(
            "YML201",
            f"{text} is read as {read} by Kubernetes and as {core!r} by a YAML 1.2 parser",
            0,
            0,
            Severity.NOTE if octal else Severity.WARNING,
            Confidence.STYLE if octal else Confidence.LIKELY,
            f"write {read}" if octal else f'quote it ("{text}"), or write {read}',
        )
    match = ONLY_YAML_11.fullmatch(text)
    if match and isinstance(value, str):
        what = "a date" if match["date"] else "a number in base 60" if match["time"] else "a special value"
        return Remark(
            "YML202",
            f"{text} is a string for Kubernetes and {what} for other YAML 1.1 parsers",
            0,
            0,
            Severity.NOTE,
            Confidence.STYLE,
            f'quote it: "{text}"',
        )
    return None


def float_key(number: float) -> str:
    """A float key as Go writes it: the shortest text that reads back equal in 32 bits."""
    if math.isnan(number):
        return ".nan"
    if math.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    single = struct.unpack("f", struct.pack("f", number))[0] if abs(number) < 3.4e38 else number
    for digits in range(1, 10):
        text = f"{single:.{digits - 1}e}"
        if struct.pack("f", float(text)) == struct.pack("f", single):
            break
    mantissa, _, exponent = text.partition("e")
    if -4 <= int(exponent) < 6:
        return f"{float(text):.{max(0, len(mantissa.replace('.', '').lstrip('-')) - 1 - int(exponent))}f}"
    return f"{mantissa}e{int(exponent):+03d}"
