"""Bytes of one file to documents of plain data, with the place of every field and what is wrong with the YAML.

Specs use a plain subset of YAML: no anchors, tags or keys that are not strings, and no scalar that YAML 1.1 and 1.2
read differently. libyaml finds the events; the values are those of the YAML 1.2 core schema.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Final

from yaml import (
    AliasEvent,
    CSafeLoader,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    MarkedYAMLError,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    YAMLError,
)

from blueprint.finding import Confidence, Finding, Source
from blueprint.spec.files import MAX_BYTES
from blueprint.spec.positions import Place, Segment, written
from blueprint.spec.scalars import NumberTooLarge, Scalar, is_text, resolve, surprise
from blueprint.spec.syntax import explain

MAX_DEPTH: Final = 50

# What YAML forbids outside of escapes, and the line breaks of YAML 1.1 that no editor shows as such (NEL, LS, PS).
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

#: Line and column, from 1.
At = tuple[int, int]


@dataclass(slots=True)
class Text:
    """One YAML document: `data` as JSON would hold it, and the places of its fields.

    `tainted` are paths whose value could not be taken as written: nothing else should be said of them.
    """

    file: str
    place: Place
    data: object = None
    findings: list[Finding] = field(default_factory=list)
    tainted: set[tuple[Segment, ...]] = field(default_factory=set)

    def report(self, code: str, path: tuple[Segment, ...], at: At, message: str, fix: str = "") -> None:
        """Note what is wrong at a place of the document."""
        # Two readers of the same bytes disagree: that is certain. Which one the user meant is not.
        sure = Confidence.LIKELY if code == "SPC110" else Confidence.CERTAIN
        source = Source(self.file, *at)
        self.findings.append(Finding(code, message, source, confidence=sure, path=written(path), fix=fix))


@dataclass(slots=True)
class Reading:
    """The documents of a file; `finding` is what ended the reading early, None where it reached the end."""

    texts: list[Text] = field(default_factory=list)
    finding: Finding | None = None


def read(raw: bytes, file: str) -> Reading:
    """Read the documents of a file; `file` is its name in findings. Never raises on any bytes."""
    raw = raw.removeprefix(codecs.BOM_UTF8)
    unreadable = _no_text(raw, file)
    if unreadable is not None:
        return Reading(finding=unreadable)
    reading = Reading()
    builder = _Builder(file)
    parser = CSafeLoader(raw)
    try:
        while (event := parser.get_event()) is not None and type(event) is not StreamEndEvent:
            text = builder.take(event)
            if text is not None:
                reading.texts.append(text)
            if builder.too_deep:
                reading.finding = explain(None, raw.decode(), file, event.start_mark)
                break
    except MarkedYAMLError as error:
        reading.finding = explain(error, raw.decode(), file, None)
    except YAMLError as error:
        reading.finding = Finding("SPC103", f"not YAML: {error}".splitlines()[0], Source(file, 1))
    return reading


def _no_text(raw: bytes, file: str) -> Finding | None:
    if len(raw) > MAX_BYTES:
        return Finding("SPC101", f"more than {MAX_BYTES >> 20} MiB: no spec is that long", Source(file, 1))
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Finding("SPC102", "the file is UTF-16", Source(file, 1), fix="save it as UTF-8")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        kind = "binary" if b"\0" in raw else "not UTF-8"
        message = f"the file is {kind}: byte 0x{raw[error.start]:02x} here is no character"
        return Finding("SPC102", message, Source(file, *_after(raw[: error.start].decode())), fix="save it as UTF-8")
    match = _FORBIDDEN.search(text)
    if match is None:
        return None
    code = ord(match[0])
    what = "the file is binary: it holds NUL" if "\0" in text else f"an invisible control character, U+{code:04X}"
    place = Source(file, *_after(text[: match.start()]))
    return Finding("SPC102", what, place, fix=f'delete it, or write it as "\\u{code:04x}" in quotes')


def _after(text: str) -> At:
    """The place of the character that follows the text."""
    lines = re.split(r"\r\n|\r|\n", text)
    return len(lines), len(lines[-1]) + 1


class _Frame:
    """A mapping or list that is still open. A mapping with `key` None waits for a key; with `skip` it drops a value."""

    __slots__ = ("children", "items", "key", "key_at", "segment", "skip")

    def __init__(
        self, items: dict[str, object] | list[object], children: dict[Segment, Place], segment: Segment
    ) -> None:
        self.items = items
        self.children = children
        self.segment = segment
        self.key: str | None = None
        self.key_at: At = (1, 1)
        self.skip = False


class _Builder:
    """Turns events into documents without recursion."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._stack: list[_Frame] = []
        self._text = Text(file, Place(1, 1, 1, 1))
        self._anchored = False
        self.too_deep = False

    def take(self, event: Event) -> Text | None:
        """Take one event; returns a document when the event ends one that is not empty."""
        if type(event) is ScalarEvent:
            self._scalar(event)
        elif type(event) is MappingStartEvent:
            self._open({}, event)
        elif type(event) is SequenceStartEvent:
            self._open([], event)
        elif type(event) is MappingEndEvent or type(event) is SequenceEndEvent:
            self._stack.pop()
        elif type(event) is AliasEvent:
            self._alias(event)
        elif type(event) is DocumentStartEvent:
            self._stack.clear()
            self._anchored = False
            self._text = Text(self._file, Place(1, 1, 1, 1))
        elif type(event) is DocumentEndEvent and (self._text.data is not None or self._text.findings):
            return self._text
        return None

    def _path(self, *more: Segment) -> tuple[Segment, ...]:
        return (*(frame.segment for frame in self._stack[1:]), *more)

    def _next(self) -> tuple[Segment, ...]:
        """The path of the value that comes next."""
        if not self._stack:
            return ()
        frame = self._stack[-1]
        return self._path(len(frame.items) if isinstance(frame.items, list) else frame.key or "")

    def _awaits_key(self) -> _Frame | None:
        frame = self._stack[-1] if self._stack else None
        return frame if frame is not None and frame.key is None and isinstance(frame.items, dict) else None

    def _put(self, value: object, place: Place) -> Segment:
        """Hang a value where it belongs and return its segment."""
        if not self._stack:
            self._text.data, self._text.place = value, place
            return ""
        frame = self._stack[-1]
        if isinstance(frame.items, list):
            index = len(frame.items)
            frame.items.append(value)
            frame.children[index] = place
            return index
        key, frame.key = frame.key or "", None
        place.key_line, place.key_column = frame.key_at
        if not frame.skip:
            frame.items[key] = value
            frame.children[key] = place
        return key

    def _open(self, items: dict[str, object] | list[object], event: MappingStartEvent | SequenceStartEvent) -> None:
        at = _at(event)
        children: dict[Segment, Place] = {}
        place = Place(*at, *at, children=children)
        frame = self._awaits_key()
        if frame is not None:
            if self._path() not in self._text.tainted:
                fix = 'quote it where it is text, such as "{{ name }}"'
                self._text.report("SPC109", self._path(), at, "a key is text, not a mapping or a list", fix)
            # Below a key that is none, nothing more is worth saying.
            self._text.tainted.update((self._path(), self._path("")))
            frame.key, frame.skip = "", True
            segment: Segment = ""
        else:
            if event.anchor is not None or event.tag is not None:
                self._marks(event)
            segment = self._put(items, place)
        self._stack.append(_Frame(items, children, segment))
        self.too_deep = len(self._stack) > MAX_DEPTH

    def _alias(self, event: AliasEvent) -> None:
        at = _at(event)
        self._no_anchor(at)
        frame = self._awaits_key()
        if frame is not None:
            self._text.tainted.add(self._path())
            frame.key, frame.skip = "", True
            return
        self._text.tainted.add(self._next())
        self._put(None, Place(*at, *at))

    def _no_anchor(self, at: At) -> None:
        """Say it once for each document: one anchor has many aliases."""
        if not self._anchored:
            self._anchored = True
            message = "anchors, aliases and merge keys have no place in a spec"
            self._text.report("SPC106", self._path(), at, message, "write the value where it is used")

    def _marks(self, event: ScalarEvent | MappingStartEvent | SequenceStartEvent) -> None:
        """Report an anchor and a tag, which stand before a value."""
        at = _at(event)
        if event.anchor is not None:
            self._no_anchor(at)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            path = self._next()
            self._text.tainted.add(path)
            self._text.report("SPC107", path, at, f"a tag has no place in a spec: {tag[:60]}", "leave it out")

    def _scalar(self, event: ScalarEvent) -> None:
        at = _at(event)
        plain = not event.style
        frame = self._awaits_key()
        if frame is not None:
            self._key(frame, event.value, plain, at)
            if event.anchor is not None:
                self._no_anchor(at)
            return
        if event.anchor is not None or event.tag is not None:
            self._marks(event)
        value: Scalar = event.value
        if plain and event.tag is None:
            value = event.value if is_text(event.value) else self._plain(event.value, at)
        elif "\0" in event.value:
            self._text.report("SPC102", self._next(), at, "a string that holds NUL: no program can be given it")
            self._text.tainted.add(self._next())
        self._put(value, Place(*at, *at, event.value, not plain))

    def _plain(self, text: str, at: At) -> Scalar:
        """Resolve a plain scalar, and report one that is read differently elsewhere."""
        words = surprise(text)
        try:
            value = resolve(text)
        except NumberTooLarge:
            path = self._next()
            self._text.tainted.add(path)
            self._text.report("SPC111", path, at, f"a number that JSON cannot hold: {text[:40]}")
            return None
        if words:
            path = self._next()
            self._text.tainted.add(path)
            self._text.report("SPC110", path, at, f"{text} is {words}", _quoting(text))
        return value

    def _key(self, frame: _Frame, text: str, plain: bool, at: At) -> None:
        frame.key, frame.key_at, frame.skip = text, at, False
        first = frame.children.get(text)
        if first is not None:
            frame.skip = True
            message = f"duplicate key {text[:60]}: it was given in line {first.key_line}"
            self._text.report("SPC108", self._path(text), at, message, "keep one of the two")
        elif plain and text == "<<":
            frame.skip = True
            self._text.tainted.add(self._path())
            self._no_anchor(at)
        elif plain and not is_text(text):
            self._plain_key(text, at)

    def _plain_key(self, text: str, at: At) -> None:
        path = self._path(text)
        try:
            is_string = isinstance(resolve(text), str)
        except NumberTooLarge:
            is_string = False
        words = surprise(text)
        if not is_string:
            what = f"without quotes {text[:40]} is none" if text else "this one is empty"
            self._text.report("SPC109", path, at, f"a key is text: {what}", f'write "{text[:40]}"')
        elif words:
            self._text.report("SPC110", path, at, f"the key {text} is {words}", f'write "{text}"')
        else:
            return
        self._text.tainted.add(path)


def _at(event: Event) -> At:
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


def _quoting(text: str) -> str:
    lower = text.lower()
    if lower in ("y", "yes", "on"):
        return f'write true, or quote it: "{text}"'
    if lower in ("n", "no", "off"):
        return f'write false, or quote it: "{text}"'
    if text.lstrip("+-").isdecimal():
        return f'write {text.lstrip("+-0") or "0"}, or quote it: "{text}"'
    return f'quote it: "{text}"'
