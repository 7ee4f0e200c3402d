"""The TRE2 and TRE3 rules: what is said about a tree and about rendered names; one function a rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.tree import paths

RENDER = "render again"


def at(root: Path, path: str) -> Source:
    """The place of `path`, "" for the root itself, as the user called the root."""
    return Source(f"{root}/{path}" if path else str(root))


def downgraded(finding: Finding) -> Finding:
    """The same finding for a user who has said that the run shall go on."""
    return replace(finding, severity=Severity.WARNING)


def edited(root: Path, path: str, *, overwrite: bool, gone: bool) -> Finding:
    """TRE201: the bytes on the disk are not those of the lock; somebody's work would be lost."""
    if overwrite:
        message = f"this rendered file was edited by hand; the edit is {'removed' if gone else 'overwritten'}"
        return Finding("TRE201", message, at(root, path), Severity.WARNING)
    fix = "move the edit into the spec or a template, then render with --force"
    return Finding("TRE201", "this rendered file was edited by hand", at(root, path), fix=fix)


def missing(root: Path, path: str, *, restored: bool) -> Finding:
    """TRE202: a file of the lock is not there; writing it again loses nothing, so a run only mentions it."""
    message = "this rendered file was deleted by hand"
    if restored:
        return Finding("TRE202", f"{message}; it is written again", at(root, path), Severity.NOTE)
    return Finding("TRE202", message, at(root, path), fix=RENDER)


def foreign(root: Path, found: Iterable[str]) -> Iterator[Finding]:
    """TRE203: files that nobody rendered; one note a folder, however many files."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for path in found:
        folder, _, name = path.rpartition("/")
        by_folder[folder].append(name)
    for folder, names in by_folder.items():
        what = "1 file is" if len(names) == 1 else f"{len(names)} files are"
        listed = ", ".join(map(paths.shown, names[:3])) + (", …" if len(names) > 3 else "")
        message = f"{what} not in the lock and kept: {listed}"
        yield Finding("TRE203", message, at(root, paths.shown(folder)), Severity.NOTE, Confidence.STYLE)


def in_the_way(root: Path, path: str, *, overwrite: bool) -> Finding:
    """TRE204: a file that we did not write stands where one must be written."""
    message = "a file that the lock does not own stands where one is rendered"
    if overwrite:
        return Finding("TRE204", f"{message}; it is overwritten", at(root, path), Severity.WARNING)
    fix = "move it away, or render with --force to overwrite it"
    return Finding("TRE204", message, at(root, path), fix=fix)


def blocked(root: Path, path: str, by: str) -> Finding:
    """TRE205: a folder stands where a file is rendered, or a file or link where a folder is; never overwritten."""
    message = "a folder stands where a file is rendered" if by == path else f"{by} is in the way of {path}"
    return Finding("TRE205", message, at(root, path), fix=f"move {by} away")


def unfinished(root: Path) -> Finding:
    """TRE206: a journalled switch was interrupted and not yet finished."""
    message = "a run was interrupted here; the tree may be half old, half new"
    return Finding(
        "TRE206", message, at(root, ""), fix="render again: that finishes or undoes the interrupted run first"
    )


def of_another(root: Path, clusters: Iterable[str], *, overwrite: bool) -> Finding:
    """TRE207: not one cluster of the tree is among those that are rendered; all files of the others would go."""
    held = ", ".join(sorted(clusters))
    if overwrite:
        message = f"the tree was of another platform: everything of {held} is removed"
        return Finding("TRE207", message, at(root, ""), Severity.WARNING)
    message = f"the tree is of another platform: it holds {held}, and all of it would be removed"
    fix = "name another folder with --out; where the cluster was renamed, render with --force"
    return Finding("TRE207", message, at(root, ""), fix=fix)


def misnamed(root: Path, files: Mapping[str, object]) -> Iterator[Finding]:
    """TRE301 to TRE303: a rendered name leaves the tree, has a twin, or would be a file and a folder."""
    for path in sorted(files):
        if reason := paths.fault(path):
            yield Finding("TRE301", f"the rendered file name {path!r} {reason}", at(root, ""))
    for first, second in paths.twins(files.keys()):
        message = f"{first} and {second} are one file where the file system ignores case or Unicode form"
        yield Finding("TRE302", message, at(root, second), fix="rename one of the objects")
    for path in sorted(paths.folders_of(files) & files.keys()):
        yield Finding("TRE303", f"{path} would be a file and a folder", at(root, path))
