"""Parse a template's text once for each shape it takes, not once for each object.

A template that writes marks where its values belong gives the same text for every object of one shape: only the values
differ. The parsed text is a mold; filled with the values of an object it is that object, without JSON being written and
YAML being read again. A mold is only made from a text that was also rendered and parsed in full, and only kept if
filling it gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import yaml_rs

_MARK = "\ue000"  # private use: no template has it in its text, and YAML reads it as it is
MARKS = tuple(f'"{_MARK}{number}"' for number in range(1000))
"""What stands in a text for the values of one object, by their position."""

_POSITIONS = {f"{_MARK}{number}": number for number in range(len(MARKS))}
_MOST_MOLDS = 4096
_MAX_DEPTH = 40
_LONGEST_KEY = 100
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1

Fill = Callable[[Sequence[object]], Any]


class Unfit(Exception):
    """A value that does not simply stay what it is when it is written and read again."""


class Molds:
    """The molds of one set of templates."""

    def __init__(self) -> None:
        self._fills: dict[str, Fill | None] = {}

    def cast(self, marked: str, values: Sequence[object]) -> dict[str, Any] | None:
        """The object of a marked text and its values; None where the text must be rendered in full."""
        fill = self._fills.get(marked)
        if fill is None:
            return None
        try:
            body: dict[str, Any] = fill(values)
        except Unfit:
            return None
        return body

    def learn(self, marked: str, values: Sequence[object], body: dict[str, Any]) -> None:
        """Make a mold of a marked text that came out as `body` when it was rendered in full."""
        if marked in self._fills or len(self._fills) >= _MOST_MOLDS:
            return
        self._fills[marked] = None
        try:
            mold: Any = yaml_rs.loads(marked, parse_datetime=False)
            fill = _map(mold)
            if _same(fill(values), body):
                self._fills[marked] = fill
        except (Unfit, ValueError, IndexError, TypeError, AttributeError, RecursionError):
            pass  # rendered in full every time


def _map(mold: dict[str, Any]) -> Fill:
    parts = [(_POSITIONS.get(key, key), *_part(child)) for key, child in mold.items()]

    def fill(values: Sequence[object]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, build, child in parts:
            if build is not None:
                child = build(values)  # noqa: PLW2901
            if isinstance(key, int):
                key = _key(values[key])  # noqa: PLW2901
                if key in result:
                    raise Unfit
            if child is not None:
                result[key] = child
        return result

    return fill


def _list(mold: list[Any]) -> Fill:
    parts = [_part(child) for child in mold]
    return lambda values: [child if build is None else build(values) for build, child in parts]


def _part(node: Any) -> tuple[Fill | None, Any]:  # noqa: ANN401 - any JSON value
    """How to make a part of the object, or what it always is."""
    if isinstance(node, dict):
        return _map(node), None
    if isinstance(node, list):
        return _list(node), None
    position = _POSITIONS.get(node) if isinstance(node, str) else None
    return (None, node) if position is None else (lambda values: _plain(values[position]), None)


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """What is read where the value was written as JSON; maps lose their nulls. Raises Unfit for all that is special."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _whole(value)
    if kind is bool or value is None:
        return value
    if kind is int and _MIN_INT <= value <= _MAX_INT:
        return value
    if kind is float and math.isfinite(value):
        return value
    if depth < _MAX_DEPTH:
        if kind is dict:
            return {_key(key): _plain(child, depth + 1) for key, child in value.items() if child is not None}
        if kind is list or kind is tuple:
            return [_plain(item, depth + 1) for item in value]
    raise Unfit


def _key(value: object) -> str:
    """The value if it is a text that can be a key wherever a key may stand."""
    if type(value) is not str or len(value) > _LONGEST_KEY:
        raise Unfit
    return _whole(value)


def _whole(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit from None
    return value


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Equal in every type, and in the order of keys."""
    return repr(one) == repr(other)
