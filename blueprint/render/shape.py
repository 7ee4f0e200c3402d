"""What is wrong with the text of a template before it is rendered: quoted expressions and scalars of two meanings.

An expression writes JSON, which is a whole YAML value. Inside quotes or a literal block, or glued to other text, it
would put quotes into quotes. The scan reads the text between the tags line by line as YAML; it needs no values.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from blueprint.render.emit import ambiguous

# Stand-ins for `{{ … }}` and `{% … %}` in the text that is scanned.
_EXPRESSION, _TAG = "\x01", "\x02"
_BLOCK_HEADER = re.compile(r"[|>][+-]?([1-9]?)[+-]?[ \t]*(?:#.*)?$")
_COMMENT = re.compile(rf"(?:^|(?<=[\s{_TAG}]))#")
_COLON = re.compile(rf":(?=[\s{_TAG}{_EXPRESSION}]|$)")
_DASHES = re.compile(r"(?:[-?] +|[-?]$)*")
_PLAIN_BLOCK = re.compile(rf"(?:[^\s:{_TAG}]|:(?=\S)|[ ]+(?=[^\s#:{_TAG}])|[ ]+:(?=\S))+")
_PLAIN_FLOW = re.compile(rf"(?:[^\s:,\[\]{{}}{_TAG}]|:(?=[^\s,\[\]{{}}])|[ ]+(?=[^\s#:,\[\]{{}}{_TAG}]))+")
_GLUE = re.compile(rf"[^\s:,\]}}{_TAG}]|:[^\s{_TAG}{_EXPRESSION}]")  # what must not follow an expression
_SINGLE = re.compile("(?:[^']|'')*")
_DOUBLE = re.compile(r'(?:[^"\\]|\\.)*')


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong at a line of a template."""

    line: int
    code: str
    message: str
    fix: str


@dataclass(slots=True)
class _Line:
    text: str
    number: int


def faults(tokens: Iterable[tuple[int, str, str]]) -> list[Fault]:
    """The faults of a template, given the tokens of `jinja2.Environment.lex`; each said once."""
    scanner = _Scanner()
    found: dict[Fault, None] = {}
    for line in _lines(tokens):
        found.update(dict.fromkeys(scanner.line(line)))
    return list(found)


def _lines(tokens: Iterable[tuple[int, str, str]]) -> Iterator[_Line]:
    """The template's own text with stand-ins for its tags, and where each line begins."""
    line = _Line("", 1)
    for number, kind, value in tokens:
        if kind == "variable_begin":
            line.text += _EXPRESSION
        elif kind == "block_begin":
            line.text += _TAG
        elif kind == "data":
            if not line.text.strip(_TAG):
                line.number = number  # the tags before it may have swallowed line feeds
            for offset, part in enumerate(value.split("\n")):
                if offset:
                    yield line
                    line = _Line("", number + offset)
                line.text += part
    yield line


class _Scanner:
    """Carries from line to line an open quote, an open literal block and the depth of brackets."""

    def __init__(self) -> None:
        self.quote = ""
        self.depth = 0
        self.block: int | None = None  # the indent of a literal block's text
        self.parent: int | None = None  # the indent that such text must exceed, until its first line is seen

    def line(self, line: _Line) -> Iterator[Fault]:
        text = line.text
        if self.quote:
            at = column = 0
        elif self._in_block(text):
            if _EXPRESSION in text:
                yield _nested(line.number, "a literal block")
            return
        else:
            at, column = self._start(text)
            if "\t" in text[:at]:
                yield _tab(line.number)
        while at < len(text):
            step = self._quoted if self.quote else self._token
            at = yield from step(text, at, column, line.number)

    def _start(self, text: str) -> tuple[int, int]:
        """Where the first key or value of a line stands, and the column that a literal block's text must exceed."""
        if text.startswith("---"):
            return 3, 0
        at = len(text) - len(text.lstrip(" \t" + _TAG))
        if self.depth:
            return at, at
        dashes = _DASHES.match(text, at)
        first = dashes.end() if dashes else at
        # Behind `- key: |` that is the column of the key, behind `- |` the column of the last dash.
        column = max(text.rfind("-", 0, first), 0) if text[first : first + 1] in ("|", ">") else first
        return first, column - text.count(_TAG, 0, column)

    def _quoted(self, text: str, at: int, _column: int, number: int) -> Generator[Fault, None, int]:
        """Pass the rest of a quoted scalar; it may go on in the next line."""
        match = (_SINGLE if self.quote == "'" else _DOUBLE).match(text, at)
        end = match.end() if match else at
        if _EXPRESSION in text[at:end]:
            yield _nested(number, "quotes")
        if end < len(text):
            self.quote = ""
        return end + 1

    def _token(self, text: str, at: int, column: int, number: int) -> Generator[Fault, None, int]:
        """Pass one token outside quotes."""
        char = text[at]
        if char == "\t":
            yield _tab(number)
        if _COMMENT.match(text, at):
            return len(text)
        if not self.depth and (header := _BLOCK_HEADER.match(text, at)):
            if header[1]:
                self.block = column + int(header[1])  # said, whatever the first line looks like
            else:
                self.parent = column
            return len(text)
        if char in "\"'":
            self.quote = char
        elif char in "[{":
            self.depth += 1
        elif char in "]}" and self.depth:
            self.depth -= 1
        elif char == _EXPRESSION:
            if _GLUE.match(text, at + 1):
                yield _glued(number)
                return at + 2
        elif not (char in " \t" + _TAG or (self.depth and char in ",:") or _COLON.match(text, at)):
            match = (_PLAIN_FLOW if self.depth else _PLAIN_BLOCK).match(text, at)
            word = match[0] if match else char
            at += len(word)
            yield from self._word(word, text[at : at + 2], number)
            return at
        return at + 1

    def _in_block(self, text: str) -> bool:
        """Whether the line is text of a literal block; learns the block's indent from its first line."""
        text = text.replace(_TAG, "")
        indent = len(text) - len(text.lstrip(" "))
        if self.parent is not None:
            if not text.strip():
                return True
            self.block = indent if indent > self.parent else None
            self.parent = None
        if self.block is not None and text.strip() and indent < self.block:
            self.block = None
        return self.block is not None

    @staticmethod
    def _word(word: str, rest: str, number: int) -> Iterator[Fault]:
        if word[0] in "&*!":
            mark = word.split(maxsplit=1)[0].strip(_EXPRESSION)
            fix = "write the value out, or include a template"
            yield Fault(number, "TPL111", f"{mark} is an anchor, an alias or a tag of YAML", fix)
        elif _EXPRESSION in word or rest == _TAG + _EXPRESSION:
            yield _glued(number)
        elif ambiguous(word):
            message = f"{word} is not the same value in YAML 1.1 and YAML 1.2"
            yield Fault(number, "TPL110", message, f'quote the text ("{word}") or write the plain number')


def _nested(number: int, place: str) -> Fault:
    fix = 'put the whole value into one expression, as in {{ "x-" ~ name }}'
    return Fault(number, "TPL109", f"an expression inside {place} would put quotes into the text", fix)


def _glued(number: int) -> Fault:
    fix = 'put the whole value into one expression, as in {{ "x-" ~ name }}'
    return Fault(number, "TPL109", "an expression is a whole value and cannot be glued to other text", fix)


def _tab(number: int) -> Fault:
    return Fault(number, "TPL112", "a tab stands where YAML wants spaces", "write spaces")
