"""Finding the spec files of a platform: below four folders, never outside of the root, never twice."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from blueprint.finding import Confidence, Finding, Severity, Source

MAX_BYTES: Final = 1 << 20
FOLDERS: Final = ("clusters", "apps", "policies", "argocd")
IMAGES_LOCK: Final = "images.lock"
"""The lock of images, beside the folders."""
_SUFFIXES: Final = (".yaml", ".yml")
#: What people may take for specs, too.
_LIKE_SPECS: Final = (".json", ".yaml.txt", ".yml.txt", ".yaml.j2", ".yml.j2")


def contents(root: Path) -> Iterator[tuple[str, bytes | Finding]]:
    """The YAML files below the spec folders, by name, with their bytes or why those cannot be had.

    Names are relative to the root, with "/". Hidden files and folders are passed over. Links are followed as long as
    they stay below the root; a file or folder that was already seen through another name is passed over. Of a file
    that is too large, only so much is read that the reader notices.
    """
    real_root = root.resolve()
    seen = set[Path]()
    for folder in sorted(FOLDERS):
        yield from _below(root / folder, folder, real_root, seen)


def inputs(files: Iterable[tuple[str, bytes | Finding]]) -> str:
    """The digest of such files, `sha256:<64 hex>`: of their names in order, and their bytes or why there are none."""
    digest = hashlib.sha256()
    for name, data in files:
        body = data if isinstance(data, bytes) else repr(data).encode()
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    return f"sha256:{digest.hexdigest()}"


def whole(root: Path) -> Iterator[tuple[str, bytes | Finding]]:
    """Everything beside templates that a platform is rendered from: its specs and the lock of its images."""
    yield from contents(root)
    yield from beside(root, IMAGES_LOCK)


def beside(root: Path, name: str) -> Iterator[tuple[str, bytes | Finding]]:
    """A file beside the spec folders: its bytes, or why those cannot be had; nothing where there is no such file."""
    path = root / name
    try:
        if not os.path.lexists(path):
            return
        real = path.resolve()
        if not real.is_relative_to(root.resolve()):
            yield name, _unreadable(name, "a link that leads out of the platform's folder")
        else:
            yield name, _read(real, name, real.stat().st_mode)
    except (OSError, RuntimeError) as error:
        yield name, _unreadable(name, _why(error))


def _below(path: Path, name: str, real_root: Path, seen: set[Path]) -> Iterator[tuple[str, bytes | Finding]]:
    """Walk without recursion, so that a deep tree is no problem; names come out in order within each folder."""
    waiting = [(path, name)]
    while waiting:
        path, name = waiting.pop()
        try:
            real = path.resolve()
            mode = real.stat().st_mode
        except (OSError, RuntimeError) as error:
            if name not in FOLDERS:
                yield name, _unreadable(name, _why(error))
            continue
        is_spec = name.lower().endswith(_SUFFIXES)
        if not real.is_relative_to(real_root):
            if is_spec or stat.S_ISDIR(mode):
                yield name, _unreadable(name, "a link that leads out of the platform's folder")
        elif real in seen:
            continue
        elif stat.S_ISDIR(mode):
            seen.add(real)
            try:
                children = sorted((child.name for child in path.iterdir()), reverse=True)
            except OSError as error:
                yield name, _unreadable(name, _why(error))
                continue
            waiting += [(path / child, f"{name}/{_printable(child)}") for child in children if _counts(path, child)]
        elif is_spec:
            seen.add(real)
            yield name, _read(real, name, mode)
        elif name.lower().endswith(_LIKE_SPECS):
            message = f"not read: the name of a spec ends with {' or '.join(_SUFFIXES)}"
            yield name, Finding("SPC123", message, Source(name), Severity.NOTE, Confidence.STYLE)


def _counts(folder: Path, child: str) -> bool:
    """Whether an entry of a folder may be a folder or a spec file; cheap for all that is neither."""
    try:
        named = child.lower().endswith((*_SUFFIXES, *_LIKE_SPECS))
        return not child.startswith(".") and (named or (folder / child).is_dir())
    except OSError:
        return True


def _read(path: Path, name: str, mode: int) -> bytes | Finding:
    if not stat.S_ISREG(mode):
        return _unreadable(name, "no regular file")
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        return _unreadable(name, _why(error))


def _unreadable(name: str, why: str) -> Finding:
    return Finding("SPC112", f"cannot be read: {why}", Source(name, 1))


def _why(error: Exception) -> str:
    return (error.strerror or "an error").lower() if isinstance(error, OSError) else "links that lead in a circle"


def _printable(name: str) -> str:
    """A file name that can be printed: bytes that are no UTF-8 and control characters are escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
