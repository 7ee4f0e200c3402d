"""Reading bodies that anybody wrote: a value of the wrong shape reads as an absent one, as for a lenient server.

Schema rules report wrong shapes (see `blueprint.check`); a decision must only not stumble over them.
"""

from __future__ import annotations

from typing import Any

from blueprint.objects import Body, at, mapping, text

__all__ = ["Body", "Json", "at", "labels", "mapping", "or_one", "rows", "text", "texts", "whole"]

Json = Any
"""What a manifest may hold."""


def rows(value: object, *path: str) -> list[Body]:
    """The mappings in the list below the names; other items are passed over."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: object, *path: str) -> list[str]:
    """The strings in the list below the names."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def whole(value: object, *path: str) -> int | None:
    """The whole number below the names, None where there is none."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def or_one(count: int | None) -> int:
    """A count of pods or copies, which Kubernetes takes for 1 where nothing is said."""
    return 1 if count is None else count


def labels(value: object, *path: str) -> dict[str, str]:
    """The string-to-string mapping below the names."""
    return {key: item for key, item in mapping(value, *path).items() if isinstance(key, str) and isinstance(item, str)}
