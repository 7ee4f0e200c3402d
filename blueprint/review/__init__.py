"""What a change of a tree means: `review` compares two sides, and says what the difference does to people."""

from __future__ import annotations

from blueprint.review.model import Counts, Review, Risk

__all__ = ["Counts", "Review", "Risk", "review"]


def review(base: str, head: str, *, findings: bool = True, lines: bool = False) -> Review:
    """Compare two sides: folders, revisions of Git, or `REVISION:PATH`.

    `findings` asks for the checks on both sides, too, `lines` for places that are fields, not objects.

    Raises UsageError for a side that is not there.
    """
    from blueprint.review.run import run

    return run(base, head, findings=findings, lines=lines)
