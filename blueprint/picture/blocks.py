"""A page as a list of blocks, written once as Markdown and once as HTML.

Text may hold `code` in back quotes and [words](target); everything else stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from blueprint.picture import page
from blueprint.picture.model import Picture, Table

_INLINE = re.compile(r"`([^`]+)`|\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 2 begins a chapter."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A task: who does it, what they need, what comes of it, and the command that shows that it is done."""

    title: str
    owner: str
    input: str
    output: str
    acceptance: str

    def rows(self) -> tuple[tuple[str, str], ...]:
        """Its fields with their names."""
        fields = (
            ("Owner", self.owner),
            ("Input", self.input),
            ("Output", self.output),
            ("Acceptance", self.acceptance),
        )
        return fields


Block = Heading | Text | Points | Table | Card | Picture


def below(blocks: Iterable[Block], base: str) -> list[Block]:
    """The blocks with every link that is no web address below `base`, a path with "/": where the page is not there."""

    def moved(words: str) -> str:
        return _INLINE.sub(lambda m: m[0] if m[1] or "://" in m[3] else f"[{m[2]}]({base}/{m[3]})", words)

    found: list[Block] = []
    for block in blocks:
        if isinstance(block, Text):
            found.append(Text(moved(block.text)))
        elif isinstance(block, Points):
            found.append(Points(tuple(map(moved, block.items))))
        elif isinstance(block, Table):
            found.append(Table(block.head, tuple(tuple(map(moved, row)) for row in block.rows)))
        elif isinstance(block, Card):
            found.append(Card(block.title, *(moved(words) for _, words in block.rows())))
        else:
            found.append(block)
    return found


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """The page as Markdown; pictures are Mermaid, which forges draw."""
    return "\n\n".join([f"# {title}", *(_markdown(block) for block in blocks)]) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Points):
        return "\n".join(f"- {item}" for item in block.items)
    if isinstance(block, Card):
        return f"**{block.title}**\n\n" + "\n".join(f"- {name}: {words}" for name, words in block.rows())
    if isinstance(block, Picture):
        return f"{block.says}\n\n```mermaid\n{block.mermaid}```"
    return "\n".join(_lines(block))


def _lines(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(map(_cell, table.head)) + " |"
    yield "|" + "---|" * len(table.head)
    for row in table.rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def html(title: str, blocks: Sequence[Block], *, intro: str = "") -> str:
    """The page as one file of HTML; pictures are drawn in it."""
    chapters = [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]
    links = "".join(f'<li><a href="#{page.slug(chapter)}">{escape(chapter)}</a></li>' for chapter in chapters)
    nav = f'<nav aria-label="Chapters"><ul>{links}</ul></nav>\n'
    return page.document(title, nav + "".join(_sections(blocks)), intro=intro)


def _sections(blocks: Iterable[Block]) -> Iterator[str]:
    """HTML of the blocks; cards that follow each other share a grid."""
    heading, cards = "", list[str]()
    for block in blocks:
        if not isinstance(block, Card) and cards:
            yield f'<div class="cards">\n{"".join(cards)}</div>\n'
            cards = []
        if isinstance(block, Card):
            cards.append(_card(block))
        elif isinstance(block, Heading):
            heading = block.text
            yield f'<h{block.level} id="{page.slug(block.text)}">{escape(block.text)}</h{block.level}>\n'
        elif isinstance(block, Text):
            yield f"<p>{inline(block.text)}</p>\n"
        elif isinstance(block, Points):
            yield "<ul>\n" + "".join(f"<li>{inline(item)}</li>\n" for item in block.items) + "</ul>\n"
        elif isinstance(block, Picture):
            yield page.figure(block, level=3)
        else:
            yield page.table(block, heading, cell=inline)
    if cards:
        yield f'<div class="cards">\n{"".join(cards)}</div>\n'


def _card(card: Card) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{inline(words)}</dd>" for name, words in card.rows())
    return f"<article><h3>{escape(card.title)}</h3><dl>{rows}</dl></article>\n"


def _code(code: str) -> str:
    """A command, whose short options are not broken at their hyphens."""
    words = [escape(word) for word in code.split(" ")]
    return " ".join(f'<span class="o">{word}</span>' if re.match(r"-\S{1,20}$", word) else word for word in words)


def inline(text: str) -> str:
    """Text as HTML: code and links, nothing else; a link that would run a script stays text."""
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts.append(escape(text[end : found.start()]))
        code, words, target = found.groups()
        if code:
            parts.append(f"<code>{_code(code)}</code>")
        elif re.match(r"(?!https?:)[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
            parts.append(escape(found[0]))
        else:
            parts.append(f'<a href="{escape(target)}">{escape(words)}</a>')
        end = found.end()
    return "".join([*parts, escape(text[end:])])
