"""Plain facts about a run that a report adds to its findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Totals:
    """How much was looked at.

    `files` and the `documents` in them were read; `skipped` of those are nothing that is judged here. `objects` came
    out, for so many `clusters`. `silenced` counts findings that a person silenced.
    """

    objects: int = 0
    clusters: int = 0
    silenced: int = 0
    files: int = 0
    documents: int = 0
    skipped: int = 0


class Rule(Protocol):
    """What a report says of the rule behind a code."""

    @property
    def code(self) -> str:
        """Such as `KQ202`."""

    @property
    def name(self) -> str:
        """In words with dashes."""

    @property
    def summary(self) -> str:
        """What is wrong, in one sentence."""

    @property
    def why(self) -> str:
        """What comes of it."""

    @property
    def fix(self) -> str:
        """What to do."""

    @property
    def confidence(self) -> str:
        """`certain`, `likely` or `style`."""

    @property
    def bad(self) -> str:
        """Objects with the mistake, "" where there is no example."""

    @property
    def good(self) -> str:
        """The same without it."""


Rules = Mapping[str, Rule]
"""Rules by code."""


@dataclass(frozen=True, slots=True)
class Application:
    """One rendered Argo CD Application: how many objects it holds, in how many waves."""

    cluster: str
    name: str
    objects: int
    waves: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Files of the tree that a run changed, or would change; paths below the root, sorted.

    `lock_changed` tells that the lock is different, as it is for every change of a file.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    lock_changed: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.lock_changed)


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 object`, `1,284 objects`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
