"""Kustomize roots: built where kustomize or kubectl is installed, each object with the file it comes from.

A root is a folder with a kustomization that no other one takes in. Nothing is fetched: a root that takes from elsewhere
is left alone.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from blueprint.check import programs
from blueprint.check.documents import documents, first_content
from blueprint.check.kustomization import FILES, Kustomization, complete, elsewhere, parsed, reached
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.programs import Built, unbuilt
from blueprint.check.shapes import mapping, text
from blueprint.finding import Confidence, Finding, Ref, Source
from blueprint.objects import Manifest

_ORIGIN = "config.kubernetes.io/origin"
_KIND = re.compile(r"^kind:[ \t]*[\"']?(\w+)", re.MULTILINE)
_NAME = re.compile(r"^(?:metadata:[ \t]*\{.*?\b|[ \t]+)name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
_Heads = Callable[[Path], list[tuple[int, str, str]]]
_NESTED = re.compile(r"accumulating resources from '([^']+)': (.*?)': must build", re.DOTALL)


def built(files: Sequence[str], base: Path) -> Built:
    """Build the roots among the files.

    Of what cannot be built patches are left out, and resources that a kustomization would change count as drafts. Files
    beside a kustomization that takes none of them in are left out, too: nobody applies them.
    """
    found = [Kustomization(file, base) for file in files if posixpath.basename(file) in FILES]
    known = {each.folder: each for each in found if each.valid}
    if not known:
        return Built()
    own = sorted(known)
    complete(known, base)
    inner = {folder for each in known.values() for folder in each.folders()}
    tops = [folder for folder in own if folder not in inner and not known[folder].component]
    made, listed = Built(), set(files)
    program = programs.which("kustomize", "kubectl")
    taken: set[str] = set()
    left: list[Kustomization] = []
    build = partial(_build, base=base, program=program, known=known, heads=cache(_heads))
    for root, (result, reason) in zip((known[top] for top in tops), programs.each(build, tops), strict=True):
        if result is not None:
            made.manifests += result
            taken |= reached(root, known)
            continue
        left.append(root)
        if reason:
            message = f"kustomize cannot build this folder: {reason}"
            made.findings.append(Finding("YML302", message, Source(root.file, 1), confidence=Confidence.LIKELY))
    made.findings += _notes(left, known, program)
    apart = [known[folder] for folder in own if known[folder].file not in taken]
    resources = {name for each in known.values() for name in reached(each, known)}
    beside = {name for name in listed - resources if _beside(name, known)}
    made.files = listed & (taken | beside | {name for each in apart for name in each.parts()})
    made.drafts = {name for each in apart if each.changes for name in reached(each, known)} - taken
    made.manifests += (manifest for each in apart for manifest in each.generated())
    if beside:
        many = f"{len(beside)} files stand" if len(beside) > 1 else "1 file stands"
        message = f"not read: {many} beside a kustomization and in none, so that nobody applies what is there"
        made.findings.append(unbuilt(message, Source(min(beside))))
    return made


def _beside(name: str, known: Mapping[str, Kustomization]) -> bool:
    """Whether a file is in the folder of a kustomization, or in a folder of patches below one."""
    folder = posixpath.dirname(name)
    while "patch" in posixpath.basename(folder) and folder not in known:
        folder = posixpath.dirname(folder)
    return folder in known


def _notes(left: Sequence[Kustomization], known: Mapping[str, Kustomization], program: str) -> Iterator[Finding]:
    for root in left:
        if taken := elsewhere(root, known):
            yield unbuilt(f"not built, and read as plain files: it takes {taken} from elsewhere", Source(root.file, 1))
    if left and not program:
        many = f"{len(left)} roots are" if len(left) > 1 else "1 root is"
        message = f"kustomize is not installed: {many} read as plain files, without patches"
        yield unbuilt(message, Source(left[0].file))


def _build(
    folder: str, *, base: Path, program: str, known: Mapping[str, Kustomization], heads: _Heads
) -> tuple[list[Manifest] | None, str]:
    """The objects of a root; or None, with why it cannot be built where that is a mistake."""
    if not program or elsewhere(known[folder], known):
        return None, ""
    here = (base / folder).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary).resolve()
        # Around the root, so that every object tells where it comes from and the root stays as it is.
        around = {"resources": [os.path.relpath(here, work)], "buildMetadata": ["originAnnotations"]}
        (work / FILES[0]).write_text(json.dumps(around), "utf-8")
        verb = "build" if Path(program).name.startswith("kustomize") else "kustomize"
        try:
            data = programs.output([program, verb, "."], work)
        except programs.Failed as failed:
            return None, _cause(str(failed), here)
        reading = Reading()
        read_bytes(data, known[folder].file, reading)
        return [_placed(manifest, work, here, known[folder], base, heads) for manifest in reading.manifests], ""


def _cause(reason: str, here: Path) -> str:
    """The innermost of the reasons that kustomize puts into one another."""
    inner = reason.rpartition("recursed accumulation of path '")[2].partition("': ")[2] or reason
    if nested := _NESTED.search(inner):
        inner = f"{nested[1]}: {nested[2].rpartition(': ')[2]}"
    inner = inner.replace(f"{here}/", "")
    return inner if len(inner) <= 300 else f"{inner[:300]} …"


def _placed(manifest: Manifest, work: Path, here: Path, root: Kustomization, base: Path, heads: _Heads) -> Manifest:
    """A built object with the place in the file that it comes from, and without the mark that says so."""
    body = dict(manifest.body)
    metadata = dict(mapping(body.get("metadata")))
    annotations = dict(mapping(metadata.get("annotations")))
    origin = mapping(parsed(text(annotations.pop(_ORIGIN, ""))))
    metadata.pop("annotations", None)
    body["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
    path = text(origin.get("path")) or text(origin.get("configuredIn"))
    source = Source(root.file, 1)
    if path and not origin.get("repo"):
        inside = os.path.relpath((work / path).resolve(), here)
        name = posixpath.normpath(posixpath.join(root.folder, inside.replace(os.sep, "/")))
        source = Source(name, _line(heads(base / name), manifest.ref) if origin.get("path") else 1)
    return replace(manifest, body=body, source=source, root=root.folder)


def _line(heads: list[tuple[int, str, str]], ref: Ref) -> int:
    """The line on which an object starts, whatever was put before or behind its name; 1 where it is not found."""
    found = 1
    for line, kind, name in heads:
        if kind == ref.kind and name in ref.name:
            if name == ref.name:
                return line
            found = line if name or found == 1 else found
    return found


def _heads(path: Path) -> list[tuple[int, str, str]]:
    """Line, kind and name of the documents of a file, by a look at their lines."""
    try:
        written = path.read_text("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return []
    heads = []
    for start, chunk, _ in documents(written):
        kind, name = _KIND.search(chunk), _NAME.search(chunk)
        heads.append((start + 1 + max(first_content(chunk)[0], 0), kind[1] if kind else "", name[1] if name else ""))
    return heads
