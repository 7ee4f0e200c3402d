"""What pictures are drawn with: boxes, words, lines, in units of one CSS pixel; the same scene gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from blueprint.picture.metrics import fitted, width
from blueprint.picture.theme import style

MARGIN = 20.0


@dataclass(frozen=True, slots=True)
class Words:
    """One line of text as it was placed: from `left` to `right`, on the line `y`."""

    text: str
    left: float
    right: float
    y: float
    size: float


@dataclass(slots=True)
class Scene:
    """A picture that is being drawn. `name` is an identifier of its own within a page."""

    name: str
    title: str
    description: str
    width: float = 0.0
    height: float = 0.0
    words: list[Words] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)

    def grow(self, x: float, y: float) -> None:
        """Make room for a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def box(
        self, x: float, y: float, w: float, h: float, fill: str, *, radius: float = 4, outline: str = "", tip: str = ""
    ) -> None:
        """A rectangle; `outline` is a class of lines, `tip` is told by the pointer and by screen readers."""
        self.grow(x + w, y + h)
        kind = f"f-{fill}" if fill else "n"
        shape = f'class="{kind}{" " + outline if outline else ""}"'
        plain = "" if fill else ' fill="none"'
        rounded = f' rx="{_n(radius)}"' if radius else ""
        self._put(
            f'<rect {shape}{plain} x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"{rounded}', "rect", tip
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 12,
        fill: str = "ink",
        bold: bool = False,
        anchor: str = "start",
        room: float = 0.0,
    ) -> float:
        """One line of text on the line `y`, cut to `room` if that is given; how wide it is."""
        shown = fitted(words, room, size, bold=bold) if room else words
        wide = width(shown, size, bold=bold)
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        self.words.append(Words(shown, left, left + wide, y, size))
        self.grow(left + wide, y + size * 0.3)
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        tip = words if shown != words else ""
        kind = f"f-{fill}{' b' if bold else ''}"
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self._parts.append(
            f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{at}>{title}{escape(shown)}</text>'
        )
        return wide

    def line(
        self, x1: float, y1: float, x2: float, y2: float, kind: str, *, thick: float = 1, dashed: bool = False
    ) -> None:
        """A straight line."""
        self.grow(max(x1, x2), max(y1, y2))
        dash = " d" if dashed else ""
        self._parts.append(
            f'<path class="l-{kind}{dash}" stroke-width="{_n(thick)}" d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"/>'
        )

    def flow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        kind: str,
        *,
        thick: float = 1.5,
        dashed: bool = False,
        tip: str = "",
    ) -> None:
        """A curve from left to right (or back) that ends in an arrow."""
        self.grow(max(x1, x2), max(y1, y2))
        bend = max(18.0, abs(x2 - x1) / 2)
        end = x2 - 6
        dash = " d" if dashed else ""
        path = f"M{_n(x1)} {_n(y1)}C{_n(x1 + bend)} {_n(y1)} {_n(end - bend)} {_n(y2)} {_n(end)} {_n(y2)}"
        self._put(f'<path class="l-{kind}{dash}" stroke-width="{_n(thick)}" d="{path}"', "path", tip)
        self._parts.append(
            f'<path class="f-{kind}" d="M{_n(x2)} {_n(y2)}L{_n(x2 - 8)} {_n(y2 - 4)}L{_n(x2 - 8)} {_n(y2 + 4)}Z"/>'
        )

    def legend(self, y: float, rows: Iterable[tuple[str, str]]) -> None:
        """What fills mean, in one line: fill and words."""
        x = MARGIN
        for fill, words in rows:
            self.box(x, y, 12, 10, fill, radius=2)
            x += 18 + self.text(x + 17, y + 9, words, size=11, fill="quiet") + 16

    def _put(self, head: str, kind: str, tip: str) -> None:
        self._parts.append(f"{head}><title>{escape(tip)}</title></{kind}>" if tip else f"{head}/>")

    def svg(self) -> str:
        """The picture as SVG 1.1: one file, no scripts, nothing from elsewhere; as wide as drawn, or less."""
        wide, high = self.width + MARGIN, self.height + MARGIN
        scope = f"bp-{self.name}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{scope}" role="img" '
            f'aria-labelledby="{scope}-t {scope}-d" viewBox="0 0 {_n(wide)} {_n(high)}" width="{_n(wide)}" '
            f'height="{_n(high)}">\n<title id="{scope}-t">{escape(self.title)}</title>\n'
            f'<desc id="{scope}-d">{escape(self.description)}</desc>\n<style>{style(scope)}</style>\n'
            f'<rect class="f-page" width="{_n(wide)}" height="{_n(high)}"/>\n' + "\n".join(self._parts) + "\n</svg>\n"
        )


def _n(value: float) -> str:
    """A number with one digit after the point at most, spelled in one way."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"
