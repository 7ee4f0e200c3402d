"""The line of the field that a statement is about, in the files of both sides: only for what points at lines."""

from __future__ import annotations

import re
from dataclasses import replace

from blueprint.check.documents import tree_at
from blueprint.check.goyaml import Node, Shape, child
from blueprint.finding import Source
from blueprint.review.model import Review
from blueprint.review.sides import Side, Sides

_STEP = re.compile(r"\[([^\]]*)\]|\.?([^.\[\]]+)")


def placed(review: Review, opened: Sides) -> Review:
    """The same review, with statements that stand on the line of their field, or of its nearest parent."""
    base, head = _Texts(opened.base), _Texts(opened.head)
    found = tuple(
        replace(each, old=base.place(each.old, each.path), new=head.place(each.new, each.path)) if each.path else each
        for each in review.statements
    )
    return replace(review, statements=found)


class _Texts:
    """The files of one side, each parsed once."""

    def __init__(self, side: Side) -> None:
        self._files = side.files
        self._trees: dict[tuple[str, int], tuple[Node | None, int]] = {}

    def place(self, source: Source | None, path: str) -> Source | None:
        if source is None or source.file not in self._files:
            return source
        key = (source.file, source.line)
        if key not in self._trees:
            text = self._files[source.file].decode("utf-8", "replace")
            self._trees[key] = tree_at(text, source.line)
        root, begin = self._trees[key]
        if root is None:
            return source
        node = _object(root, source.line - 1 - begin)
        found = _deepest(node, path)
        return source if found is node else Source(source.file, begin + found.line + 1, found.column + 1)


def _object(root: Node, line: int) -> Node:
    """The map that starts on a line: the document, or a member of a List."""
    items = child(root, "items")
    if root.line != line and items is not None and items.target().shape is Shape.SEQUENCE:
        return next((item.target() for item in items.target().children if item.line == line), root)
    return root


def _deepest(node: Node, path: str) -> Node:
    """The key or the item that a path such as `spec.ports[80 TCP].name` leads to, as far as it goes."""
    place = node
    steps = [(keyed, name) for keyed, name in _STEP.findall(path)]
    while steps:
        node = node.target()
        if node.shape is Shape.SEQUENCE:
            keyed, name = steps.pop(0)
            following = _member(node, keyed or name)
            if following is None:
                break
            place = node = following
        elif node.shape is Shape.MAP:
            # A key with dots in it (a label, a resource) is several steps of the path.
            name, length = _name(node, steps)
            if not length:
                break
            key, node = next((key, value) for key, value in node.pairs() if key.target().text == name)
            place, steps = key, steps[length:]
        else:
            break
    return place


def _name(node: Node, steps: list[tuple[str, str]]) -> tuple[str, int]:
    """The longest key of a map that the next steps spell, and how many they are."""
    keys = {key.target().text for key, _ in node.pairs()}
    names = []
    for keyed, name in steps:
        if keyed:
            break
        names.append(name)
    for length in range(len(names), 0, -1):
        if (joined := ".".join(names[:length])) in keys:
            return joined, length
    return "", 0


def _member(node: Node, word: str) -> Node | None:
    """The item of a list at a position, or with these values of keys."""
    items = node.target().children
    wanted = word.split(" ")
    for item in items:
        held = item.target()
        values = {value.target().text for _, value in held.pairs()} if held.shape is Shape.MAP else {held.text}
        if word in values or set(wanted) <= values:
            return item
    return items[int(word)] if word.isdecimal() and int(word) < len(items) else None
