"""Colours, light and dark. Every pair of text and ground has a contrast of at least 4.5 (WCAG 2.2, 1.4.3); lines and
fills that carry meaning have 3 against what they stand on (1.4.11). A test computes both.
"""

from __future__ import annotations

LIGHT = {
    "page": "#ffffff",
    "panel": "#f3f5f8",
    "edge": "#7d8894",
    "faint": "#d5dbe1",
    "ink": "#1a2027",
    "quiet": "#55606c",
    "own": "#0b62c4",
    "kept": "#0a3f7d",
    "loan": "#4a8ad4",
    "good": "#1a7f37",
    "warn": "#8a5a00",
    "bad": "#c01c28",
    "trust": "#6e40c9",
}
DARK = {
    "page": "#0d1117",
    "panel": "#171d26",
    "edge": "#6b7684",
    "faint": "#2c3440",
    "ink": "#e6edf3",
    "quiet": "#a3adb8",
    "own": "#4c9bff",
    "kept": "#9cc8ff",
    "loan": "#2f6fbf",
    "good": "#3fb950",
    "warn": "#dba32a",
    "bad": "#ff6b63",
    "trust": "#b392f0",
}
TEXT = ("ink", "quiet", "good", "warn", "bad", "trust", "own")
"""Names that colour words, on `page` and on `panel`."""
GROUNDS = ("page", "panel")
MEANING = ("own", "kept", "loan", "good", "warn", "bad", "trust", "edge")
"""Names of lines and fills that carry meaning."""

FACES = 'system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif'


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2.2 defines it, from 1 to 21."""
    first, second = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def variables(colours: dict[str, str]) -> str:
    """The colours as declarations of CSS."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def style(scope: str) -> str:
    """The style sheet of a picture; `scope` is the class of its root, so that several fit into one page."""
    fills = "".join(f".{scope} .f-{name}{{fill:var(--{name})}}" for name in LIGHT)
    lines = "".join(f".{scope} .l-{name}{{stroke:var(--{name});fill:none}}" for name in LIGHT)
    return (
        f".{scope}{{{variables(LIGHT)}font-family:{FACES};background:var(--page)}}"
        f"@media(prefers-color-scheme:dark){{.{scope}{{{variables(DARK)}}}}}"
        f"{fills}{lines}.{scope} .b{{font-weight:700}}.{scope} .d{{stroke-dasharray:4 3}}"
        f".{scope} .halo{{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}}"
        f".{scope} .o{{stroke:var(--edge);stroke-width:1}}"
    )
