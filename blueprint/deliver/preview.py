"""What a delivery would mean, before it is pushed: the branch as it is, reviewed against the commit that is ready."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from blueprint.deliver.commit import Outcome
from blueprint.deliver.remote import Remote
from blueprint.review import Review, review


def preview(remote: Remote, outcome: Outcome) -> Review | None:
    """The review of an outcome whose commit is stored and not yet pushed; None where there is no commit."""
    if not outcome.commit:
        return None
    order = outcome.order
    held = bool(outcome.base) and remote.has(outcome.base, order.path)
    before = remote.unpack(outcome.base, order.path) if held else Path(tempfile.mkdtemp(dir=remote.folder))
    after = remote.unpack(outcome.commit, order.path)
    found = review(str(before), str(after))
    return replace(found, base=order.branch, head=f"release {order.release.name[:12]}")
