"""Reading untyped bodies: the wrong type counts as absent, because the schema check has already reported it."""

from __future__ import annotations

import re
from typing import Any

from blueprint.objects import Body, mapping, text

__all__ = ["Body", "items", "known", "mapping", "maps", "number", "placeholder", "text", "texts"]


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def maps(value: object) -> list[Body]:
    """The members of a list, those that are no maps as empty maps, so that positions stay."""
    return [member if isinstance(member, dict) else {} for member in value] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """The members of a list, those that are no strings as empty strings."""
    return [member if isinstance(member, str) else "" for member in value] if isinstance(value, list) else []


def number(value: object, default: int | None = None) -> int | None:
    """The value if it is a whole number, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


_OPENING = re.compile(r"\$[{(]|\{[{%]|<<|@@")


def placeholder(value: object) -> bool:
    """Whether a text holds what another tool will replace, so that nothing can be said of it."""
    return isinstance(value, str) and _OPENING.search(value) is not None


def known(value: object) -> str:
    """The value if it is text without a placeholder, else ""."""
    return value if isinstance(value, str) and not placeholder(value) else ""
