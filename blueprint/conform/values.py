"""The values that mutations put in: chosen to lie on both sides of what a server takes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from blueprint.catalog.crds import Schema


class _Gone(Enum):
    """Its one member stands for a field that is taken away."""

    GONE = "gone"


GONE: Final = _Gone.GONE

NAMES: Final = (
    "Upper",
    "under_score",
    "-dash",
    "dash-",
    "two words",
    "",
    "dot.ted",
    "double..dot",
    "ümlaut",
    "slash/ed",
    "9digit",
    "a" * 63,
    "a" * 64,
    "a" * 253,
    "a" * 254,
    "..",
    "100%",
)
KEYS: Final = (
    "Upper.example.com/key",
    "a/b/c",
    "-x",
    "",
    "key with space",
    "k" * 64,
    "example.com/",
    "/key",
    "ü",
    "ok_key.1",
)
LABEL_VALUES: Final = ("", "-x", "x-", "two words", "v" * 63, "v" * 64, "a/b", "ü", "A_b.c-1")
INTEGERS: Final = (2.0, 1.5, -1, 0, 2**31, 10**12, 2**63, "5", True)
INT_OR_STRING: Final = (2.0, -1, 2**31, "half", "", "-1", "5", "50%", "150%", "-5%", "http", "Port", True)
QUANTITIES: Final[tuple[Any, ...]] = (
    *("Gi", " 1", "1 ", "", "1GB", "100K", "0x10", "1e", "1e3", "1e-3", "4.", ".5", "-1", "+1", "1_000", "1,5", "ten"),
    *("1ki", "1u", "0", "9" * 40, "1E1", "1Ei", "Inf", "１"),
    *(0, 1.5, 1, -1, True, []),
)


def types(schema: Schema) -> tuple[str, ...]:
    """The JSON types that a schema names."""
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def is_quantity(schema: Schema) -> bool:
    """Whether a schema is that of a quantity: a pattern that knows binary suffixes."""
    return "i)|[numkMGTPE]" in schema.get("pattern", "")


def other_types(value: object) -> Iterator[Any]:
    """Values of another JSON type."""
    others: tuple[Any, ...] = ("x", 7, True, [], {})
    for other in others:
        if type(other) is not type(value):
            yield other
    if isinstance(value, list):
        yield [*value, {"x": 1} if not value or not isinstance(value[0], dict) else "x"]
        yield value[0] if value else "x"


def beyond(schema: Schema) -> Iterator[Any]:
    """Values just outside the bounds of a schema, and one inside where it is cheap to say."""
    if "minimum" in schema and abs(schema["minimum"]) < 2**31:
        yield schema["minimum"] - 1
        yield schema["minimum"]
    if "maximum" in schema and abs(schema["maximum"]) < 2**31 - 1:
        yield schema["maximum"] + 1
        yield schema["maximum"]
    if schema.get("maxLength", 10**6) < 10_000:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield ""
    if "pattern" in schema or "format" in schema:
        yield "!? no pattern takes this"
        yield "1"
    if schema.get("minItems"):
        yield []
    if schema.get("minProperties"):
        yield {}


def near(value: object, schema: Schema) -> Iterator[Any]:
    """Other values of the same type."""
    for allowed in schema.get("enum", ()):
        if allowed != value:
            yield allowed
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, 0, -1, 10**6)
    elif isinstance(value, str):
        yield from (f"{value}-other", "", "0")
    elif isinstance(value, list):
        yield []
        if value:
            yield from (value[:-1], [*value, value[0]])
    elif isinstance(value, dict):
        yield {}
        for name in value:
            yield {key: below for key, below in value.items() if key != name}


def plausible(schema: Schema) -> Iterator[Any]:
    """Values that a schema may well take, for a field that is not there."""
    yield from schema.get("enum", ())[:3]
    named = types(schema)
    if "enum" not in schema and "string" in named:
        yield from ("other", "1")
    if "integer" in named or "number" in named:
        yield from (1, 0, 100)
    if "boolean" in named:
        yield from (True, False)
    if "array" in named:
        yield []
    if "object" in named or "properties" in schema:
        yield {}
