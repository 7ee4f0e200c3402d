"""What comes into pods with an image: from where, which build, and code that was not there before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blueprint.check.images import image as parsed
from blueprint.check.pods import containers
from blueprint.check.shapes import mapping, maps, text
from blueprint.review.diff import Edit, Item
from blueprint.review.model import Risk
from blueprint.review.words import shown_pair
from blueprint.review.workloads import pods

if TYPE_CHECKING:
    from blueprint.review.special import Case

Said = tuple[Risk, str]


def image(case: Case) -> Said | None:
    """An image: from where, and what in it."""
    if not (isinstance(case.edit.before, str) and isinstance(case.edit.after, str)):
        return None
    old, new = parsed(case.edit.before), parsed(case.edit.after)
    before, after = shown_pair(case.edit)
    registries = [registry(each.repository) for each in (old, new)]
    if registries[0] != registries[1]:
        return Risk.SECURITY, f"image from another registry: {registries[0]} → {registries[1]}"
    if old.repository != new.repository:
        return Risk.RESTART, f"another image: {before} → {after}"
    if old.digest and not new.digest:
        return Risk.SECURITY, f"image no longer by digest: {before} → {after}, which can be moved"
    name = case.edit.before.partition("@")[0].rpartition("/")[2]
    if old.digest and new.digest and old.tag == new.tag:
        builds = f"{build(old.digest)} → {build(new.digest)}"
        return Risk.RESTART, f"another build of {name} runs{_where(case.edit)}: {builds}"
    if old.digest and old.digest == new.digest:
        return Risk.RESTART, f"image {before} → {after}: the same build under another name"
    if new.digest and old.tag == new.tag:
        return Risk.RESTART, f"image {name} by its digest from now on: {build(new.digest)}, whatever its tag was"
    return Risk.RESTART, f"image {before} → {after}"


def build(digest: str) -> str:
    """A digest in a sentence."""
    return f"{digest.rpartition(':')[2][:8]}…"


def _where(edit: Edit) -> str:
    """In which container, where it is none of those that do the work."""
    name = next((str(step.keys[0][1]) for step in reversed(edit.steps) if isinstance(step, Item)), "")
    return f" before the others start ({name})" if "initContainers" in edit.path else f" in {name}" if name else ""


def registry(repository: str) -> str:
    """The host of an image; github.com/distribution/reference v0.6.0 normalize.go splitDockerDomain."""
    host, slash, _ = repository.partition("/")
    return host if slash and (set(host) & {".", ":"} or host == "localhost") else "docker.io"


def container(case: Case) -> Said | None:
    """A container that comes: code that was not in the pod before."""
    come = maps(case.edit.after) or [mapping(case.edit.after)]
    old = {
        registry(parsed(text(each.get("image"))).repository)
        for pod in (pods(case.pair.old) if case.pair.old else ())
        for _, each in containers(pod.spec)
    }
    names = ", ".join(text(each.get("name")) for each in come)
    new = sorted({registry(parsed(text(each.get("image"))).repository) for each in come if each.get("image")} - old)
    if new:
        return Risk.SECURITY, f"{names} comes into its pods, with an image from {', '.join(new)}"
    return Risk.RESTART, f"{case.edit.path[-2 if case.edit.path[-1] == '[]' else -1]} {names} comes"
