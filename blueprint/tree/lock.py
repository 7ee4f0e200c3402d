"""`blueprint.lock`: every owned file with its digest, and what made it, one part a cluster.

The file is JSON with one line a file, sorted, without times, so that Git shows and merges what changed and no more::

    {
      "version": 1,
      "clusters": {
        "prod-a": {
          "made": {"blueprint": "0.1.0", "inputs": "sha256:…", "schemas": "sha256:…", "templates": "sha256:…"},
          "files": {
            "prod-a/queues/clusterqueue-search-ai.yaml": "sha256:…"
          }
        }
      }
    }

A lock decides what may be deleted, and it comes from Git, so reading is strict: a part that is not understood makes the
whole lock unusable, and an unusable lock owns nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

import orjson

from blueprint.finding import Finding, Source
from blueprint.tree import paths

NAME = "blueprint.lock"
VERSION = 1
LARGEST = 64 * 1024 * 1024
"""Bytes; about 400,000 files. A larger lock is refused unread."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MADE = ("blueprint", "inputs", "schemas", "templates")


@dataclass(frozen=True, slots=True)
class Made:
    """What made the files of a cluster: the product's version, and the digests (`sha256:<64 hex>`) of what it read."""

    blueprint: str
    inputs: str
    schemas: str
    templates: str


@dataclass(frozen=True, slots=True)
class Part:
    """One cluster's files: path below the root → `sha256:<64 hex>` of the bytes."""

    made: Made
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Lock:
    """Cluster name → what is owned there. The empty lock owns nothing."""

    clusters: Mapping[str, Part] = field(default_factory=dict)

    def files(self) -> dict[str, str]:
        """Every owned path below the root → its digest."""
        return {path: digest for part in self.clusters.values() for path, digest in part.files.items()}


def digest(data: bytes) -> str:
    """The digest as the lock spells it."""
    return "sha256:" + sha256(data).hexdigest()


def dump(lock: Lock) -> bytes:
    """The one spelling of a lock: equal locks give equal bytes."""
    clusters = {
        name: {"made": {key: getattr(part.made, key) for key in _MADE}, "files": dict(part.files)}
        for name, part in lock.clusters.items()
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps({"version": VERSION, "clusters": clusters}, option=options)


def parse(data: bytes, file: str = NAME) -> tuple[Lock, list[Finding]]:
    """Read a lock; with any finding the lock is empty. `file` is the name that findings carry. Never raises."""
    here = Source(file)
    if len(data) > LARGEST:
        return Lock(), [too_large(file)]
    if conflict := re.search(rb"^(<{7}|>{7}) ", data, re.MULTILINE):
        place = Source(file, data.count(b"\n", 0, conflict.start()) + 1)
        fix = "take either side of the conflict, then render again"
        return Lock(), [Finding("TRE101", "the lock holds a Git merge conflict", place, fix=fix)]
    try:
        document = json.loads(data.decode(), object_pairs_hook=_unique)
    except _Repeated as repeated:
        return Lock(), [Finding("TRE104", f"the lock names {str(repeated)!r} twice", here, fix=_RESTORE)]
    except json.JSONDecodeError as error:
        place = Source(file, error.lineno, error.colno)
        return Lock(), [Finding("TRE101", f"the lock is not JSON: {error.msg}", place, fix=_RESTORE)]
    except (ValueError, RecursionError) as error:
        return Lock(), [Finding("TRE101", f"the lock cannot be read: {error}", here, fix=_RESTORE)]
    if isinstance(document, dict) and type(document.get("version")) is int and document["version"] > VERSION:
        message = f"the lock has version {document['version']}, this blueprint knows versions up to {VERSION}"
        return Lock(), [Finding("TRE102", message, here, fix="use the blueprint that wrote it, or a newer one")]
    findings = [
        Finding(code, f"the lock {message}", here, path=path, fix=_RESTORE)
        for code, path, message in islice(_faults(document), 20)
    ]
    if findings:
        return Lock(), findings
    parts = {name: Part(Made(**part["made"]), part["files"]) for name, part in document["clusters"].items()}
    return Lock(parts), []


def too_large(file: str) -> Finding:
    """TRE101 for a lock that nobody should read into memory."""
    return Finding("TRE101", f"the lock is larger than {LARGEST // 2**20} MiB", Source(file), fix=_RESTORE)


_RESTORE = "restore the lock from Git"


class _Repeated(Exception):
    """A key stands twice in one JSON object; `json` would silently take the last."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keyed = dict(pairs)
    if len(keyed) != len(pairs):
        seen: set[str] = set()
        raise _Repeated(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return keyed


def _faults(document: object) -> Iterator[tuple[str, str, str]]:
    """Code, field and message of everything that is not as `dump` writes it."""
    if not isinstance(document, dict) or document.keys() != {"version", "clusters"} or document["version"] != VERSION:
        yield "TRE102", "", f'must be an object with "version" {VERSION} and "clusters"'
        return
    if not isinstance(document["clusters"], dict):
        yield "TRE102", "clusters", "must hold an object under clusters"
        return
    for name, part in document["clusters"].items():
        field_of = f"clusters.{name}"
        if not (isinstance(part, dict) and part.keys() == {"made", "files"} and isinstance(part["files"], dict)):
            yield "TRE102", field_of, 'must hold "made" and "files" for each cluster'
            continue
        made = part["made"]
        if (
            not isinstance(made, dict)
            or made.keys() != set(_MADE)
            or not all(isinstance(v, str) for v in made.values())
        ):
            yield "TRE102", f"{field_of}.made", f"must say what made the files: {', '.join(_MADE)}"
        for path, value in part["files"].items():
            if reason := paths.fault(path):
                yield "TRE103", field_of, f"owns {path!r}, which {reason}"
            elif not path.startswith(f"{name}/"):
                yield "TRE103", field_of, f"owns {path!r}, which is outside the cluster's folder"
            elif not (isinstance(value, str) and _DIGEST.fullmatch(value)):
                yield "TRE102", field_of, f"has no sha256 digest for {path!r}"
