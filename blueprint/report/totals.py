"""Plain facts about a run that a report adds to its findings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """How much was looked at: objects, the clusters they are for, and findings that a person silenced."""

    objects: int = 0
    clusters: int = 0
    silenced: int = 0


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
