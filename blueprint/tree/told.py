"""What was told about the same inputs the last time: so that a tree that did not change is not silent about itself.

It is kept in the user's cache, never in the tree: what is committed does not depend on who rendered it. Whatever cannot
be read is not there, and the inputs are judged again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from blueprint.finding import Confidence, Edit, Finding, Ref, Severity, Source
from blueprint.tree.lock import Made

_VERSION = 1
_MOST = 64
"""Entries that are kept; those that were used longest ago go first."""
_LARGEST = 16 * 1024 * 1024


def recall(made: Made, clusters: Collection[str], environment: Mapping[str, str] = os.environ) -> list[Finding] | None:
    """The findings about some clusters (none named: all) of a rendering of these inputs, None where nobody knows."""
    folder = _folder(environment)
    if folder is None:
        return None
    found = _read(folder / _name(made, clusters))
    if found is None and clusters:
        # What was told about all of them is about some of them, too, if it is nothing.
        return [] if _read(folder / _name(made, ())) == [] else None
    return found


def keep(
    made: Made, clusters: Collection[str], findings: Iterable[Finding], environment: Mapping[str, str] = os.environ
) -> None:
    """Keep what was told; where that cannot be written it is not, and nobody is the worse for it."""
    folder = _folder(environment)
    if folder is None:
        return
    data = orjson.dumps({"version": _VERSION, "findings": [_plain(each) for each in findings]})
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = folder / _name(made, clusters)
        written = place.with_suffix(f".{os.getpid()}")
        written.write_bytes(data)
        written.replace(place)
        others = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in others[:-_MOST]:
            path.unlink(missing_ok=True)


def _folder(environment: Mapping[str, str]) -> Path | None:
    """BLUEPRINT_CACHE, else the user's cache by the XDG Base Directory Specification; None where nothing is kept."""
    own = environment.get("BLUEPRINT_CACHE")
    if own is not None:
        return Path(own) / "told" if own else None
    places = Path(environment.get("XDG_CACHE_HOME", "")), Path(environment.get("HOME", ""), ".cache")
    return next((place / "blueprint/told" for place in places if place.is_absolute()), None)


def _name(made: Made, clusters: Collection[str]) -> str:
    fields = [made.blueprint, made.inputs, made.schemas, made.templates, *sorted(set(clusters))]
    return hashlib.sha256(orjson.dumps(fields)).hexdigest() + ".json"


def _read(path: Path) -> list[Finding] | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        document = orjson.loads(path.read_bytes())
        if document["version"] != _VERSION:
            return None
        return [_finding(row) for row in document["findings"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _plain(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "message": finding.message,
        "source": list(finding.source) if finding.source else None,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "object": list(finding.object) if finding.object else None,
        "path": finding.path,
        "fix": finding.fix,
        "patch": [list(each) for each in finding.patch],
    }


def _finding(row: Mapping[str, object]) -> Finding:
    """A finding as it was kept. Raises ValueError or TypeError for what is none."""
    code, message, path, fix = (_text(row[name]) for name in ("code", "message", "path", "fix"))
    source, ref = _row(row["source"]), _row(row["object"])
    patch = row["patch"]
    if not isinstance(patch, list):
        raise TypeError("no list")
    return Finding(
        code,
        message,
        Source(_text(source[0]), *map(_number, source[1:])) if source else None,
        Severity(_text(row["severity"])),
        Confidence(_text(row["confidence"])),
        Ref(*map(_text, ref)) if ref else None,
        path,
        fix,
        tuple(Edit(*map(_text, _row(each) or ())) for each in patch),
    )


def _row(value: object) -> Sequence[object] | None:
    if value is None or isinstance(value, list):
        return value
    raise TypeError("no list")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError("no number")
    return value
