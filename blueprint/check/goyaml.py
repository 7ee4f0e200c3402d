"""YAML as Kubernetes reads it: the semantics of `go.yaml.in/yaml/v2` behind `sigs.k8s.io/yaml`.

kubectl, Argo CD and the API server all turn YAML into JSON with that parser, so that is the value an object has,
whatever YAML 1.1 or 1.2 say. libyaml gives the events: the Go scanner is a port of it.

Sources: go.yaml.in/yaml/v2@v2.4.3 decode.go; sigs.k8s.io/yaml@v1.6.0 yaml.go.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import yaml

from blueprint.check.scalars import (
    INT64,
    ONLY_YAML_11,
    Json,
    Remark,
    Unreadable,
    difference,
    float_key,
    narrow,
    resolve,
)
from blueprint.finding import Confidence, Severity

MAX_DEPTH = 250
"""Levels of nesting we follow; the parsers of Kubernetes stop at 10,000, real objects stay under 60."""


MAX_ALIASED = 500_000
"""Values that aliases may stand for in one document; no object that etcd takes has so many."""


class Shape(Enum):
    """What a node is."""

    SCALAR = "scalar"
    MAP = "map"
    SEQUENCE = "sequence"
    ALIAS = "alias"


@dataclass(slots=True, eq=False)
class Node:
    """A piece of a document and where it starts (line and column from 0, within the document).

    `children` of a map alternate keys and values; of an alias they hold the one node it stands for.
    """

    shape: Shape
    line: int
    column: int
    text: str = ""
    tag: str = ""
    plain: bool = False
    children: list[Node] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Keys and values of a map."""
        return zip(self.children[::2], self.children[1::2], strict=True)

    def target(self) -> Node:
        """The node itself, or what the alias stands for."""
        return self.children[0] if self.shape is Shape.ALIAS else self


_TAG = "tag:yaml.org,2002:"
_TAGGED = {"bool": (bool,), "int": (int,), "float": (int, float), "null": (type(None),), "timestamp": (str,)}
_SLASH_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\/")


def compose(text: str) -> Node | None:
    """The first document of a text as a tree, None for an empty one; raises Unreadable."""
    anchors: dict[str, Node] = {}
    stack: list[Node] = []
    root: Node | None = None
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            mark, end = event.start_mark, event.end_mark
            if mark is None or end is None:
                raise TypeError("libyaml marks every event")
            if isinstance(event, yaml.ScalarEvent):
                tag = "" if event.tag in (None, "!") else event.tag.removeprefix(_TAG)
                if event.style == '"' and _SLASH_ESCAPE.search(text, mark.index, end.index):
                    message = r"not valid YAML for Kubernetes: unknown escape \/"
                    raise Unreadable(
                        Remark("YML104", message, mark.line, mark.column, fix="write / without the backslash")
                    )
                node = Node(Shape.SCALAR, mark.line, mark.column, event.value, tag, event.implicit[0])
            elif isinstance(event, yaml.MappingStartEvent):
                node = Node(Shape.MAP, mark.line, mark.column)
            elif isinstance(event, yaml.SequenceStartEvent):
                node = Node(Shape.SEQUENCE, mark.line, mark.column)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    raise Unreadable(Remark("YML107", f"unknown anchor {event.anchor}", mark.line, mark.column))
                node = Node(Shape.ALIAS, mark.line, mark.column, event.anchor, children=[anchors[event.anchor]])
            elif isinstance(event, yaml.CollectionEndEvent):
                stack.pop()
                continue
            elif isinstance(event, yaml.DocumentEndEvent):
                break
            else:
                continue
            if stack:
                stack[-1].children.append(node)
            else:
                root = node
            if node.shape is not Shape.ALIAS and event.anchor:
                anchors[event.anchor] = node
            if node.shape in (Shape.MAP, Shape.SEQUENCE):
                stack.append(node)
                if len(stack) > MAX_DEPTH:
                    raise Unreadable(_too_deep(mark.line, mark.column))
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_syntax(error, text)) from None
    except yaml.reader.ReaderError as error:
        raise Unreadable(_bad_character(error, text)) from None
    return root


def _too_deep(line: int, column: int) -> Remark:
    return Remark("YML108", f"nested deeper than {MAX_DEPTH} levels", line, column)


def _bad_character(error: yaml.reader.ReaderError, text: str) -> Remark:
    for number, line in enumerate(text.split("\n")):
        match = re.search("[^\t\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", line)
        if match:
            message = f"character U+{ord(match[0]):04X} is not allowed in YAML"
            return Remark(
                "YML102", message, number, match.start(), fix="remove it, or write it as an escape in double quotes"
            )
    return Remark("YML102", str(error.reason), 0, 0)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Remark:
    problem = str(error.problem or error.context)
    mark = error.problem_mark or error.context_mark
    lines = text.rstrip("\n").split("\n")
    if mark and mark.line >= len(lines) and error.context_mark:
        mark = error.context_mark  # never closed: the opening says more than the end of the file
    line, column = (mark.line, mark.column) if mark else (0, 0)
    if "nesting depth" in problem:
        return _too_deep(line, column)
    here = lines[line] if line < len(lines) else ""
    if "\t" in here[: column + 1] and not here[:column].strip(" \t-"):
        return Remark("YML106", "a tab is used for indentation", line, here.index("\t"), fix="indent with spaces")
    context = f" {error.context}" if error.context and error.problem else ""
    fix = ""
    if "mapping values are not allowed" in problem:
        fix = 'quote the value if it contains ": ", or mend the indentation'
    elif "cannot start any token" in problem:
        fix = f"quote the value: it starts with {here[column : column + 1]}"
    return Remark("YML104", f"not valid YAML: {problem}{context}", line, column, fix=fix)


def _allowed_ratio(decoded: int) -> float:
    """The share of a document that may come from aliases (decode.go, allowedAliasRatio)."""
    low, high = 400_000, 4_000_000
    return 0.99 if decoded <= low else 0.10 if decoded >= high else 0.99 - 0.89 * (decoded - low) / (high - low)


class Decoder:
    """Turns a tree of nodes into the value Kubernetes reads, collecting remarks on the way."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []
        self._decoded = self._aliased = self._alias_depth = 0
        self._open: set[int] = set()

    def value(self, node: Node) -> Json:
        """The value of a node; raises Unreadable where Kubernetes reads none."""
        self._decoded += 1
        self._aliased += self._alias_depth > 0
        if self._aliased > MAX_ALIASED or (
            self._aliased > 100
            and self._decoded > 1000
            and self._aliased / self._decoded > _allowed_ratio(self._decoded)
        ):
            raise Unreadable(
                Remark("YML107", "aliases expand to far too much (Kubernetes refuses it)", node.line, node.column)
            )
        match node.shape:
            case Shape.SCALAR:
                return self._json(self._scalar(node), node)
            case Shape.SEQUENCE:
                return [self.value(child) for child in node.children]
            case Shape.MAP:
                result: dict[str, Any] = {}
                self._fill(node, result)
                return result
            case Shape.ALIAS:
                return self._alias(node)

    def _alias(self, node: Node) -> Json:
        target = node.children[0]
        if id(target) in self._open:
            raise Unreadable(Remark("YML107", f"anchor {node.text} contains itself", node.line, node.column))
        self._open.add(id(target))
        self._alias_depth += 1
        if len(self._open) > MAX_DEPTH:
            raise Unreadable(_too_deep(node.line, node.column))
        value = self.value(target)
        self._alias_depth -= 1
        self._open.discard(id(target))
        return value

    def _json(self, value: Json, node: Node) -> Json:
        if isinstance(value, float):
            if not math.isfinite(value):
                message = f"{node.text} is infinite or not a number, which JSON cannot carry"
                raise Unreadable(Remark("YML109", message, node.line, node.column, fix=f'quote it: "{node.text}"'))
            return narrow(value)
        if type(value) is int and value not in INT64:
            return float(value)
        return value

    def _scalar(self, node: Node) -> Json:
        tag, text = node.tag, node.text
        if not tag:
            if not node.plain:
                return text
            remark = difference(text)
            if remark:
                self._remark(remark, node)
            return resolve(text)
        if tag == "binary":
            try:
                return base64.b64decode(text.replace("\n", ""), validate=True).decode("utf-8", "replace")
            except ValueError:
                message = "!!binary is not valid base64"
                raise Unreadable(Remark("YML109", message, node.line, node.column)) from None
        if tag not in _TAGGED:
            return text
        value = resolve(text)
        wrong = type(value) not in _TAGGED[tag]
        if wrong or (tag == "timestamp" and not ONLY_YAML_11.fullmatch(text)):
            raise Unreadable(Remark("YML109", f"cannot read {text!r} as !!{tag}", node.line, node.column))
        return text if tag == "timestamp" else value

    def _fill(self, node: Node, result: dict[str, Any]) -> None:
        merged: set[str] = set()
        for key_node, value_node in node.pairs():
            if key_node.shape is Shape.SCALAR and key_node.text == "<<" and (key_node.plain or key_node.tag == "merge"):
                self._merge(key_node, value_node, result)
                merged.update(result)
                continue
            key = self._key(key_node)
            if key in result and key not in merged:
                message = f"key {key} is given twice in one map"
                self._remark(Remark("YML105", message, 0, 0, fix="keep one of the two"), key_node)
            result[key] = self.value(value_node)

    def _merge(self, key: Node, node: Node, result: dict[str, Any]) -> None:
        self._remark(
            Remark(
                "YML204",
                "the merge key << exists in YAML 1.1 only",
                0,
                0,
                Severity.WARNING,
                Confidence.LIKELY,
                "write the merged keys out",
            ),
            key,
        )
        sources = reversed(node.children) if node.shape is Shape.SEQUENCE else [node]
        for source in sources:
            if source.target().shape is not Shape.MAP:
                raise Unreadable(Remark("YML109", "<< needs a map or a list of maps", source.line, source.column))
            result.update(self.value(source))

    def _key(self, node: Node) -> str:
        target = node.target()
        value: Json = node
        if target.shape is Shape.SCALAR:
            value = resolve(target.text) if target.plain and not target.tag else self._scalar(target)
        self._decoded += 1
        if isinstance(value, str):
            return value
        if value is None or isinstance(value, Node) or (isinstance(value, int) and value >= 2**63):
            what = "null" if value is None else "a collection" if isinstance(value, Node) else str(value)
            raise Unreadable(
                Remark("YML109", f"a key is {what}; keys must be strings", node.line, node.column, fix="quote it")
            )
        key = (
            str(value).lower()
            if isinstance(value, bool)
            else str(value)
            if isinstance(value, int)
            else float_key(value)
        )
        harmless = key == target.text
        self._remark(
            Remark(
                "YML203",
                f"key {target.text} is not a string; Kubernetes reads it as {key!r}",
                0,
                0,
                Severity.NOTE if harmless else Severity.WARNING,
                Confidence.STYLE if harmless else Confidence.LIKELY,
                f'quote it: "{target.text}"',
            ),
            node,
        )
        return key

    def _remark(self, remark: Remark, node: Node) -> None:
        self.remarks.append(replace(remark, line=node.line, column=node.column))


def child(node: Node, step: str | int) -> Node | None:
    """The member of a map or sequence, through aliases and merges; None where it has none."""
    node = node.target()
    if node.shape is Shape.SEQUENCE and isinstance(step, int):
        return node.children[step] if step < len(node.children) else None
    if node.shape is not Shape.MAP:
        return None
    for key, value in node.pairs():
        if key.target().text == str(step):
            return value
    return None
