"""References of container images, as a kubelet and a registry read them.

Source: github.com/distribution/reference v0.6.0 regexp.go, normalize.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<repository>(?:(?:{_HOST}|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_MOST = 512
_LONGEST_PATH = 255
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_HUB = frozenset({"docker.io", "index.docker.io"})
_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


class Image(NamedTuple):
    """The parts of a reference; `problem` says why it is none, and the parts are then empty."""

    repository: str
    tag: str
    digest: str
    problem: str


@lru_cache(maxsize=4096)
def image(text: str) -> Image:
    """Read a reference: `registry.example.com/team/app:1.2@sha256:…`."""
    match = _REFERENCE.fullmatch(text) if len(text) <= _MOST else None
    if match is None:
        return Image("", "", "", _problem(text))
    if problem := _too_much(text, match["repository"]):
        return Image("", "", "", problem)
    digest = match["digest"] or ""
    algorithm, _, value = digest.partition(":")
    if digest and len(value) != _LENGTHS.get(algorithm, len(value)):
        return Image("", "", "", f"a {algorithm} digest has {_LENGTHS[algorithm]} hexadecimal digits, not {len(value)}")
    return Image(match["repository"], match["tag"] or "", digest, "")


def _too_much(text: str, repository: str) -> str:
    """What the form alone does not tell: the length of the path, and what is taken for a digest."""
    if _IDENTIFIER.fullmatch(text):
        return "64 hexadecimal digits are the identifier of an image, and no name"
    first, slash, rest = repository.partition("/")
    host = bool(slash) and (bool(set(first) & set(".:")) or first == "localhost" or first != first.lower())
    path = rest if host else repository
    if "/" not in path and (not host or first in _HUB):
        path = f"library/{path}"
    return f"its path has {len(path)} characters, and {_LONGEST_PATH} at most" if len(path) > _LONGEST_PATH else ""


def _problem(text: str) -> str:
    if "://" in text:
        return "an image has no scheme"
    if any(letter.isspace() for letter in text):
        return "an image has no blanks"
    parts = text.partition("@")[0].split("/")
    path = parts[1:] if len(parts) > 1 and set(parts[0]) & set(".:") else parts
    if any(each.partition(":")[0] != each.partition(":")[0].lower() for each in path):
        return "the repository must be lower-case"
    if "@" in text:
        return "the digest must be an algorithm, a colon and hexadecimal digits, as sha256:<64 digits>"
    return "it is not of the form registry/repository:tag"
