"""The verb `explain`: find the job among the files, and decide with what stands around it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from blueprint.admission.change import Change, smallest_change
from blueprint.admission.decide import Decision, decide
from blueprint.admission.queues import GROUP
from blueprint.admission.settings import asked_for
from blueprint.admission.world import KINDS, world
from blueprint.check.read import Reading, read
from blueprint.errors import UsageError
from blueprint.objects import Manifest


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision about one job, and the smallest change that would admit it (None where there is none to make)."""

    decision: Decision
    change: Change | None


def explain_paths(what: str, paths: Sequence[Path | str], *, namespace: str = "", kueue: str = "") -> Explanation:
    """Decide about the job `what` (`kind/name`, in any case of letters) among the files below the paths.

    Raises UsageError where there is no such object, or more than one, or no such version of Kueue.
    """
    kueue = asked_for(kueue)
    reading = read(paths, only=deciding(what.partition("/")[0]))
    job = _find(reading.manifests, what, namespace)
    manifests, aside = surroundings(reading, job)
    around = world(manifests, aside, kueue)
    decision = decide(around, job)
    return Explanation(decision, smallest_change(around, job, decision))


def deciding(kind: str) -> re.Pattern[bytes]:
    """Finds files with something that has a say in a decision about a job of a kind: most files of a tree have not."""
    names = "|".join(map(re.escape, (*sorted(KINDS), kind.removesuffix("s"))))
    return re.compile(rf"""kind["']?\s*:\s*["']?(?:{names})""".encode(), re.IGNORECASE)


def _find(manifests: Sequence[Manifest], what: str, namespace: str) -> Manifest:
    kind, slash, name = what.partition("/")
    if not slash or not kind or not name:
        raise UsageError(f"{what} is no object", hint="write KIND/NAME, such as PyTorchJob/llama3-8b-sft")
    kinds = {kind.lower(), kind.lower().removesuffix("s")}
    named = [m for m in manifests if m.kind.lower() in kinds and (not namespace or m.ref.namespace == namespace)]
    found = [m for m in named if m.ref.name == name]
    if not found:
        close = difflib.get_close_matches(name, [m.ref.name for m in named], 1)
        hint = f"did you mean {close[0]}?" if close else f"objects of that kind: {len(named)}"
        raise UsageError(f"there is no {what}" + (f" in namespace {namespace}" if namespace else ""), hint=hint)
    if len(found) > 1:
        places = ", ".join(str(m.source) for m in found[:4])
        raise UsageError(
            f"{what} is there {len(found)} times: {places}", hint="name the folder of one, or -n NAMESPACE"
        )
    return found[0]


def surroundings(reading: Reading, job: Manifest) -> tuple[list[Manifest], list[Manifest]]:
    """What belongs to the job's cluster: the widest folder around it in which no queue or flavor stands twice.

    A folder with several clusters holds the same queues several times, and only one of them is the job's.
    """
    files: dict[object, set[str]] = {}
    for manifest in reading.manifests:
        if manifest.ref.group == GROUP:
            files.setdefault(manifest.ref, set()).add(manifest.source.file)
    repeated = [found for found in files.values() if len(found) > 1]
    folders = [PurePath(job.source.file), *PurePath(job.source.file).parents]
    for folder in reversed(folders):
        if all(sum(_below(file, folder) for file in found) < 2 for found in repeated):
            break
    inside = [m for m in reading.manifests if _below(m.source.file, folder)]
    return inside, [m for m in reading.aside if _below(m.source.file, folder)]


def _below(file: str, folder: PurePath) -> bool:
    path = PurePath(file)
    return folder == path or folder in path.parents
