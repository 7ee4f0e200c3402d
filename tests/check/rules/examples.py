"""The examples of rule pages, written out as files and judged by the real check.

An example is one file of objects. Where a rule is about files, lines that begin with `# file:` divide it:

    # file: kustomization.yaml              the text below, up to the next such line
    # file: settings.yaml as utf-16         the same in another encoding
    # file: objects.yaml, 17 MiB            the same, filled up with comments until the file is so large
    # file: settings.yaml -> gone.yaml      a link
    # file: map-%.yaml, 40 times            forty files; % is the number of each, in its name and text
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.check.config import Config, find, load
from blueprint.check.read import read
from blueprint.check.run import check
from blueprint.finding import Finding, Source
from blueprint.objects import Manifest

PLACE = "shown/queues/objects.yaml"
"""Where the examples of pages stand, so that an Application among them can own the others."""

_FILE = re.compile(r"^# file: (\S+?)(?: as (\S+)|, (\d+) MiB| -> (\S+)|, (\d+) times)?\n", re.M)


def written(text: str, root: Path) -> list[Path]:
    """The files of an example, below the root."""
    if not _FILE.match(text):
        return [_put(root / PLACE, text.encode())]
    parts = _FILE.split(text)[1:]
    return [file for at in range(0, len(parts), 6) for file in _files(root, *parts[at : at + 6])]


def _files(
    root: Path, name: str, encoding: str | None, size: str | None, target: str | None, times: str | None, text: str
) -> list[Path]:
    if times:
        numbers = map(str, range(1, int(times) + 1))
        return [_put(root / name.replace("%", n), text.replace("%", n).encode()) for n in numbers]
    return [_file(root, name, encoding, size, target, text)]


def _file(root: Path, name: str, encoding: str | None, size: str | None, target: str | None, text: str) -> Path:
    if target:
        (root / name).symlink_to(target)
        return root / name
    content = text.encode(encoding or "utf-8")
    filling = b"# nothing\n" * ((int(size) << 20) // 10) if size else b""
    return _put(root / name, content + filling)


def _put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def said(code: str, text: str, root: Path) -> list[Finding]:
    """What `blueprint check` says of an example; the root has to be the current folder."""
    files = written(text, root)
    if code == "SCH115":
        (old,), (new,) = (read([file]).manifests for file in files)
        return Validator(SchemaPack.shipped()).update(new, old)
    if code == "SCH111":  # readers of YAML and JSON make an integer of 2.0: only what a program sends has it
        return Validator(SchemaPack.shipped()).create(Manifest(json.loads(text), Source(files[0].name)))
    place = find(["."])
    return check(["."], load(place) if place else Config()).findings
