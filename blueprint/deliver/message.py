"""The words of a commit: the same for the same change, with trailers that machines read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256

from blueprint.tree import Plan

_LONGEST = 72
"""Characters of a first line that every forge shows in full."""
_MOST_ROWS = 40

_TRAILER = re.compile(r"([A-Z][A-Za-z-]*): (.+)")


def subject(verb: str, clusters: Sequence[str], plan: Plan) -> str:
    """The first line: what is done to which clusters, and how much that is."""
    head = f"{verb} {', '.join(clusters)}"
    if len(head) > _LONGEST - 24:
        head = f"{verb} {len(clusters)} clusters"
    return f"{head}: {counts(plan)}"


def counts(plan: Plan) -> str:
    """How many objects a plan touches."""
    named = (("changed", plan.changed), ("added", plan.added), ("removed", plan.removed))
    return (
        ", ".join(f"{len(paths)} {word}" for word, paths in named if paths)
        or "the same files, another lock or signature"
    )


def body(plan: Plan) -> str:
    """One row for each folder with changes."""
    rows: dict[str, Counter[str]] = {}
    for word, paths in (("changed", plan.changed), ("added", plan.added), ("removed", plan.removed)):
        for path in paths:
            rows.setdefault(path.rpartition("/")[0], Counter())[word] += 1
    lines = [
        f"{folder}: {', '.join(f'{number} {word}' for word, number in row.items())}"
        for folder, row in sorted(rows.items())
    ]
    more = len(lines) - _MOST_ROWS
    return "\n".join([*lines[:_MOST_ROWS], *([f"and {more} more folders"] if more > 0 else [])])


def message(head: str, plan: Plan, trailers: Mapping[str, str]) -> str:
    """The whole message. `Tree-Digest` is the digest of the lock: of every file's name and digest."""
    every = {**trailers, "Tree-Digest": f"sha256:{sha256(plan.lock).hexdigest()}"}
    tail = "\n".join(f"{key}: {value}" for key, value in every.items() if value)
    return "\n\n".join(part for part in (head, body(plan), tail) if part) + "\n"


def trailers(text: str) -> dict[str, str]:
    """The trailers in the last paragraph of a message."""
    last = text.strip().rpartition("\n\n")[2]
    return {match[1]: match[2] for line in last.splitlines() if (match := _TRAILER.fullmatch(line))}
