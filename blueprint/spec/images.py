"""The lock of images beside the specs: which digest an image has that a spec names by a tag.

`blueprint images lock` writes it; what it knows of signatures is `blueprint.attest.imagelock`'s. Nothing is asked here:
the same specs and the same lock give the same tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic_core import PydanticCustomError

from blueprint.finding import Finding, Source
from blueprint.spec.files import IMAGES_LOCK, MAX_BYTES, beside

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Tags:
    """What tags stand for; where none is known, an image needs its digest."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        self._digests = digests

    def digest(self, image: str) -> str | None:
        """The digest of `registry/name:tag`, None for one that nobody resolved."""
        return self._digests.get(image)


class Collected(Tags):
    """Takes every image, and remembers it: for whoever resolves what the specs name."""

    def __init__(self) -> None:
        super().__init__({})
        self.images = set[str]()

    def digest(self, image: str) -> str:
        """Any digest will do."""
        self.images.add(image)
        return f"sha256:{'0' * 64}"

    def met(self, image: str) -> None:
        """An image that has its digest already."""
        self.images.add(image)


def locked(image: str, tags: object) -> str:
    """An image by its tag with the digest behind it. Raises an error of pydantic where the lock has none."""
    digest = tags.digest(image) if isinstance(tags, Tags) else None
    if digest is None:
        raise PydanticCustomError(
            "unlocked",
            "{message}",
            {
                "message": f"{image} has no digest, and {IMAGES_LOCK} does not know which one is meant",
                "fix": f"blueprint images lock {image}",
            },
        )
    return f"{image}@{digest}"


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in JSON whose keys stand once. Raises ValueError: of two rows a person may read the other one."""
    keyed = dict(pairs)
    if len(keyed) != len(pairs):
        raise ValueError("a name stands twice")
    return keyed


def read(root: Path) -> tuple[Tags, bytes, Finding | None]:
    """The lock beside the specs, its bytes, and what is wrong with it; where there is none, no tag is known."""
    data = next((found for _, found in beside(root, IMAGES_LOCK)), b"")
    if isinstance(data, Finding):
        return Tags({}), b"", data
    if not data and not (root / IMAGES_LOCK).exists():
        return Tags({}), data, None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError("too large")
        document = json.loads(data, object_pairs_hook=once)
        if document["version"] != 1:
            raise ValueError("another version")
        digests = {str(name): row["digest"] for name, row in document["images"].items()}
        if not all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in digests.values()):
            raise ValueError("no digest")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fix = "restore it from Git, or write it again with `blueprint images lock`"
        return Tags({}), data, Finding("SPC112", "cannot be read: no lock of images", Source(IMAGES_LOCK, 1), fix=fix)
    return Tags(digests), data, None
