"""Say each repeated part of a schema once, in `$defs`: a pod template holds its container schema three times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

# Below this many characters a `$ref` saves nothing worth the indirection.
_WORTH = 160


def share(root: Schema) -> Schema:
    """The same schema, smaller: every subschema that is said twice moves to `$defs` under a readable name.

    `root` is a tree (no `$ref`, no `$defs`); the result is deterministic.
    """
    sharing = _Sharing()
    body = sharing.body(sharing.intern(root, "root"))
    return body | {"$defs": dict(sorted(sharing.defs.items()))} if sharing.defs else body


def children(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    """The subschemas of one node: keyword, name or index within it ("" for none), subschema."""
    for word in ("properties", "$defs"):
        for name, child in schema.get(word, {}).items():
            yield word, name, child
    for word in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(word), dict):
            yield word, "", schema[word]
    for word in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(word, ())):
            yield word, str(index), child


def rebuilt(schema: Schema, parts: Iterable[tuple[str, str, Any]]) -> Schema:
    """A copy of the node with other subschemas in the places that `children` names."""
    out: Schema = {word: value.copy() if isinstance(value, (dict, list)) else value for word, value in schema.items()}
    for word, name, child in parts:
        if word in ("properties", "$defs"):
            out[word][name] = child
        elif name:
            out[word][int(name)] = child
        else:
            out[word] = child
    return out


@dataclass(slots=True)
class _Sharing:
    """Equal subschemas get one number; a number that is held in two places gets a name."""

    numbers: dict[str, int] = field(default_factory=dict)
    nodes: list[Schema] = field(default_factory=list)
    parts: list[list[tuple[str, str, int]]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    places: Counter[int] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    defs: Schema = field(default_factory=dict)

    def intern(self, schema: Schema, hint: str) -> int:
        parts = [
            (word, name, self.intern(child, name if word == "properties" else hint))
            for word, name, child in children(schema)
        ]
        shell = json.dumps(rebuilt(schema, ((word, name, None) for word, name, _ in parts)), sort_keys=True)
        key = json.dumps([shell, sorted(parts)])
        if (number := self.numbers.get(key)) is not None:
            return number
        self.numbers[key] = number = len(self.nodes)
        self.nodes.append(schema)
        self.parts.append(parts)
        self.sizes.append(len(shell) + sum(self.sizes[part] for _, _, part in parts))
        self.hints.append(hint)
        self.places.update(part for _, _, part in parts)
        return number

    def body(self, number: int) -> Schema:
        return rebuilt(self.nodes[number], [(word, name, self.use(part)) for word, name, part in self.parts[number]])

    def use(self, number: int) -> Schema:
        if self.places[number] < 2 or self.sizes[number] < _WORTH:
            return self.body(number)
        if number not in self.names:
            taken = set(self.names.values())
            hint = self.hints[number]
            name = next(n for i in range(1, len(taken) + 2) if (n := hint if i == 1 else f"{hint}{i}") not in taken)
            self.names[number] = name
            self.defs[name] = self.body(number)
        return {"$ref": f"#/$defs/{name_pointer(self.names[number])}"}


def name_pointer(name: str) -> str:
    """The name as one segment of a JSON pointer in a URI fragment."""
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25").replace("#", "%23")
