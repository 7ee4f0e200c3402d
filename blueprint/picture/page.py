"""One page with pictures: a single file that works without network and without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib import resources

from blueprint.picture.model import Picture, Table
from blueprint.picture.theme import DARK, FACES, LIGHT, variables


@cache
def _style() -> str:
    sheet = (resources.files("blueprint.picture") / "page.css").read_text("utf-8")
    light = f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
    dark = f"@media(prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    return f"{light}\n{dark}\nbody{{font-family:{FACES}}}\n{sheet}"


def document(title: str, body: str, *, intro: str = "") -> str:
    """A whole page; `body` is HTML, `title` and `intro` are text."""
    lead = f"<p>{escape(intro)}</p>\n" if intro else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>\n{lead}</header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def pictures(title: str, every: Sequence[Picture], *, intro: str = "") -> str:
    """A page of pictures, each with what it says and the same facts as a table."""
    links = "".join(f'<li><a href="#{slug(each.title)}">{escape(each.title)}</a></li>' for each in every)
    nav = f'<nav aria-label="Pictures"><ul>{links}</ul></nav>\n' if len(every) > 1 else ""
    return document(title, nav + "".join(figure(each) for each in every), intro=intro)


def figure(each: Picture, level: int = 2) -> str:
    """One picture as a section."""
    name = slug(each.title)
    return (
        f'<section aria-labelledby="{name}">\n<h{level} id="{name}">{escape(each.title)}</h{level}>\n'
        f"<p>{escape(each.says)}</p>\n"
        f'<div class="wide" tabindex="0" role="group" aria-label="Picture: {escape(each.title)}">\n'
        f"{each.scene.svg()}</div>\n"
        f"<details><summary>{escape(each.title)} as a table</summary>\n"
        f"{table(each.table, each.title)}</details>\n</section>\n"
    )


def table(found: Table, name: str, *, cell: Callable[[str], str] = escape) -> str:
    """A table that can be scrolled sideways, by keys too; `cell` makes HTML of the text in it."""
    head = "".join(f'<th scope="col">{escape(words)}</th>' for words in found.head)
    rows = "\n".join("<tr>" + "".join(f"<td>{cell(words)}</td>" for words in row) + "</tr>" for row in found.rows)
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="Table: {escape(name)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n"
    )


def slug(words: str) -> str:
    """Words as the name of a place in a page."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "section"
