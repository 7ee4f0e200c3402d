"""Waves of Argo CD on anybody's objects: those that do not wait, and those that wait for ever.

The sync itself is modelled in blueprint/sync.py. What an Application applies is what stands in its folder; objects that
no Application of the tree reads are taken folder by folder, where one of them has a wave or a hook.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from blueprint.catalog.argocd import checked_kinds
from blueprint.catalog.gating import Gate, Gates, maker, reconciled, stalls
from blueprint.catalog.references import references
from blueprint.catalog.tables import table
from blueprint.check.applications import APPLICATION, Application, Sync, health_scripts, sync_options
from blueprint.check.graph import Graph, kind_of
from blueprint.check.rules.say import note, say
from blueprint.check.shapes import known, mapping, maps, placeholder, text
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest
from blueprint.sync import HOOK, WAVE, Step, Verdict, parse_wave, simulate, wave


def unreadable_waves(graph: Graph) -> Iterator[Finding]:
    """WAV201: a wave that is no whole number in quotes counts as 0, in silence."""
    path = f'metadata.annotations["{WAVE}"]'
    for manifest, notes in graph.deliveries.noted:
        value = notes.get(WAVE)
        if value is not None and not placeholder(value) and parse_wave(value) is None:
            message = f"wave {value!r} is not read: Argo CD puts the object into wave 0"
            yield say("WAV201", manifest, message, path, 'write a whole number in quotes, "1"')


def open_and_hanging_waves(graph: Graph) -> Iterator[Finding]:
    """WAV103, WAV105: a wave that the next one does not wait for, or waits for without end."""
    scripts, complete = health_scripts(graph)
    gates = Gates(checked_kinds() | scripts, active=reconciled())
    hooks = {id(manifest) for manifest, notes in graph.deliveries.noted if HOOK in notes}
    hooked = {id(sync) for sync in graph.deliveries.syncs if any(id(each) in hooks for each in sync.objects)}
    for sync in graph.deliveries.syncs:
        if len({graph.deliveries.wave(m) for m in sync.objects}) == 1 and id(sync) not in hooked:
            continue
        steps = simulate(sync.objects, gates, stalled=_stalls)
        for step, following in pairwise(steps):
            if step.verdict is Verdict.HANGS:
                yield from _hanging(sync, step, following)
            elif step.verdict is Verdict.OPEN:
                yield from _open(graph, sync, step, following, gates, sure=complete)


def _stalls(manifest: Manifest) -> str:
    """Why an object can stall; a Rollout only where it has a pause without end or an analysis that may be undecided."""
    reason = stalls(manifest)
    if reason and manifest.kind == "Rollout" and kind_of(manifest) == "Rollout.argoproj.io":
        canary = mapping(mapping(mapping(manifest.body.get("spec")).get("strategy")).get("canary"))
        pauses = [mapping(step["pause"]) for step in maps(canary.get("steps")) if "pause" in step]
        return reason if any("duration" not in pause for pause in pauses) else ""
    return reason


def _hanging(sync: Sync, step: Step, following: Step) -> Iterator[Finding]:
    by_ref = {manifest.ref: manifest for manifest in step.objects}
    ref, reason = step.reasons[0]
    more = f" (and {len(step.reasons) - 1} more)" if len(step.reasons) > 1 else ""
    first = following.objects[0].ref
    message = f"{_wave(following)} of {sync.name}, with {first}, would wait for {ref}{more}: {reason}"
    fix = (
        "put it into the last wave of an Application of its own; ignore-healthcheck does not shorten what a wave waits"
    )
    rollout = ref.kind == "Rollout"
    severity = Severity.WARNING if rollout else Severity.ERROR
    yield say("WAV105", by_ref[ref], message, "", fix, severity, Confidence.LIKELY)


def _open(graph: Graph, sync: Sync, step: Step, following: Step, gates: Gates, *, sure: bool) -> Iterator[Finding]:
    by_ref = {manifest.ref: manifest for manifest in step.objects}
    blind: dict[str, Ref] = {}
    for ref, _ in step.reasons:
        if gates.of(ref.group, ref.kind) is Gate.BLIND:
            blind.setdefault(kind_of(by_ref[ref]), ref)
    for kind, ref in blind.items():
        message = f"{_wave(following)} of {sync.name} does not wait for {ref}: Argo CD has no health check for {kind}"
        fix = f"add a health script for {kind} to argocd-cm"
        sureness = Confidence.CERTAIN if sure else Confidence.LIKELY
        yield say("WAV103", by_ref[ref], message, "", fix, Severity.WARNING, sureness)


def _wave(step: Step) -> str:
    return f"wave {step.wave}" if step.phase == "Sync" else f"{step.phase} wave {step.wave}"


def applications_in_waves(graph: Graph) -> Iterator[Finding]:
    """WAV108, WAV213: Applications in waves, which nothing makes wait for each other."""
    scripts, complete = health_scripts(graph)
    applications = {id(manifest) for manifest in graph.kind(APPLICATION)}
    for sync in graph.deliveries.syncs:
        children = [manifest for manifest in sync.objects if id(manifest) in applications]
        waves = sorted({wave(manifest.body) for manifest in children})
        if len(waves) < 2:
            continue
        later = next(manifest for manifest in children if wave(manifest.body) == waves[1])
        if ("argoproj.io", "Application") not in scripts:
            message = (
                f"the Applications of wave {waves[1]} do not wait for those of wave {waves[0]}: "
                "Argo CD has had no health check for Applications since 1.8"
            )
            fix = "add resource.customizations.health.argoproj.io_Application to argocd-cm"
            sureness = Confidence.CERTAIN if complete else Confidence.LIKELY
            yield say("WAV108", later, message, f'metadata.annotations["{WAVE}"]', fix, confidence=sureness)
            continue
        ours = {id(manifest) for manifest in children}
        free = [each for each in graph.deliveries.applications if id(each.manifest) in ours and _moves_by_itself(each)]
        if len(free) > 1 and not _independent(graph, free):
            message = (
                f"the waves of {len(free)} Applications order their first sync only: each syncs itself when its folder "
                "changes, and their parent does not"
            )
            fix = "keep what must be ordered in one Application, or let an ApplicationSet roll them out in steps"
            yield note("WAV213", later, message, f'metadata.annotations["{WAVE}"]', fix)


def _independent(graph: Graph, found: Sequence[Application]) -> bool:
    """Whether the tree holds what the Applications apply, and no kind of one comes with a CRD of an earlier one.

    Then a change of several at once goes through in any order: what is missing for a moment is tried again.
    """
    made: dict[tuple[str, str], int] = {}
    for application in found:
        for manifest in graph.deliveries.objects(application):
            if kind_of(manifest) == "CustomResourceDefinition.apiextensions.k8s.io":
                spec = mapping(manifest.body.get("spec"))
                key = text(spec.get("group")), text(mapping(spec.get("names")).get("kind"))
                made[key] = wave(application.manifest.body)
    for application in found:
        objects = graph.deliveries.objects(application)
        at = wave(application.manifest.body)
        if not objects or any(made.get((m.ref.group, m.kind), at) < at for m in objects):
            return False
    return True


def _moves_by_itself(application: Application) -> bool:
    revisions = [text(source.body.get("targetRevision")) for source in application.sources]
    pinned = all(len(each) == 40 or each[:1].isdigit() or each[:2] in ("v0", "v1") for each in revisions)
    return application.automated is not None and not pinned


def volume_claims_alone(graph: Graph) -> Iterator[Finding]:
    """WAV202: a claim that binds when a pod uses it, in a wave before that pod."""
    late = {
        manifest.ref.name
        for manifest in graph.kind("StorageClass.storage.k8s.io")
        if manifest.body.get("volumeBindingMode") == "WaitForFirstConsumer"
    }
    if not late:
        return
    for sync in graph.deliveries.syncs:
        claims = [m for m in sync.objects if kind_of(m) == "PersistentVolumeClaim" and _class(m) in late]
        if not claims:
            continue
        last = max(wave(manifest.body) for manifest in sync.objects)
        used = _first_use(sync.objects)
        for claim in claims:
            at = wave(claim.body)
            if at < last and used.get(claim.ref, last + 1) > at:
                message = (
                    f"wave {at} of {sync.name} waits until this claim is bound; StorageClass {_class(claim)} binds it "
                    "when a pod uses it, and that pod is in a later wave"
                )
                yield say("WAV202", claim, message, "spec.storageClassName", "put the claim into the wave of its pod")


def _class(claim: Manifest) -> str:
    return known(mapping(claim.body.get("spec")).get("storageClassName"))


def _first_use(objects: Sequence[Manifest]) -> dict[Ref, int]:
    used: dict[Ref, int] = {}
    for manifest in objects:
        for reference in references(manifest):
            if reference.target.kind == "PersistentVolumeClaim":
                number = wave(manifest.body)
                used[reference.target] = min(number, used.get(reference.target, number))
    return used


def namespaces_made_later(graph: Graph) -> Iterator[Finding]:
    """WAV203: a wave that writes into a namespace which only a later wave makes."""
    makers = {row["kind"] for row in table("generators")["namespace_makers"]}
    deliveries = graph.deliveries
    places: dict[tuple[str, str, str], tuple[Manifest, Application]] = {}
    waves = {deliveries.wave(application.manifest) for application in deliveries.applications}
    for made in graph.kind("Namespace", *makers) if len(waves) > 1 else ():
        for application in deliveries.owners.get(id(made), ()):
            places.setdefault((*_siblings(application), made.ref.name), (made, application))
    for application in deliveries.applications if places else ():
        said: set[str] = set()
        early = deliveries.wave(application.manifest)
        for manifest in deliveries.objects(application):
            namespace = manifest.ref.namespace
            if not namespace or namespace in said:
                continue
            said.add(namespace)
            found = places.get((*_siblings(application), namespace))
            creates = "CreateNamespace=true" in application.options and namespace == application.namespace
            if found is None or found[1] is application or creates:
                continue
            late = deliveries.wave(found[1].manifest)
            if late <= early:
                continue
            message = (
                f"a circle: {manifest.ref} of Application {application.name} (wave {early}) needs the namespace "
                f"{namespace}, which {found[0].ref} of Application {found[1].name} makes, and that is of wave {late}"
            )
            yield say("WAV203", manifest, message, "metadata.namespace", "make the namespace in an earlier wave")
    if graph.kind(*makers):
        for sync in graph.deliveries.syncs:
            yield from _made_in_a_later_wave(sync, makers)


def _siblings(application: Application) -> tuple[str, str]:
    """What must be the same for two Applications to be ordered by their waves: the cluster, and where they stand."""
    return application.cluster, application.manifest.folder


def _made_in_a_later_wave(sync: Sync, makers: set[str]) -> Iterator[Finding]:
    """Within one sync Argo CD moves a Namespace in front of its users, but not the object whose controller makes it."""
    made = {manifest.ref.name: manifest for manifest in sync.objects if kind_of(manifest) in makers}
    if not made or any(m.kind == "Namespace" and m.ref.name in made for m in sync.objects):
        return
    for manifest in sync.objects:
        source = made.get(manifest.ref.namespace)
        if source and wave(manifest.body) < wave(source.body):
            message = (
                f"a circle: {manifest.ref} (wave {wave(manifest.body)}) needs the namespace {source.ref.name}, which "
                f"the controller of {source.ref} makes, and that is of wave {wave(source.body)}"
            )
            yield say("WAV203", manifest, message, "metadata.namespace", f"put {source.kind} into an earlier wave")


def constraints_before_templates(graph: Graph) -> Iterator[Finding]:
    """WAV208: an object of a CRD that a controller makes, without a later wave and the leave to skip the dry run."""
    templates = {id(manifest) for manifest in graph.kind("ConstraintTemplate.templates.gatekeeper.sh")}
    for sync in graph.deliveries.syncs if templates else ():
        option = "SkipDryRunOnMissingResource=true"
        everywhere = sync.application is not None and option in sync.application.options
        made = {manifest.ref: manifest for manifest in sync.objects if id(manifest) in templates}
        for manifest in sync.objects if made else ():
            source = maker(manifest.ref)
            template = made.get(source) if source else None
            if template is None:
                continue
            skips = everywhere or option in sync_options(manifest)
            late = wave(manifest.body) > wave(template.body)
            if skips and late:
                continue
            lacks = " and ".join(["leave to skip the dry run"] * (not skips) + ["a later wave"] * (not late))
            message = (
                f"the kind {manifest.kind} exists only after Gatekeeper has read {template.ref}, which is in the same "
                f"sync (wave {wave(template.body)}); this constraint lacks {lacks}"
            )
            fix = f"annotate it with argocd.argoproj.io/sync-options: {option}, in a wave after its template"
            # Without the dry run only the time that Gatekeeper takes for the kind stands against the constraint.
            sureness = Confidence.LIKELY if skips else Confidence.CERTAIN
            yield say("WAV208", manifest, message, "metadata.annotations", fix, confidence=sureness)


RULES = ()
TREE = (
    unreadable_waves,
    open_and_hanging_waves,
    applications_in_waves,
    volume_claims_alone,
    namespaces_made_later,
    constraints_before_templates,
)
