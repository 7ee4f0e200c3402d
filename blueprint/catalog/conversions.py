"""Fields that are elsewhere in a newer version of an API, as the makers' own conversions move them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blueprint.catalog.tables import table


@dataclass(frozen=True, slots=True)
class FieldMove:
    """One field: `came_from` and `to` are paths in which `[]` is every item of a list; "" where it stays.

    `each` is the key under which an item of the list stands that was a value before, `values` are words that are
    written otherwise.
    """

    came_from: str
    to: str = ""
    each: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def field_moves(kind: str, before: str, after: str) -> tuple[FieldMove, ...]:
    """What moves on the way of a kind from one apiVersion to another; nothing where no table says so."""
    return tuple(
        FieldMove(each["from"], each.get("to", ""), each.get("each", ""), each.get("values", {}))
        for row in table("api_moves")["moves"]
        if kind in row["kinds"] and (row["from"], row["to"]) == (before, after)
        for each in row["fields"]
    )


def newer(kind: str, before: str) -> str:
    """The newer apiVersion of which a table knows how a kind gets there, "" for none."""
    rows = table("api_moves")["moves"]
    return next((str(row["to"]) for row in rows if kind in row["kinds"] and row["from"] == before), "")
