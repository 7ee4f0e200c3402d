"""Which file names may be written, and which of them some file system would take for the same file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

SEGMENT_BYTES = 255
"""NAME_MAX of ext4, XFS, APFS and of every checkout that Argo CD makes."""

_PLAIN = re.compile(r"\w[\w.:+-]{0,254}(?:/\w[\w.:+-]{0,254})+", re.ASCII)
"""Nearly every rendered name: no segment starts with a dot or is too long, so nothing needs a closer look."""


def fault(path: str) -> str:
    """Say why `path` cannot be an owned file, "" when it can.

    An owned file lies at `<cluster>/…/<file>`, with `/` between segments, below the root. Segments named `.git` are
    refused because a file written there can run code at the next Git command; names that start with a dot at the top
    are the product's own.
    """
    if _PLAIN.fullmatch(path):
        return ""
    if path.startswith("/"):
        return "is absolute"
    if not path.isprintable() or "\\" in path:
        return "holds a backslash or a character that cannot be printed"
    segments = path.split("/")
    for segment in segments:
        if segment in {"", ".", ".."}:
            return f"has the segment {segment!r}"
        if segment.casefold() == ".git":
            return "leads into a Git folder"
        if len(segment) * 4 > SEGMENT_BYTES and len(segment.encode()) > SEGMENT_BYTES:
            return f"has a segment of more than {SEGMENT_BYTES} bytes"
    if len(segments) < 2:
        return "lies in no cluster's folder"
    return "starts with a dot" if path.startswith(".") else ""


def twins(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Pairs of names that differ, but not on a file system that ignores case or Unicode form (APFS, NTFS, HFS+).

    Folders count too: `prod/a.yaml` and `Prod/b.yaml` share a folder there. In a pair the first sorts first.
    """
    seen: dict[str, str] = {}
    for name in sorted({*paths, *folders_of(paths)}):
        folded = name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
        first = seen.setdefault(folded, name)
        if first != name:
            yield first, name


def ancestors(path: str) -> Iterator[str]:
    """The folders above `path`, nearest first, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


def folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder above any of `paths`, without the root; linear in the number of paths."""
    found: set[str] = set()
    for path in paths:
        for folder in ancestors(path):
            if folder in found:
                break
            found.add(folder)
    return found


def remaining_folders(folders: Iterable[str], files: Iterable[str], removed: Iterable[str]) -> set[str]:
    """The folders that exist after a run: those that hold `files`, and those that were there and lost no file.

    So a folder that pruning empties goes, and an empty one that somebody made stays.
    """
    emptied = folders_of(removed)
    own = [folder for folder in folders if folder not in emptied]
    return {*own, *folders_of(own), *folders_of(files)}


def shown(name: str) -> str:
    """A name from the disk, which may hold bytes that are no UTF-8, as text that can be printed."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
