"""Hooks of Argo CD: those that never run, that never end, or that need what comes after them.

Source: gitops-engine v3.6.1 pkg/sync/hook, pkg/sync/sync_context.go; argo-cd v3.6.1 docs/user-guide/sync-waves.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.catalog.gating import stalls
from blueprint.catalog.references import references
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import mapping, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest
from blueprint.sync import HOOK

_PHASES = ("PreSync", "Sync", "PostSync", "SyncFail", "Skip", "PreDelete", "PostDelete")
_DELETE = "argocd.argoproj.io/hook-delete-policy"
_POLICIES = ("HookSucceeded", "HookFailed", "BeforeHookCreation")
_NEEDED = ("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim")


def _words(written: str) -> list[str]:
    return [word.strip() for word in written.split(",")]


def _path(key: str) -> str:
    return f'metadata.annotations["{key}"]'


def hooks(graph: Graph) -> Iterator[Finding]:
    """WAV204 to WAV207 and WAV212, for every object with a hook annotation."""
    for manifest, written in graph.deliveries.noted:
        notes = {key: text(value) for key, value in written.items()}
        if not notes.get(HOOK) or placeholder(notes[HOOK]):
            continue
        phases = [word for word in _words(notes[HOOK]) if word in _PHASES]
        unknown = [word for word in _words(notes[HOOK]) if word not in _PHASES]
        if unknown and not phases:
            message = f"{notes[HOOK]!r} is no hook: Argo CD takes the object for one and never applies it"
            yield say("WAV204", manifest, message, _path(HOOK), f"one of {', '.join(_PHASES)}")
        elif unknown:
            message = f"{', '.join(unknown)} is no hook and is passed over"
            yield warn("WAV204", manifest, message, _path(HOOK), f"one of {', '.join(_PHASES)}")
        bad = [word for word in _words(notes.get(_DELETE, "")) if word and word not in _POLICIES]
        if bad and not placeholder(notes[_DELETE]):
            message = f"{', '.join(bad)} is no delete policy; the hook is deleted before the next one is made"
            yield warn("WAV212", manifest, message, _path(_DELETE), f"one of {', '.join(_POLICIES)}")
        if phases and phases != ["Skip"]:
            yield from _running(manifest, phases)


def _running(manifest: Manifest, phases: list[str]) -> Iterator[Finding]:
    if reason := stalls(manifest):
        message = f"the {phases[0]} hook {manifest.ref} may never end, and the sync with it: {reason}"
        fix = "keep what waits for quota out of hooks; submit it on its own"
        yield say("WAV205", manifest, message, _path(HOOK), fix)
    if mapping(manifest.body.get("spec")).get("ttlSecondsAfterFinished") is not None and manifest.kind == "Job":
        message = "the Job deletes itself when it has finished; Argo CD then sees a hook that is gone and runs it again"
        fix = "leave ttlSecondsAfterFinished out and use hook-delete-policy: HookSucceeded"
        yield warn("WAV207", manifest, message, "spec.ttlSecondsAfterFinished", fix)


def hooks_before_their_needs(graph: Graph) -> Iterator[Finding]:
    """WAV206: a PreSync hook that uses what the Sync phase of the same sync makes; at first it is not there."""
    early = {id(m) for m, notes in graph.deliveries.noted if "PreSync" in _words(text(notes.get(HOOK)))}
    for sync in graph.deliveries.syncs if early else ():
        by_ref = {manifest.ref: manifest for manifest in sync.objects}
        for manifest in sync.objects:
            if id(manifest) not in early:
                continue
            for reference in references(manifest):
                needed = by_ref.get(reference.target)
                if needed is None or reference.optional or reference.target.kind not in _NEEDED:
                    continue
                if HOOK in annotations_of(needed.body):
                    continue
                message = f"{needed.ref} is made in the Sync phase, after this PreSync hook that uses it"
                fix = "make it a PreSync hook of a lower wave, too, or make this one a Sync hook"
                yield say("WAV206", manifest, message, reference.path, fix)


RULES = ()
TREE = (hooks, hooks_before_their_needs)
