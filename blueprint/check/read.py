"""Reading manifests: any files, folders or standard input become objects, findings and counts.

Kustomize roots and Helm charts among the folders are built where the programs are installed; what is built takes the
place of the files it is built from.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from blueprint.check import helm, kustomize
from blueprint.check.expectations import expected
from blueprint.check.globs import glob
from blueprint.check.kustomization import FILES as KUSTOMIZATIONS
from blueprint.check.parse import MAX_FILE, Counts, Reading, read_bytes
from blueprint.check.programs import Built
from blueprint.errors import UsageError
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.halves import each

__all__ = ["MAX_FILE", "STDIN", "SUFFIXES", "Counts", "Reading", "read", "read_bytes"]

SUFFIXES = (".yaml", ".yml", ".json")
"""What Argo CD reads from a folder, jsonnet aside."""

_MANY = 700
"""Files in each half from which a second process is worth its start."""

STDIN = "<stdin>"
"""What findings call the standard input."""


def read(
    paths: Iterable[Path | str],
    *,
    base: Path = Path(),
    build: bool = False,
    exclude: Sequence[str] = (),
    only: re.Pattern[bytes] | None = None,
) -> Reading:
    """Read files, folders (without hidden ones) and `-` for standard input; each file once.

    Paths are looked up below `base` and named without it. With `build`, Kustomize roots and Helm charts are built.
    `exclude` are globs of files to pass over. A file below a folder in which `only` is not found is not read, either.

    Raises UsageError for a path that does not exist; everything else that is wrong is a finding.
    """
    reading = Reading()
    files: dict[str, bool] = {}
    for path in map(str, paths):
        if not path:
            raise UsageError("an empty path", hint="write . for the folder that you are in")
        if path == "-":
            data = sys.stdin.buffer.read(MAX_FILE + 1)
            reading.texts[STDIN] = data.decode("utf-8", "replace")
            read_bytes(data, STDIN, reading)
            continue
        for name, asked_for in _files(Path(path), base):
            if any(glob(pattern, name, "/") for pattern in exclude):
                continue
            if not asked_for and _is_special(os.path.join(base, name)):  # noqa: PTH118
                # Whoever opens a pipe waits until somebody writes into it: neither we nor helm should.
                _unreadable(name, "it is no regular file", reading)
            else:
                files[name] = files.get(name, False) or asked_for
    taken, drafts = _built(list(files), base, reading) if build else (set(), set())
    taken |= (parts := expected([name for name in files if name not in taken], base))
    if parts:
        many = f"{len(parts)} files say" if len(parts) > 1 else "1 file says"
        message = (
            f"not read: {many} what a test expects or changes, and {'are' if len(parts) > 1 else 'is'} not applied"
        )
        reading.findings.append(Finding("YML303", message, Source(min(parts)), Severity.NOTE, Confidence.STYLE))
    wanted = [
        (name, files[name]) for name in sorted(files) if files[name] or (name not in taken and name.endswith(SUFFIXES))
    ]
    half = len(wanted) // 2
    for part in each(
        lambda names: _read_files(names, base, only), [wanted[:half], wanted[half:]], together=half > _MANY
    ):
        reading.add(part)
    if reading.templates:
        reading.findings.append(_of_templates(sorted(reading.templates)))
    if drafts:
        reading.manifests = [replace(m, draft=True) if m.source.file in drafts else m for m in reading.manifests]
    reading.manifests.sort(key=lambda manifest: manifest.source)
    reading.aside.sort(key=lambda manifest: manifest.source)
    reading.findings.sort(key=lambda finding: finding.source or Source(""))
    return reading


def _read_files(names: Sequence[tuple[str, bool]], base: Path, only: re.Pattern[bytes] | None) -> Reading:
    """Files, each with whether it was asked for itself."""
    reading = Reading()
    for name, asked_for in names:
        _read_file(name, base, reading, any_kind=asked_for, only=None if asked_for else only)
    return reading


def _of_templates(files: Sequence[str]) -> Finding:
    """One note for all: a chart alone may have hundreds."""
    many = f"{len(files)} files are templates" if len(files) > 1 else "a template"
    message = f"{many} of another tool: what that tool fills in is not judged"
    return Finding("YML301", message, Source(files[0]), Severity.NOTE, Confidence.STYLE)


def _files(path: Path, base: Path) -> Iterator[tuple[str, bool]]:
    """Names of files, and whether they are themselves what was asked for."""
    top = base / path
    if not top.exists():
        raise UsageError("no such file or folder", where=str(path))
    if not top.is_dir():
        yield os.path.normpath(path), True
        return
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        below = os.path.normpath(Path(path, Path(folder).relative_to(top)))
        start = "" if below == "." else f"{below}/"
        for name in sorted(files):
            if (name.endswith(SUFFIXES) or name in KUSTOMIZATIONS) and not name.startswith("."):
                yield start + name, False


def _built(files: Sequence[str], base: Path, reading: Reading) -> tuple[set[str], set[str]]:
    """Build what can be built; tell which files need not be read any more, and which hold drafts."""
    builders: tuple[Callable[[Sequence[str], Path], Built], ...] = (helm.built, kustomize.built)
    taken: set[str] = set()
    drafts: set[str] = set()
    for builder in builders:
        made = builder([name for name in files if name not in taken], base)
        taken |= made.files
        drafts |= made.drafts
        reading.manifests += made.manifests
        reading.findings += made.findings
        reading.counts.files += len(made.files)
        reading.counts.documents += len(made.manifests)
        reading.counts.objects += len(made.manifests)
        reading.counts.doubtful += sum(bool(manifest.unknown) for manifest in made.manifests)
    return taken, drafts


def _read_file(name: str, base: Path, reading: Reading, *, any_kind: bool, only: re.Pattern[bytes] | None) -> None:
    try:
        # Thousands of files: the objects of pathlib would take longer than the reading.
        with open(os.path.join(base, name), "rb", buffering=0) as stream:  # noqa: PTH118, PTH123
            size = os.fstat(stream.fileno()).st_size
            data = stream.read(min(size, MAX_FILE) + 1)
            while more := stream.read(MAX_FILE + 1 - len(data)):  # it grows, or does not know how long it is
                data += more
    except OSError as error:
        _unreadable(name, error.strerror or str(error), reading)
        return
    if only is None or only.search(data):
        read_bytes(data, name, reading, max(size, len(data)), asked=any_kind)


def _unreadable(name: str, why: str, reading: Reading) -> None:
    reading.counts.files += 1
    reading.counts.unreadable += 1
    reading.findings.append(Finding("YML101", f"cannot read the file: {why}", Source(name)))


def _is_special(path: str) -> bool:
    """Whether a path is there and neither a file nor a folder: a pipe, a socket, a device."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False  # reading it says why
