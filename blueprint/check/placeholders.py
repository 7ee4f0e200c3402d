"""Text that another tool fills in: which fields it leaves unknown, and how a template is read all the same.

A template of Go, Helm or Jinja2 is no YAML. It is read with each of its actions replaced by a mark of the same length,
which YAML takes for text; lines that hold nothing but actions (`{{- if }}`, `{{- toYaml … }}`) are left out, and then
only the identity of the object counts as known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from blueprint.catalog.tables import table
from blueprint.check.scalars import Json
from blueprint.objects import Steps

# One for each form, all starting with letters that stand in them: much faster than one for all.
_MAYBE = tuple(
    re.compile(text)
    for text in (
        r"\{[{%]",
        r"\$[{A-Z]",
        r"<[^<>\n]*>",
        "@[A-Z]",
        "__[A-Z]",
        "%%[A-Z]",
        r"#\{",
        r"\{[A-Z]",
        r"\$\$\w",
        "HELMSUBST_",
        "ko://",
        r"ENC\[AES",
        r"FILLED[ _]BY",
        r"YOUR[_-]",
        r"REPLACE[_-]WITH",
    )
) + tuple(re.compile(rf"{word}[_-]?(?:ME|THIS)") for word in ("CHANGE", "REPLACE"))

OPENING = re.compile(r"\{[{%#]")
"""Where an action of a template starts."""

MAX_TEMPLATE = 1024 * 1024
"""Characters; a longer template is not read. Charts of Helm are kept in a Secret of at most 1 MiB."""

_QUOTED = r'"(?:[^"\\\n]|\\.)*+"|`[^`]*+`'
# By its opening: what ends an action, or shows that it has no end. Quotes are passed over whole.
_INSIDE = {
    "{{": re.compile(rf"\}}\}}|\{{\{{|{_QUOTED}"),
    "{%": re.compile(r"%\}|\{%"),
    "{#": re.compile(r"#\}|\{#"),
    "${": re.compile(r"\}|\$\{|\n"),
}
_ANY_OPENING = re.compile(r"\{[{%#]|\$\{(?!\{)")
_COMMENT = re.compile(r"\{\{-?\s*/\*.*\*/\s*-?\}\}|\{#.*#\}", re.DOTALL)
_HELM = re.compile(
    r"\{\{-?\s*(?:include|tpl|toYaml)\b|\{\{[^{}\n]*\.(?:Values|Release|Chart|Capabilities)\b|\{%-?\s*\w"
)
_BLOCK = re.compile(r"\{\{-?\s*(?:if|else|end|range|with|define|template|block|include|toYaml|tpl)\b|\{%")
_MARK = re.compile("\ue000(\\d+)\ue001")
_IDENTITY = re.compile(r"^(apiVersion|kind):[ \t]*[\"']?([A-Za-z][\w./-]*)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


def is_template(text: str) -> bool:
    """Whether a document is to be read as a template even where it is YAML, because its actions stand for more."""
    kind = _kind(identity(text))
    row = _filled_in().get(kind)
    if row is not None and row.get("free"):
        return False
    return _HELM.search(text) is not None or (row is None and _BLOCK.search(text) is not None)


def maybe(text: str) -> bool:
    """A quick look: a text of which this is False holds no placeholder."""
    return any(form.search(text) for form in _MAYBE)


def is_placeholder(text: str) -> bool:
    """Whether a text holds a placeholder of any form."""
    return _known(text) if len(text) < _SHORT else _holds(text)


_SHORT = 100
"""Characters of a text whose answer is kept: keys and values come again from object to object."""


def _holds(text: str) -> bool:
    return maybe(text) and _forms().search(text) is not None


_known = lru_cache(maxsize=1 << 14)(_holds)


@dataclass(frozen=True, slots=True)
class Template:
    """A template made readable: `text` has as many lines as before; `partial` tells that parts were left out."""

    text: str
    actions: tuple[str, ...]
    partial: bool

    def filled(self, value: Json) -> Json:
        """A value read from `text`, with the actions again where their marks stand."""
        if isinstance(value, str):
            return _MARK.sub(self._action, value) if "\ue000" in value else value
        if isinstance(value, list):
            return [self.filled(member) for member in value]
        if isinstance(value, dict):
            return {self.filled(key): self.filled(member) for key, member in value.items()}
        return value

    def _action(self, mark: re.Match[str]) -> str:
        number = mark[1].lstrip("0") or "0"  # Python reads no number of some thousand digits
        at = int(number) if len(number) < 10 else len(self.actions)
        return self.actions[at] if at < len(self.actions) else mark[0]


def template(text: str) -> Template:
    """Make a template readable as YAML."""
    partial = False
    actions: list[str] = []
    pieces: list[str] = []
    runs = list(_runs(text))
    position = 0
    for number, run in enumerate(runs):
        begin, end = run[0][0], run[-1][1]
        before = text[position:begin]
        following = runs[number + 1][0][0] if number + 1 < len(runs) else len(text)
        first = not position or "\n" in before
        alone = (
            first and not before.rpartition("\n")[2].strip() and _ends_line(text[end:following], following == len(text))
        )
        pieces.append(before)
        if alone:
            partial = partial or not all(_COMMENT.fullmatch(text, *span) for span in run)
            pieces.append("\n" * text.count("\n", begin, end))
        else:
            for start, stop in run:
                actions.append(text[start:stop])
                pieces.append(f"\ue000{str(len(actions) - 1).zfill(stop - start - 2)}\ue001")
            pieces.append("\n" * text.count("\n", begin, end))
        position = end
    pieces.append(text[position:])
    return Template("".join(pieces), tuple(actions), partial)


def _ends_line(after: str, last: bool) -> bool:
    line, newline, _ = after.partition("\n")
    return not line.strip() and (bool(newline) or last)


def _runs(text: str) -> Iterator[list[tuple[int, int]]]:
    """Actions, those that only blanks part together; each with where it starts and ends."""
    run: list[tuple[int, int]] = []
    for start, stop in _actions(text):
        if run and text[run[-1][1] : start].strip(" \t"):
            yield run
            run = []
        run.append((start, stop))
    if run:
        yield run


def _actions(text: str) -> Iterator[tuple[int, int]]:
    """Each action that has an end, in one pass over the text."""
    opening = _ANY_OPENING.search(text)
    while opening:
        start, position = opening.start(), len(text)
        for inside in _INSIDE[opening[0]].finditer(text, start + 2):
            if inside[0][-1] == "}":
                position = inside.end()
                yield start, position
                break
            if inside[0][0] not in '"`':  # another starts, or the line ends: this one has no end
                position = inside.start()
                break
        opening = _ANY_OPENING.search(text, position)


def identity(text: str) -> Mapping[str, str]:
    """`apiVersion` and `kind` of a template that cannot be read, as far as its lines say them."""
    return {match[1]: match[2] for match in _IDENTITY.finditer(text)}


def unknown_fields(body: Mapping[str, Json]) -> frozenset[Steps]:
    """The fields of an object that hold, or whose names hold, a placeholder."""
    kind = _kind(body)
    row = _filled_in().get(kind, {})
    # No controller fills in the metadata of its own object.
    found = set(_below(body.get("metadata"), ("metadata",), templates=True))
    shaped = row.get("shaped", ()) if row.get("free") else body.keys() - {"metadata"}
    found.update(_below({key: body.get(key) for key in shaped}, (), templates=not row or bool(row.get("free"))))
    return frozenset(found)


def fields_with(word: str, body: Mapping[str, Json]) -> frozenset[Steps]:
    """The fields of an object whose text holds a word."""
    return frozenset(steps for steps, value in _leaves(body, ()) if word in value)


def _leaves(value: Json, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield steps, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, (*steps, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _leaves(member, (*steps, index))


def _below(value: Json, steps: Steps, *, templates: bool) -> Iterator[Steps]:
    if isinstance(value, str):
        if _replaced(value, steps, templates=templates):
            yield steps
    elif isinstance(value, dict):
        for key, member in value.items():
            if _replaced(key, (), templates=templates):
                yield steps  # what stands for a key may stand for several, and for none
            else:
                yield from _below(member, (*steps, key), templates=templates)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _below(member, (*steps, index), templates=templates)


def _replaced(value: str, steps: Steps, *, templates: bool) -> bool:
    """Whether a text holds a placeholder, given where it stands."""
    if not is_placeholder(value):
        return False
    shell = len(steps) > 1 and steps[-2] in ("command", "args") and len(value.split()) > 1
    if templates and not shell:
        return True
    return any(
        form.search(value)
        for form, in_shell, in_template in _each_form()
        if not (shell and in_shell) and (templates or not in_template)
    )


def _kind(body: Mapping[str, Json]) -> str:
    """`Kind.group`, `Kind` for the core group."""
    group, slash, _ = str(body.get("apiVersion")).partition("/")
    return f"{body.get('kind')}.{group}" if slash else str(body.get("kind"))


@cache
def _each_form() -> tuple[tuple[re.Pattern[str], bool, bool], ...]:
    """The forms, each with whether a shell or a controller may fill it in, too."""
    return tuple(
        (re.compile(_pattern(row), re.DOTALL), "shell" in row, "template" in row)
        for row in table("placeholders")["forms"]
    )


@cache
def _forms() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_pattern(row)})" for row in table("placeholders")["forms"]), re.DOTALL)


def _pattern(row: Mapping[str, str]) -> str:
    return row["pattern"] if "inside" in row else rf"\A\s*(?:{row['pattern']})\s*\Z"


@cache
def _filled_in() -> Mapping[str, Mapping[str, Json]]:
    return {row["kind"]: row for row in table("placeholders")["filled_in"]}
