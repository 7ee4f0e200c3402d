"""Errors of the YAML parser in the words of people who write YAML."""

from __future__ import annotations

import re
from typing import Final, Protocol

from yaml import MarkedYAMLError

from blueprint.finding import Finding, Source


class Mark(Protocol):
    """A place as the parser counts: from 0."""

    line: int
    column: int


# What libyaml says (src/scanner.c, src/parser.c of 0.2.5) and what it mostly means.
_MEANINGS: Final = {
    "mapping values are not allowed in this context": (
        "a key in a place where none can be: the indentation does not fit, or the value holds ': '",
        "align the key with its neighbours, or quote the value",
    ),
    "could not find expected ':'": ("a key without ':'", "write key: value"),
    "did not find expected key": (
        "no key where one is expected: the indentation does not fit, or a quote or bracket is missing",
        "align the key with its neighbours",
    ),
    "did not find expected node content": ("a value is missing, or begins with a character that YAML uses", "quote it"),
    "did not find expected '-' indicator": ("this line is not part of the list above", "align the '-' of all items"),
    "did not find expected ',' or ']'": ("this list is not closed, or a comma is missing", "write [a, b]"),
    "did not find expected ',' or '}'": ("this mapping is not closed, or a comma is missing", "write {a: 1, b: 2}"),
    "found unexpected end of stream": ("this quote is not closed", "close the quote"),
    "found unexpected document indicator": ("this quote is not closed", "close the quote"),
    "found unknown escape character": ("an unknown escape in double quotes", "write \\\\ for a backslash"),
    "block sequence entries are not allowed in this context": ("a list item in a place where none can be", ""),
    "block mapping entries are not allowed in this context": ("a key in a place where none can be", ""),
    "did not find expected <document start>": ("something stands after the end of the document", ""),
}
# Where the mistake began, rather than where the parser gave up.
_FROM_THE_START: Final = frozenset(
    {
        "could not find expected ':'",
        "did not find expected ',' or ']'",
        "did not find expected ',' or '}'",
        "found unexpected end of stream",
        "found unexpected document indicator",
    }
)
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7})(?: |$)")
_INDENT = re.compile(r"[ \t]*")


def explain(error: MarkedYAMLError | None, text: str, file: str, mark: Mark | None) -> Finding:
    """The finding for a parser's error; without an error: the nesting at `mark` is too deep."""
    lines = re.split(r"\r\n|\n|\r", text)
    if error is None:
        return _too_deep(_source(file, mark, lines))
    for number, line in enumerate(lines, 1):
        if _CONFLICT.match(line):
            fix = "take one of the two sides, and delete the marks"
            return Finding("SPC103", "a Git merge conflict", Source(file, number, 1), fix=fix)
    problem = error.problem or ""
    if "nesting depth" in problem:
        return _too_deep(_source(file, error.problem_mark, lines))
    for place in (error.problem_mark, error.context_mark):
        if place is not None and place.line < len(lines):
            tab = _tab(lines[place.line], place.column)
            if tab is not None:
                where = Source(file, place.line + 1, tab + 1)
                return Finding("SPC104", "a tab in the indentation: YAML indents with spaces", where, fix="use spaces")
    start = error.context_mark if problem in _FROM_THE_START else None
    source = _source(file, start or error.problem_mark or error.context_mark, lines)
    message, fix = _MEANINGS.get(problem, (problem, ""))
    if problem == "found character that cannot start any token":
        character = lines[source.line - 1][source.column - 1 : source.column]
        message, fix = f"a value cannot begin with {character}", "quote the value"
    return Finding("SPC103", f"not YAML: {message}", source, fix=fix)


def _too_deep(source: Source) -> Finding:
    return Finding("SPC105", "nested too deeply: no spec is that deep", source)


def _source(file: str, mark: Mark | None, lines: list[str]) -> Source:
    """The mark, moved back to the last line that holds text when the parser stopped behind it."""
    if mark is None:
        return Source(file, 1)
    last = len(lines) - 1
    while last > 0 and not lines[last]:
        last -= 1
    if mark.line > last:
        return Source(file, last + 1, len(lines[last]) + 1)
    return Source(file, mark.line + 1, mark.column + 1)


def _tab(line: str, column: int) -> int | None:
    """The column of a tab that is the cause: in the indentation, or where the parser stopped."""
    indent = _INDENT.match(line)
    tab = indent[0].find("\t") if indent else -1
    if tab >= 0:
        return tab
    return column if line[column : column + 1] == "\t" else None
