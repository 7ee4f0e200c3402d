"""What Git knows of the specs that a tree was rendered from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from blueprint.deliver.git import Git
from blueprint.spec.files import FOLDERS, IMAGES_LOCK


class Age(Enum):
    """How another commit of the specs stands to this one."""

    SAME_OR_OLDER = "same or older"
    NEWER = "newer"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Specs:
    """The commit of the specs ("" outside of Git), its time (ISO 8601), and spec files that differ from it."""

    root: Path
    commit: str = ""
    time: str = ""
    changed: tuple[str, ...] = ()

    def compare(self, other: str, time: str) -> Age:
        """How commit `other`, made at `time`, stands to this one; where a shallow clone lacks it, the times tell."""
        if not self.commit or not other:
            return Age.UNKNOWN
        if other == self.commit:
            return Age.SAME_OR_OLDER
        git = Git(self.root)
        if git.run("cat-file", "-e", f"{other}^{{commit}}")[0] == 0:
            if git.run("merge-base", "--is-ancestor", self.commit, other)[0] == 0:
                return Age.NEWER
            if git.run("merge-base", "--is-ancestor", other, self.commit)[0] == 0:
                return Age.SAME_OR_OLDER
        if not time or not self.time:
            return Age.UNKNOWN
        return Age.NEWER if time > self.time else Age.SAME_OR_OLDER


def specs_at(root: Path) -> Specs:
    """Look at the repository around a platform; nothing in it is changed, not even its index."""
    git = Git(root, [("core.fsmonitor", "false")])
    commit = git.text("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not commit:
        return Specs(root)
    seconds = git.text("-c", "log.showSignature=false", "show", "-s", "--format=%ct", commit)
    time = datetime.fromtimestamp(int(seconds), UTC).isoformat() if seconds else ""
    options = ("--porcelain", "-z", "--untracked-files=all", "--no-renames")
    status = git("--no-optional-locks", "status", *options, "--", *FOLDERS, IMAGES_LOCK, "templates")
    return Specs(
        root, commit, time, tuple(entry[3:] for entry in status.decode("utf-8", "replace").split("\0") if entry)
    )
