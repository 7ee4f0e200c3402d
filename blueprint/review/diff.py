"""What differs between two versions of one object, by the meaning that the API gives to its lists.

Items of a list map are paired by their keys, members of a set by their value, all other lists by position. The order of
a list map means nothing, unless order is part of what the list says (`ordered`); where it alone differs it is kept in
`Difference.reordered`, because a changed order still changes the hash of a pod template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from blueprint.catalog.crds import VALUE, Json
from blueprint.catalog.schemas import ListMap

SchemaPath = tuple[str, ...]
_T = TypeVar("_T")


class Item(NamedTuple):
    """The step to an item of a list map: its keys with their values."""

    keys: tuple[tuple[str, Any], ...]


class Member(NamedTuple):
    """The step to a member of a set."""

    value: Any


Step = str | int | Item | Member
Steps = tuple[Step, ...]


class Amount(str):
    """A quantity as it is written; two of them are the same when they are as much (`1Gi` and `1024Mi`)."""

    much: Fraction

    def __new__(cls, written: str, much: Fraction) -> Amount:
        """Keep the text with its amount."""
        made = super().__new__(cls, written)
        made.much = much
        return made


class _Missing:
    """Nothing is there."""

    def __repr__(self) -> str:
        return "MISSING"

    def __copy__(self) -> _Missing:
        return self

    def __deepcopy__(self, _: object) -> _Missing:
        return self


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Edit:
    """One place that differs; `before` or `after` is MISSING where nothing is there."""

    steps: Steps
    before: Any
    after: Any

    @property
    def path(self) -> SchemaPath:
        """The way by names alone, `[]` for every item of a list."""
        return tuple(step if isinstance(step, str) else "[]" for step in self.steps)


@dataclass(frozen=True, slots=True)
class Difference:
    """The edits that lead from one value to the other, and the lists of which only the order differs."""

    edits: tuple[Edit, ...]
    reordered: tuple[Steps, ...]


def _never(path: SchemaPath, old: list[Any], new: list[Any]) -> bool:
    return False


class Lists:
    """What is known of the lists of a kind, by schema path: `[]` for items, `{}` for the values of a free map.

    `ordered` says of a list map, by its path and both values, whether its order is part of what it says; `free` of a
    list that is told apart by nothing, whether its order is no part of it.
    """

    def __init__(
        self,
        maps: Mapping[SchemaPath, ListMap],
        sets: Iterable[SchemaPath] = (),
        ordered: Callable[[SchemaPath, list[Any], list[Any]], bool] = _never,
        free: Callable[[SchemaPath, list[Any], list[Any]], bool] = _never,
    ) -> None:
        self._maps, self._sets = _Places(dict(maps)), _Places(dict.fromkeys(sets, True))
        self.ordered, self.free = ordered, free

    def where(self, ordered: Callable[[SchemaPath, list[Any], list[Any]], bool]) -> Lists:
        """The same lists, of an object that says itself where order counts."""
        found = copy(self)
        found.ordered = ordered
        return found

    def keys(self, path: SchemaPath) -> ListMap | None:
        """The keys of the list map at a path, None where there is none."""
        return self._maps.at(path)

    def is_set(self, path: SchemaPath) -> bool:
        """Whether the list at a path is a set."""
        return self._sets.at(path) is True


class _Places(Generic[_T]):
    """Values by path, where a pattern may hold `{}` for any name."""

    def __init__(self, found: dict[SchemaPath, _T]) -> None:
        self._exact = found
        self._open = [(path, value) for path, value in found.items() if VALUE in path]

    def at(self, path: SchemaPath) -> _T | None:
        if (found := self._exact.get(path)) is not None:
            return found
        for pattern, value in self._open:
            if len(pattern) == len(path) and all(p in (step, VALUE) for p, step in zip(pattern, path, strict=True)):
                return value
        return None


NO_LISTS = Lists({})
_MOST = 200
"""Items of a list of which it is looked whether another order is all that differs."""


def keyed_path(steps: Steps) -> str:
    """A path for people: `spec.ports[80 TCP].name`."""
    text = ""
    for step in steps:
        if isinstance(step, str):
            text += f".{step}" if text else step
        elif isinstance(step, Item):
            text += f"[{' '.join(str(value) for _, value in step.keys)}]"
        else:
            text += f"[{step.value if isinstance(step, Member) else step}]"
    return text


def same(left: Json, right: Json) -> bool:
    """Whether two JSON values are equal; True is not 1, and 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Amount) and isinstance(right, Amount):
        return left.much == right.much
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def permuted(old: Json, new: Json) -> bool:
    """Whether two lists hold the same items, in another order."""
    if not (isinstance(old, list) and isinstance(new, list)) or len(old) != len(new) or same(old, new):
        return False
    left = list(new)
    for value in old:
        at = next((at for at, other in enumerate(left) if same(value, other)), None)
        if at is None:
            return False
        del left[at]
    return True


def diff(old: Json, new: Json, lists: Lists = NO_LISTS) -> Difference:
    """The edits from `old` to `new`."""
    walker = _Walker(lists)
    edits = tuple(walker.walk((), (), old, new))
    return Difference(edits, tuple(walker.reordered))


class _Walker:
    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self.reordered: list[Steps] = []

    def walk(self, path: SchemaPath, steps: Steps, old: Json, new: Json) -> Iterator[Edit]:
        if isinstance(old, dict) and isinstance(new, dict):
            for name in sorted(old.keys() | new.keys(), key=str):
                before, after = old.get(name, MISSING), new.get(name, MISSING)
                if before is MISSING or after is MISSING:
                    yield Edit((*steps, name), before, after)
                else:
                    yield from self.walk((*path, name), (*steps, name), before, after)
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._list(path, steps, old, new)
        elif not same(old, new):
            yield Edit(steps, old, new)

    def _list(self, path: SchemaPath, steps: Steps, old: list[Any], new: list[Any]) -> Iterator[Edit]:
        below = (*path, "[]")
        if (shape := self._lists.keys(path)) is not None:
            before, after = keyed(old, shape), keyed(new, shape)
            if before is not None and after is not None:
                yield from self._items(path, steps, before, after)
                return
        elif self._lists.is_set(path) and _distinct(old) and _distinct(new):
            yield from (Edit((*steps, Member(value)), value, MISSING) for value in old if not _holds(new, value))
            yield from (Edit((*steps, Member(value)), MISSING, value) for value in new if not _holds(old, value))
            self._order(steps, [v for v in old if _holds(new, v)], [v for v in new if _holds(old, v)])
            return
        if len(old) != len(new):
            yield Edit(steps, old, new)
            return
        if len(old) <= _MOST:
            if permuted(old, new):
                if self._lists.free(path, old, new):
                    self.reordered.append(steps)
                else:
                    yield Edit(steps, old, new)
                return
            if _shifted(old, new):  # item by item, each would seem to become its neighbour
                yield Edit(steps, old, new)
                return
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from self.walk(below, (*steps, index), left, right)

    def _items(self, path: SchemaPath, steps: Steps, old: dict[Item, Any], new: dict[Item, Any]) -> Iterator[Edit]:
        moved = [item for item in old if item in new] != [item for item in new if item in old]
        if moved and self._lists.ordered(path, list(old.values()), list(new.values())):
            yield Edit(steps, list(old.values()), list(new.values()))  # and on: another order must not hide the items
        elif moved:
            self.reordered.append(steps)
        for item in (*old, *(item for item in new if item not in old)):
            before, after = old.get(item, MISSING), new.get(item, MISSING)
            if before is MISSING or after is MISSING:
                yield Edit((*steps, item), before, after)
            else:
                yield from self.walk((*path, "[]"), (*steps, item), before, after)

    def _order(self, steps: Steps, old: list[Any], new: list[Any]) -> None:
        if not same(old, new):
            self.reordered.append(steps)


def _shifted(old: list[Any], new: list[Any]) -> bool:
    """Whether an item, one with fields of its own, stands at another place than before."""
    pairs = list(zip(old, new, strict=True))
    moved = [value for value, other in pairs if isinstance(value, dict) and not same(value, other)]
    come = [other for value, other in pairs if isinstance(other, dict) and not same(value, other)]
    return any(_holds(come, value) for value in moved)


def keyed(value: list[Any], shape: ListMap) -> dict[Item, Any] | None:
    """The items of a list map by their keys; None where it is none (a repeated key, an item that is no map)."""
    found: dict[Item, Any] = {}
    for entry in value:
        if not isinstance(entry, dict):
            return None
        item = Item(tuple((key, _hashable(entry.get(key, shape.defaults.get(key)))) for key in shape.keys))
        if item in found or any(key is None for _, key in item.keys):
            return None
        found[item] = entry
    return found


def _hashable(value: Json) -> Json:
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _distinct(value: list[Any]) -> bool:
    return not any(_holds(value[:index], entry) for index, entry in enumerate(value))


def _holds(values: Iterable[Any], wanted: Json) -> bool:
    return any(same(value, wanted) for value in values)


def apply(edits: Iterable[Edit], value: Json, lists: Lists = NO_LISTS) -> Json:
    """`value` after the edits; a copy where anything changes. Items that come new stand at the end of their list."""
    for edit in edits:
        value = _applied(edit.steps, (), edit.after, value, lists)
    return value


def _applied(steps: Steps, path: SchemaPath, after: Json, value: Json, lists: Lists) -> Json:
    if not steps:
        return after
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        out = dict(value)
        child = _applied(rest, (*path, step), after, value.get(step), lists)
        if child is MISSING:
            out.pop(step, None)
        else:
            out[step] = child
        return out
    listed = list(value)
    at = step if isinstance(step, int) else _position(step, path, listed, lists)
    child = _applied(rest, (*path, "[]"), after, listed[at] if at < len(listed) else None, lists)
    listed[at : at + 1] = [] if child is MISSING else [child]
    return listed


def _position(step: Item | Member, path: SchemaPath, listed: list[Any], lists: Lists) -> int:
    """Where an item stands, the end for one that is not there."""
    if isinstance(step, Member):
        return next((at for at, entry in enumerate(listed) if same(entry, step.value)), len(listed))
    shape = lists.keys(path)
    items = (keyed(listed, shape) if shape else None) or {}
    return next((at for at, item in enumerate(items) if item == step), len(listed))


def normal(value: Json, lists: Lists = NO_LISTS, path: SchemaPath = ()) -> Json:
    """The value with list maps and sets in the order of their keys: equal for values that mean the same."""
    if isinstance(value, dict):
        return {name: normal(child, lists, (*path, name)) for name, child in value.items()}
    if not isinstance(value, list):
        return value
    out = [normal(child, lists, (*path, "[]")) for child in value]
    shape = lists.keys(path)
    if shape is not None and (items := keyed(out, shape)) is not None:
        return [items[item] for item in sorted(items, key=repr)]
    return sorted(out, key=repr) if lists.is_set(path) and _distinct(out) else out
