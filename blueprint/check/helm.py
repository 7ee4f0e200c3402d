"""Helm charts: built with their own default values where helm is installed; otherwise their templates are read as such.

Nothing is fetched: a chart whose dependencies are not in the tree is left alone, and so is one that asks for values.
Source: helm.sh/helm/v4@v4.3.2 pkg/chart/v2 (Chart.yaml), pkg/cmd/template.go ("# Source:" lines).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from blueprint.check import programs
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.placeholders import fields_with
from blueprint.check.programs import Built, unbuilt
from blueprint.finding import Source
from blueprint.objects import Manifest

CHART = "Chart.yaml"
_NAMESPACE = "namespace-of-the-release"
_SOURCE = re.compile(r"^# Source: [^/\n]+/(.+)$", re.MULTILINE)
_LIBRARY = re.compile(r"^type:\s*[\"']?library\b", re.MULTILINE)


def built(files: Sequence[str], base: Path) -> Built:
    """Build the charts among the files; values and other parts of a chart are never read as manifests."""
    folders = {posixpath.dirname(name) for name in files if posixpath.basename(name) == CHART}
    charts = sorted(folder for folder in folders if not _inside(folder, folders) and not _library(base / folder))
    if not folders:
        return Built()
    program = programs.which("helm")
    made = Built()
    for chart, (manifests, reason) in zip(
        charts, programs.each(partial(_build, base=base, program=program), charts), strict=True
    ):
        below = {name for name in files if name.startswith(f"{chart}/") or not chart}
        if manifests is not None:
            made.manifests += manifests
            made.files |= below
            continue
        made.files |= {name for name in below if not _is_manifest(name, folders)}
        if reason:
            message = f"helm cannot build this chart with its own values: {reason}; its templates are read as they are"
            made.findings.append(unbuilt(message, Source(posixpath.join(chart, CHART), 1)))
    if charts and not program:
        many = f"{len(charts)} charts are" if len(charts) > 1 else "1 chart is"
        message = f"helm is not installed: the templates of {many} read as they are"
        made.findings.append(unbuilt(message, Source(posixpath.join(charts[0], CHART))))
    return made


def _inside(folder: str, charts: set[str]) -> bool:
    """Whether a chart is a part of another one."""
    return any(_named(parent) in charts for parent in PurePosixPath(folder).parents)


def _named(folder: PurePosixPath) -> str:
    return "" if str(folder) == "." else str(folder)


def _library(folder: Path) -> bool:
    """Whether a chart only helps others, and makes no objects."""
    try:
        return _LIBRARY.search((folder / CHART).read_text("utf-8", "replace")) is not None
    except OSError:
        return False


def _is_manifest(name: str, charts: set[str]) -> bool:
    """Whether a file of a chart holds objects: its templates and its CRDs."""
    folders = [folder for folder in PurePosixPath(name).parents if folder.name in ("templates", "crds")]
    return any(_named(folder.parent) in charts for folder in folders)


def _build(chart: str, *, base: Path, program: str) -> tuple[list[Manifest] | None, str]:
    """The objects of a chart; or None, with why helm gives none where it was asked."""
    if not program:
        return None, ""
    here = (base / chart).resolve()
    options = ("--namespace", _NAMESPACE, "--include-crds", "--skip-tests")
    try:
        data = programs.output([program, "template", here.name.lower()[:53], ".", *options], here)
    except programs.Failed as failed:
        reason = str(failed)
        return None, reason if len(reason) <= 300 else f"{reason[:300]} …"
    reading = Reading()
    read_bytes(data, "", reading)
    if reading.counts.unreadable:
        return None, reading.findings[0].message
    written = data.decode("utf-8", "replace")
    places = [(written.count("\n", 0, match.start()) + 1, match[1]) for match in _SOURCE.finditer(written)]
    return [_placed(manifest, chart, places) for manifest in reading.manifests], ""


def _placed(manifest: Manifest, chart: str, places: Sequence[tuple[int, str]]) -> Manifest:
    """A built object with the template that it comes from; a line in what helm wrote would help nobody."""
    file = next((name for line, name in reversed(places) if line < manifest.source.line), CHART)
    unknown = manifest.unknown | fields_with(_NAMESPACE, manifest.body)
    return replace(manifest, source=Source(posixpath.join(chart, file)), unknown=unknown, root=chart)
