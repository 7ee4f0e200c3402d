"""Git attributes by which a checkout differs from the commit.

Source: gitattributes(5), "Effects". Only attributes that change bytes on the way to the work tree, or into an archive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

_LINE_ENDS: Final = frozenset({"text", "eol", "crlf"})
_CHANGE: Final = _LINE_ENDS | {"ident", "filter", "working-tree-encoding", "export-subst", "export-ignore"}


def changing(files: Sequence[bytes], names: Collection[str], nearer: Sequence[bytes] = ()) -> Iterator[str]:
    """Lines of `.gitattributes` files that would change one of the named files on a checkout.

    Patterns with a slash, a quote or a bracket are taken to match: what is not understood is not passed. `nearer` are
    files further down, which win: with `* -text` there, line ends stay as they are.
    """
    settled = _LINE_ENDS if any(line[:1] == ["*"] and "-text" in line for line in _lines(nearer)) else frozenset()
    for pattern, *attributes in _lines(files):
        if pattern.startswith("#") or not any(_changes(attribute, settled) for attribute in attributes):
            continue
        unsure = any(sign in pattern for sign in '/["')
        if unsure or any(fnmatchcase(name.rpartition("/")[2], pattern) for name in names):
            yield " ".join((pattern, *attributes))


def _lines(files: Sequence[bytes]) -> Iterator[list[str]]:
    return (words for data in files for line in data.decode("utf-8", "replace").splitlines() if (words := line.split()))


def _changes(attribute: str, settled: Collection[str]) -> bool:
    """Whether a setting has an effect; `-text` and `!text` say that nothing is changed."""
    name, _, _ = attribute.partition("=")
    return name in _CHANGE and name not in settled
