"""Promotion and roll-back: bytes that a remote holds already are put on a branch again; nothing is rendered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from blueprint.deliver.message import trailers
from blueprint.deliver.release import REFERENCES, SIGNED, Release, name_of, part_at, read_tree
from blueprint.deliver.remote import Remote
from blueprint.errors import UsageError
from blueprint.tree import Part
from blueprint.tree.lock import NAME

Branch = Callable[[str], str]
"""The branch that a cluster follows."""

_DEPTHS = (16, 128, 0)
"""How much of a branch's history is fetched, until what is looked for is in it; 0 is all."""


def running(remote: Remote, cluster: str, branch: str, path: str) -> Part | None:
    """What a cluster's branch holds for it now; None where nothing was delivered yet."""
    tip = remote.tip(branch)
    return part_at(remote.read(tip, f"{path}/{NAME}"), cluster) if tip else None


def stage_of(cluster: str, promotion: Sequence[Sequence[str]]) -> int:
    """The stage of a cluster, from 0. Raises UsageError where it has none."""
    for number, stage in enumerate(promotion):
        if cluster in stage:
            return number
    order = " → ".join(", ".join(stage) for stage in promotion)
    hint = f"the order is {order}" if order else "spec.promotion of the Delivery has the order"
    raise UsageError(f"{cluster} has no place in the order of promotion", hint=hint)


def source_of_promotion(
    remote: Remote, cluster: str, promotion: Sequence[Sequence[str]], branch: Branch, path: str
) -> Release:
    """The release that the stage before the cluster's runs, with the cluster's own part in it.

    The stage before must run one release, unedited, and the remote must keep that release. Raises UsageError where
    one of these is not so.
    """
    number = stage_of(cluster, promotion)
    if number == 0:
        raise UsageError(
            f"{cluster} is in the first stage: nothing runs before it", hint="blueprint commit delivers it"
        )
    before: dict[str, Part] = {}
    for other in promotion[number - 1]:
        if (part := running(remote, other, branch(other), path)) is None:
            raise UsageError(f"nothing is delivered to {other} yet, which comes before {cluster}", hint="commit first")
        before[other] = part
    names = {other: name_of(part.made) for other, part in before.items()}
    if len(set(names.values())) > 1:
        runs = ", ".join(f"{other} runs {name[:12]}" for other, name in names.items())
        raise UsageError(f"the stage before {cluster} runs several releases: {runs}", hint="bring them to one first")
    release = kept(remote, next(iter(names.values())))
    for other, part in before.items():
        _unedited(remote, other, branch(other), path)
        if release.lock.clusters.get(other) != part:
            raise UsageError(f"what {other} runs is not what the release says", where=remote.shown)
    if cluster not in release.lock.clusters:
        raise UsageError(
            f"release {release.name[:12]} holds nothing for {cluster}", hint="was the cluster added later?"
        )
    return release.of([cluster])


def _unedited(remote: Remote, cluster: str, branch: str, path: str) -> None:
    """Raise UsageError where files of the cluster were edited on its branch: nobody tested what was rendered."""
    read_tree(remote.unpack(remote.tip(branch), path), [cluster])


def kept(remote: Remote, name: str) -> Release:
    """A release that the remote keeps, by its name or the beginning of it (at least seven hex digits)."""
    if not re.fullmatch(r"[0-9a-f]{7,64}", name):
        raise UsageError(f"{name} is no release", hint="a release is named by 7 to 64 hex digits: see git log")
    found = remote.references(f"{REFERENCES}{name}" if len(name) == 64 else f"{REFERENCES}{name}*")
    if len(found) != 1:
        what = f"the remote keeps no release {name[:12]}" if not found else f"{name} begins several releases"
        raise UsageError(what, where=remote.shown, hint="blueprint commit from those specs keeps it there")
    (reference,) = found
    release = read_tree(remote.unpack(remote.fetch(reference)))
    if f"{REFERENCES}{release.name}" != reference:
        raise UsageError(f"the remote keeps another release under the name {name[:12]}", where=remote.shown)
    return replace(release, signatures=_signatures(remote, release.name), signed=release.lock)


def _signatures(remote: Remote, name: str) -> dict[str, bytes]:
    """What signs a release, as far as the remote keeps it: files of `.attestations/`."""
    tree = remote.fetch(f"{SIGNED}{name}")
    root = remote.unpack(tree) if tree else remote.folder / "empty"
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def source_of_rollback(remote: Remote, cluster: str, branch: str, path: str) -> tuple[Release, str]:
    """The release that the cluster ran before the present one, and the name of the present one.

    Releases that were rolled back from are passed over, so that going back twice goes two steps. Raises UsageError
    where the history holds none.
    """
    for depth in _DEPTHS:
        tip = remote.tip(branch, depth=depth)
        if not tip:
            break
        current, found = _before(remote, tip, cluster, path)
        if not current:
            break
        if found:
            return read_tree(remote.unpack(found, path), [cluster]), current
    raise UsageError(f"{cluster} ran nothing before", where=f"{remote.shown} {branch}")


def _before(remote: Remote, tip: str, cluster: str, path: str) -> tuple[str, str]:
    """The present release of the cluster, and the newest commit that held the one to go back to ("" for none)."""
    log = remote.git("log", "-z", "--first-parent", "--format=%H%n%B", tip, "--", f"{path}/{NAME}")
    current, passed = "", set[str]()
    for entry in filter(None, log.decode("utf-8", "replace").split("\0")):
        commit, _, text = entry.partition("\n")
        part = part_at(remote.read(commit, f"{path}/{NAME}"), cluster)
        if part is None:
            continue
        name = name_of(part.made)
        current = current or name
        if name != current and name not in passed:
            return current, commit
        passed |= _left(trailers(text), cluster)
    return current, ""


def _left(found: Mapping[str, str], cluster: str) -> set[str]:
    """The releases that a commit rolled the cluster back from."""
    clusters = found.get("Clusters", "").split(", ")
    return {found["Rolled-Back"]} if "Rolled-Back" in found and cluster in clusters else set()
