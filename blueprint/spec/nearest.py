"""Did you mean: the most similar of the names that exist."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.66) -> str | None:
    """The most similar name, without regard to case, underscores and hyphens; None where none is similar.

    `cutoff` is the least ratio of what two names have in common; a higher one suits names that are alike by themselves.
    """
    by_plain = {plain(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(plain(name[:64]), by_plain, n=1, cutoff=cutoff)
    return by_plain[close[0]] if close else None


def plain(name: str) -> str:
    """A name in the form in which it is compared."""
    return re.sub(r"[-_ ]", "", name).lower()
