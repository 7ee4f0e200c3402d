"""Files that say what a test expects in a cluster, or changes or deletes there: parts of objects, never applied.

Source: github.com/kyverno/chainsaw pkg/apis/v1alpha1/types.go (Operation: assert, error, delete, patch, with a file),
github.com/kudobuilder/kuttl pkg/test/step.go (files named NN-assert and NN-errors beside the steps).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

_TESTS = ("chainsaw-test.yaml", "chainsaw-test.yml")
_FILE = re.compile(
    r"\b(?:assert|delete|error|patch):[ \t]*\n(?:[ \t]+(?!file:)[^\n]*\n)?[ \t]+file:[ \t]*[\"']?([^\s\"'#]+)"
)
_KUTTL = re.compile(r"\d+-(?:assert|errors)\.ya?ml")


def expected(files: Sequence[str], base: Path) -> set[str]:
    """Those of the files that a test of chainsaw or kuttl compares with a cluster."""
    found = {name for name in files if _KUTTL.fullmatch(posixpath.basename(name))}
    tests = [name for name in files if name.endswith(_TESTS) and posixpath.basename(name) in _TESTS]
    if not tests:
        return found
    beside: dict[str, list[str]] = {posixpath.dirname(name): [] for name in tests}
    for name in files:
        folder = posixpath.dirname(name)
        if folder in beside:
            beside[folder].append(name)
    known = set(files)
    for test in tests:
        folder = posixpath.dirname(test)
        for written in _named(base / test):
            path = posixpath.normpath(posixpath.join(folder, written))
            if path in known:
                found.add(path)
            elif "*" in written:
                found.update(name for name in beside[folder] if fnmatchcase(name, path))
    return found


def _named(test: Path) -> list[str]:
    try:
        return _FILE.findall(test.read_text("utf-8", "replace"))
    except OSError:
        return []
