"""One file's bytes become objects, findings and counts.

What a manifest's body holds is what Kubernetes would read from the same text (see goyaml). Most documents take a fast
parser; one that holds anything the two could read differently, or that the fast parser refuses, takes the exact one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import Any

import yaml_rs

from blueprint.check.documents import documents, first_content, load_json, load_yaml, paired, tree_at
from blueprint.check.goyaml import Shape, child
from blueprint.check.placeholders import (
    MAX_TEMPLATE,
    OPENING,
    identity,
    is_placeholder,
    is_template,
    maybe,
    template,
    unknown_fields,
)
from blueprint.check.scalars import Json, Remark, Unreadable
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.objects import EVERYTHING, Manifest, Steps

MAX_FILE = 16 * 1024 * 1024
"""Bytes; Argo CD reads at most 10M of manifests per application (reposerver.max.combined.directory.manifests.size)."""

SILENCER = "blueprint: ignore"
"""What a comment that silences findings starts with."""

_LONE = re.compile(r"^[ \t]*(?:__[A-Z][A-Z0-9_]*__|@@?[A-Z][A-Z0-9_]*@|%%[A-Z][A-Z0-9_]*%%)[ \t]*$", re.MULTILINE)
"""A line that a script will put several lines in the place of."""

_WORDS = ("apiVersion", "kind:", '"kind"', "'kind'")
_ENVELOPES = tuple(word.encode(code) for word in _WORDS for code in ("utf-8", "utf-16-le"))
"""What a file holds that may be one of objects."""

_INVENTORIES = ("Inventory", "NodePool")
"""Kinds of documents about nodes, which may do without apiVersion (see admission.nodes)."""


@dataclass(slots=True)
class Counts:
    """How much was read: files, documents with content, objects in them, and what was left out and why.

    `doubtful` objects have fields that a placeholder leaves unknown; `templates` are documents that need another tool.
    """

    files: int = 0
    documents: int = 0
    objects: int = 0
    doubtful: int = 0
    foreign: int = 0
    templates: int = 0
    unreadable: int = 0

    def add(self, other: Counts) -> None:
        """Count what was read apart, too."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


@dataclass(slots=True)
class Reading:
    """Objects, findings and counts, ordered by file and position."""

    manifests: list[Manifest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    aside: list[Manifest] = field(default_factory=list)
    """Documents with a kind that no API server serves: configuration files, inventories of nodes."""
    texts: dict[str, str] = field(default_factory=dict)
    """Texts that cannot be read a second time (standard input), for `locate.located`."""
    templates: list[str] = field(default_factory=list)
    """Files that are templates of another tool."""
    marked: set[str] = field(default_factory=set)
    """Files with a comment that may silence findings (see `silence`)."""

    def add(self, other: Reading) -> None:
        """Take in what was read apart."""
        self.manifests += other.manifests
        self.findings += other.findings
        self.counts.add(other.counts)
        self.aside += other.aside
        self.texts |= other.texts
        self.templates += other.templates
        self.marked |= other.marked


def read_bytes(data: bytes, file: str, reading: Reading, size: int | None = None, *, asked: bool = True) -> None:
    """Read one file's bytes into `reading`; `size` is the whole size where `data` was cut at MAX_FILE + 1.

    A file that was not `asked` for itself but found in a folder may be anything: if it cannot be read and shows no sign
    of an object, that is a warning.
    """
    reading.counts.files += 1
    ours = asked or any(word in data for word in _ENVELOPES)
    problem = _unfit(data, size if size is not None else len(data))
    if problem:
        reading.counts.unreadable += 1
        said = problem if ours else _softer(problem)
        reading.findings.append(
            Finding(said.code, said.message, Source(file, said.line), said.severity, said.confidence, fix=said.fix)
        )
        return
    text = data.decode("utf-8-sig")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if SILENCER in text:
        reading.marked.add(file)
    _Reader(text, file, reading, ours=ours).run()


def _softer(remark: Remark) -> Remark:
    """What is told of a text that need not hold objects."""
    return replace(remark, severity=Severity.WARNING, confidence=Confidence.LIKELY)


def _unfit(data: bytes, size: int) -> Remark | None:
    """Why bytes are no text that Kubernetes reads; the line counts from 1, 0 is the file."""
    if size > MAX_FILE:
        message = f"{size / 2**20:.0f} MiB is more than the {MAX_FILE // 2**20} MiB that are read from one file"
        return Remark("YML103", message, 0, 0, fix="split the file, one object each")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Remark("YML102", "the file is UTF-16; Kubernetes reads UTF-8", 1, 0, fix="save it as UTF-8")
    if b"\0" in data:
        return Remark(
            "YML102", "the file is binary: it holds a NUL byte", data[: data.index(b"\0")].count(b"\n") + 1, 0
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Remark("YML102", f"byte 0x{data[error.start]:02x} is not UTF-8", line, 0, fix="save it as UTF-8")
    return None


_Unknown = Callable[[dict[str, Any]], frozenset[Steps]]
"""Which fields of a body are not known."""


def _nothing(_: dict[str, Any]) -> frozenset[Steps]:
    return frozenset()


def _everything(_: dict[str, Any]) -> frozenset[Steps]:
    return EVERYTHING


_HALF = Remark(
    "SCH114",
    "half of a surrogate pair is no character: Kubernetes keeps U+FFFD in its place",
    0,
    0,
    Severity.WARNING,
    Confidence.LIKELY,
    "write both halves, or the character itself",
)


class _Reader:
    """One file on its way to objects."""

    def __init__(self, text: str, file: str, reading: Reading, *, ours: bool) -> None:
        self.text = text
        self.file = file
        self.reading = reading
        self.ours = ours
        self.template = self.noted = False

    def run(self) -> None:
        unreadable = False
        for start, chunk, separator in documents(self.text):
            if separator:
                message = f"text after the document separator: {separator}"
                self._remark(Remark("YML110", message, 0, 3, fix="start a new line"), start - 1)
                unreadable = True
                continue
            opened = OPENING.search(chunk) is not None
            try:
                if opened and is_template(chunk):
                    self._template(chunk, start)
                    continue
                unknown = unknown_fields if maybe(chunk) else _nothing
                for value, line, column in self._values(chunk, start, self._remark):
                    self._object(value, line, column, unknown)
            except Unreadable as problem:
                if opened:
                    self._template(chunk, start)
                    continue
                if "${" in chunk and self._filled(chunk, start):
                    continue
                if _LONE.search(chunk):
                    self._pass_over()
                    continue
                unreadable = True
                self._remark(problem.remark, start)
        self.reading.counts.unreadable += unreadable
        if self.noted:
            self.reading.templates.append(self.file)

    def _template(self, chunk: str, start: int) -> None:
        """The objects of a template, as far as they can be read; of others the kind, if the text says it."""
        counts = self.reading.counts
        before = counts.objects
        self.template = True
        filled = self._filled(chunk, start)
        body: dict[str, Any] = dict(identity(chunk))
        if not filled and len(body) == 2:
            self._object(body, start + max(first_content(chunk)[0], 0), 0, _everything)
        elif not filled:
            self._pass_over()
        self.template = False
        self.noted = self.noted or not filled or counts.objects > before

    def _pass_over(self) -> None:
        """Count a document that is nothing before another tool has filled it in."""
        self.reading.counts.documents += 1
        self.reading.counts.templates += 1
        self.noted = True

    def _filled(self, chunk: str, start: int) -> bool:
        """Whether a document could be read with marks in place of its placeholders; its objects then are."""
        if len(chunk) > MAX_TEMPLATE:
            return False
        made = template(chunk)
        try:
            values = list(self._values(made.text, start, lambda remark, start: None))
        except Unreadable:
            return False
        for value, line, column in values:
            self._object(made.filled(value), line, column, _everything if made.partial else unknown_fields)
        return any(value is not None for value, _, _ in values)

    def _values(
        self, chunk: str, start: int, remarked: Callable[[Remark, int], None]
    ) -> Iterator[tuple[Json, int, int]]:
        """Values of a chunk with line (from 0, in the file) and column."""
        line, column = first_content(chunk)
        if line < 0:
            return
        if chunk.lstrip()[:1] in ("{", "["):
            values = self._json(chunk)
            line = before = begin = 0
            halves = r"\ud" in chunk.lower()
            for value, offset in values:
                line += chunk.count("\n", before, offset)
                begin = max(begin, chunk.rfind("\n", before, offset) + 1)
                before = offset
                fit = paired(value) if halves else value
                if fit != value:
                    remarked(replace(_HALF, line=line, column=offset - begin), start)
                yield fit, start + line, offset - begin
            if values:
                return
        value, node, remarks = load_yaml(chunk)
        if isinstance(value, dict) and "apiVersion" in value and "kind" in value:
            for remark in remarks:
                remarked(remark, start)
        yield value, start + (node.line if node else line), node.column if node else column

    def _json(self, chunk: str) -> list[tuple[Json, int]]:
        """Values of a chunk of JSON; none where it may be YAML, as for kubectl; Argo CD wants JSON in .json files."""
        try:
            return load_json(chunk)
        except json.JSONDecodeError as error:
            if not self.file.endswith(".json"):
                return []
            message = f"not valid JSON: {error.msg[0].lower()}{error.msg[1:]}"
            raise Unreadable(Remark("YML104", message, error.lineno - 1, error.colno - 1)) from None

    def _object(self, value: Json, line: int, column: int, unknown: _Unknown) -> None:
        counts = self.reading.counts
        counts.documents += value is not None
        if not isinstance(value, dict):
            counts.foreign += value is not None
            return
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if not (isinstance(api_version, str) and isinstance(kind, str) and api_version and kind):
            self._incomplete(value, line, column)
            return
        if unknown is not _nothing and is_placeholder(f"{api_version} {kind}"):
            self.noted = True
            counts.templates += 1
            return
        if _file_only(api_version, kind):
            counts.foreign += 1
            self.reading.aside.append(Manifest(value, Source(self.file, line + 1, column + 1)))
            return
        items = value.get("items", [] if kind == "List" else 0)
        if kind.endswith("List") and (items is None or isinstance(items, list)):
            self._list(items or [], api_version, kind, line, column, unknown)
            return
        if _encrypted(value):
            value = {key: part for key, part in value.items() if key != "sops"}
        fields = unknown(value)
        counts.objects += 1
        counts.doubtful += bool(fields)
        self.reading.manifests.append(Manifest(value, Source(self.file, line + 1, column + 1), fields))

    def _incomplete(self, value: dict[str, Any], line: int, column: int) -> None:
        """Report what is nearly an object (one of apiVersion and kind, and metadata); the rest is not ours."""
        self.reading.counts.foreign += 1
        if value.get("kind") in _INVENTORIES:
            self.reading.aside.append(Manifest(value, Source(self.file, line + 1, column + 1)))
            return
        if (
            self.template
            or not isinstance(value.get("metadata"), dict)
            or not ("apiVersion" in value or "kind" in value)
        ):
            return
        missing = [key for key in ("apiVersion", "kind") if not value.get(key)]
        message = f"{missing[0]} is missing" if missing else "apiVersion and kind must be strings"
        # Files are read by their kind; that apiVersion is missing is seen only when somebody asks the server for it.
        sure = Confidence.LIKELY if missing == ["apiVersion"] else Confidence.CERTAIN
        remark = Remark("YML111", f"not a Kubernetes object: {message}", line, column, confidence=sure)
        self._remark(remark, 0)

    def _list(self, items: list[Any], api_version: str, kind: str, line: int, column: int, unknown: _Unknown) -> None:
        """The objects of a List; members of a typed list take its version and kind, as kubectl has it."""
        places = self._item_places(line, len(items))
        for index, item in enumerate(items):
            at = places.get(index, (line, column))
            if not isinstance(item, dict):
                self._remark(Remark("YML111", f"item {index} of the {kind} is not an object", *at), 0)
                continue
            envelope = {} if kind == "List" else {"apiVersion": api_version, "kind": kind.removesuffix("List")}
            self._object({**envelope, **item}, *at, unknown)

    def _item_places(self, line: int, count: int) -> dict[int, tuple[int, int]]:
        node, start = tree_at(self.text, line + 1)
        items = child(node, "items") if node else None
        if items is None or items.target().shape is not Shape.SEQUENCE or len(items.target().children) != count:
            return {}
        return {n: (start + each.target().line, each.target().column) for n, each in enumerate(items.target().children)}

    def _remark(self, remark: Remark, start: int) -> None:
        remark = remark if self.ours else _softer(remark)
        source = Source(self.file, start + remark.line + 1, remark.column + 1)
        self.reading.findings.append(
            Finding(remark.code, remark.message, source, remark.severity, remark.confidence, fix=remark.fix)
        )


def _encrypted(value: dict[str, Any]) -> bool:
    """Whether SOPS has encrypted values of an object; what it adds goes when it is decrypted.

    Source: github.com/getsops/sops/v3 stores/stores.go (Metadata).
    """
    sops = value.get("sops")
    return isinstance(sops, dict) and "mac" in sops


@cache
def _file_groups() -> frozenset[str]:
    data = resources.files("blueprint.catalog").joinpath("data/file_only_groups.yaml").read_text("utf-8")
    table: Json = yaml_rs.loads(data)
    return frozenset(row["group"] for row in table["groups"])


def _file_only(api_version: str, kind: str) -> bool:
    """Whether this is a configuration file in Kubernetes' envelope that no API server serves."""
    group = api_version.rpartition("/")[0]
    return group in _file_groups() or f"{group}/{kind}" in _file_groups()
