"""Names that are one slip of the pen away from one that is known."""

from __future__ import annotations

from collections.abc import Container, Iterator

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-./"


def meant(name: str, known: Container[str]) -> str:
    """The known name that a name is a slip away from, "" where there is none, or where it is known itself.

    A slip is one letter too many or too few, or two neighbours that changed places. One letter for another is none:
    families of names differ so (`SBE`, `DBE`), and digits count.
    """
    return "" if name in known else next((other for other in _beside(name) if other in known), "")


def _beside(name: str) -> Iterator[str]:
    """Every name that is one slip away."""
    for place, letter in enumerate(name):
        if not letter.isdigit():
            yield name[:place] + name[place + 1 :]
    for place in range(len(name) - 1):
        if not name[place : place + 2].isdigit():
            yield name[:place] + name[place + 1] + name[place] + name[place + 2 :]
    for place in range(len(name) + 1):
        for letter in _LETTERS:
            yield name[:place] + letter + name[place:]
