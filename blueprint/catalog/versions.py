"""Order of version numbers as projects write them: 0.8.5.post1, v1.10.2, 0.33.0rc1, 0.33.0+cu129."""

from __future__ import annotations

import re

Version = tuple[int, int, int, int, int]
"""Major, minor, patch; -1 for a pre-release, else 0; the number of the pre- or post-release."""

_VERSION = re.compile(
    r"v?(?P<major>\d+)\.(?P<minor>\d+)(?:\.(?P<patch>\d+))?"
    r"(?:[-.]?(?P<word>a|alpha|b|beta|rc|dev|post)[-.]?(?P<number>\d*))?(?:\+[0-9A-Za-z.-]+)?"
)


def version(text: str) -> Version | None:
    """A version that sorts, or None for what is no version (`latest`, a digest, a date tag)."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    word, number = match["word"], int(match["number"] or 0)
    release = (int(match["major"]), int(match["minor"]), int(match["patch"] or 0))
    return (*release, -1 if word and word != "post" else 0, number)
