"""Lists that hold an item once: list-maps by their keys, sets by the whole item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from blueprint.catalog.crds import ITEM, VALUE, Json, Path
from blueprint.catalog.schemas import Kind, ListMap

Steps = tuple[str | int, ...]


@dataclass(slots=True)
class Lists:
    """The places of one kind that must hold an item once, as a tree along the paths."""

    unique: ListMap | None = None
    below: dict[str, Lists] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: Kind) -> Lists:
        """The tree of a kind; `metadata` is left out, whose lists no server compares on create."""
        root = cls()
        whole = ListMap((), {})
        for path, unique in [*kind.list_maps.items(), *((path, whole) for path in kind.sets)]:
            if path[:1] != ("metadata",):
                root._add(path, unique)
        return root

    def _add(self, path: Path, unique: ListMap) -> None:
        node = self
        for step in path:
            node = node.below.setdefault(step, Lists())
        node.unique = unique

    def repeats(self, value: Json, path: Steps = ()) -> Iterator[tuple[Steps, Mapping[str, Any] | None]]:
        """The path of each item that repeats an earlier one, and the keys that it repeats (None: the whole item)."""
        if isinstance(value, dict):
            for name, child in value.items():
                if (node := self.below.get(name) or self.below.get(VALUE)) is not None:
                    yield from node.repeats(child, (*path, name))
        elif isinstance(value, list):
            if self.unique is not None and len(value) > 1:
                yield from _repeated(value, path, self.unique)
            if (node := self.below.get(ITEM)) is not None:
                for index, child in enumerate(value):
                    yield from node.repeats(child, (*path, index))


def _repeated(items: list[Any], path: Steps, unique: ListMap) -> Iterator[tuple[Steps, Mapping[str, Any] | None]]:
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        keys = _keys(item, unique)
        text = orjson.dumps(item if keys is None else keys, option=orjson.OPT_SORT_KEYS)
        if text in seen:
            yield (*path, index), keys
        seen.add(text)


def _keys(item: Json, unique: ListMap) -> Mapping[str, Any] | None:
    if not unique.keys:
        return None
    held = unique.defaults | item if isinstance(item, dict) else unique.defaults
    return {key: held[key] for key in unique.keys if key in held}
