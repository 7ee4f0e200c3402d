"""Git attributes by which a checkout differs from the commit.

Source: gitattributes(5), "Effects". Only attributes that change bytes on the way to the work tree, or into an archive.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

_LINE_ENDS: Final = frozenset({"text", "eol", "crlf"})
_CHANGE: Final = _LINE_ENDS | {"ident", "filter", "working-tree-encoding", "export-subst", "export-ignore"}

_LONGEST: Final = 2048
"""ATTR_MAX_LINE_LENGTH of Git."""


def changing(files: Sequence[bytes], names: Collection[str], nearer: Sequence[bytes] = ()) -> Iterator[str]:
    """Lines of `.gitattributes` files that would change one of the named files on a checkout.

    Patterns with a slash, a quote, a bracket or a backslash are taken to match, and so is one that is no UTF-8: what is
    not understood is not passed. The case of letters does not count, for `core.ignorecase` may be set. `nearer` are
    files further down, which win: with `* -text` there, and nothing else about line ends, these stay as they are.
    """
    near = [line for line in _lines(nearer) if not line[0].startswith("#")]
    kept = any(line[0] == "*" and "-text" in line for line in near)
    moved = any(_changes(attribute, ()) for _, *attributes in near for attribute in attributes)
    settled = _LINE_ENDS if kept and not moved else frozenset()
    lower = [name.rpartition("/")[2].casefold() for name in names]
    for pattern, *attributes in _lines(files):
        if pattern.startswith("#") or not any(_changes(attribute, settled) for attribute in attributes):
            continue
        unsure = any(sign in pattern for sign in '/["\\\N{REPLACEMENT CHARACTER}')
        if unsure or any(fnmatchcase(name, pattern.casefold()) for name in lower):
            yield " ".join((pattern, *attributes))


def _lines(files: Sequence[bytes]) -> Iterator[list[str]]:
    """Words of each line as Git divides them (git v2, attr.c): a mark at the beginning is skipped, a NUL ends a line, a
    longer line is not read at all, and only blanks, tabs and carriage returns stand between words.
    """
    for data in files:
        for line in data.removeprefix(BOM_UTF8).split(b"\n"):
            words = re.split(rb"[ \t\r]+", line.partition(b"\0")[0].strip(b" \t\r"))
            if words[0] and len(line) < _LONGEST:
                yield [word.decode("utf-8", "replace") for word in words]


def _changes(attribute: str, settled: Collection[str]) -> bool:
    """Whether a setting has an effect; `-text` and `!text` say that nothing is changed."""
    name, _, _ = attribute.partition("=")
    return name in _CHANGE and name not in settled
