"""What a change means to teams and jobs: both sides are decided as Kueue would, and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from blueprint.admission.amounts import FlavorResource, shown
from blueprint.admission.decide import Decision, decide, decide_job
from blueprint.admission.podsets import QUEUE_LABEL, kinds
from blueprint.admission.podsets import job as read_job
from blueprint.admission.queues import GROUP
from blueprint.admission.quota import QuotaNode
from blueprint.admission.settings import GROUP as CONFIG_GROUP
from blueprint.admission.state import State, idle
from blueprint.admission.world import World, world
from blueprint.check.shapes import mapping, text
from blueprint.finding import Ref
from blueprint.objects import Manifest
from blueprint.review.landing import moves
from blueprint.review.model import Meaning, Pair, Risk
from blueprint.review.pairs import Places
from blueprint.review.sides import Side, Sides

_QUEUES = tuple(f"{kind}.{GROUP}" for kind in ("ClusterQueue", "Cohort", "LocalQueue"))
_SCALERS = ("ScaledObject.keda.sh", "HorizontalPodAutoscaler.autoscaling")
_RUNTIMES = ("TrainingRuntime.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org")
_IN_NAMESPACE = ("Namespace", "LimitRange", "ResourceClaimTemplate.resource.k8s.io")
_EVERYWHERE = (
    *(f"{kind}.{GROUP}" for kind in ("ResourceFlavor", "Topology", "AdmissionCheck")),
    *(f"{kind}.{GROUP}" for kind in ("ProvisioningRequestConfig", "MultiKueueConfig")),
    *("Node", "RuntimeClass.node.k8s.io", "DeviceClass.resource.k8s.io", "Inventory", "NodePool", "ConfigMap"),
)
"""Kinds that decide about every job. Priorities do not: a decision is about an idle cluster."""

_WORDS = (
    *(b"kueue.x-k8s.io/v1", CONFIG_GROUP.encode(), b"TrainingRuntime", b"scheduling.k8s.io", b"node.k8s.io"),
    *(b"resource.k8s.io", b"kind: Namespace", b'"Namespace"', b"LimitRange", b"kind: Node", b'"Node"', b"nventory"),
    *(b"NodePool", b"controller_manager_config"),
)
"""One of these stands in every file that decides."""
_JOBS = (b"kueue.x-k8s.io/queue-name", b"queueName", b"ScaledObject", b"HorizontalPodAutoscaler")
"""One of these stands in every file with a job that is queued, or with its scaler."""
_TRAINJOBS = (b"kind: TrainJob", b'"TrainJob"')

_MOST_JOBS = 400
"""Jobs that are decided on each side of one cluster; the rest is told to be left out."""


@dataclass(frozen=True, slots=True)
class _Half:
    """One side of one cluster. `states` are idle states by root of a tree of queues, made when they are asked for."""

    manifests: list[Manifest]
    world: World
    states: dict[str, State] = field(default_factory=dict)

    @classmethod
    def of(cls, side: Side, cluster: str, where: Places, own: Iterable[Manifest], words: tuple[bytes, ...]) -> _Half:
        """What of the side decides in a cluster, by words in its files; what lies outside of all clusters is in each.

        `own` are objects that are asked about, whether a word stands in their files or not.
        """
        found = side.holding(words)
        mine = [m for m in found.manifests if where.cluster(m) in (cluster, "")]
        known = set(map(id, mine))
        mine += [manifest for manifest in own if id(manifest) not in known]
        return cls(mine, world(mine, [m for m in found.aside if where.cluster(m) in (cluster, "")]))

    def jobs(self) -> dict[Ref, Manifest]:
        """The jobs that are queued, by identity."""
        names = frozenset(kinds())
        return {m.ref: m for m in self.manifests if m.ref.kind_name in names and _queue(m)}

    def decide(self, job: Manifest, copies: int | None = None) -> Decision | None:
        """The decision about a job, of so many copies of its pods where that is said; None for what is no job.

        Only the job's own tree of queues is looked at: trees do not touch each other.
        """
        local = self.world.local_queues.get(_place(job))
        root = _root(self.world, local.cluster_queue) if local else ""
        if (state := self.states.get(root)) is None:
            mine = {name: spec for name, spec in self.world.queues.items() if _root(self.world, name) == root}
            state = self.states[root] = idle(replace(self.world, queues=mine) if mine else self.world)
        if copies is None:
            return decide(state.world, job, state)
        asked = read_job(job, self.world.find, self.manifests)
        if asked is None or isinstance(asked, Ref):
            return None
        return decide_job(state.world, job, replace(asked, copies=copies), state)


def meanings(sides: Sides, pairs: Sequence[Pair], where: Places) -> list[Meaning]:
    """What the pairs mean, cluster by cluster; nothing is read where none of them decides anything."""
    clusters = dict.fromkeys(pair.cluster for pair in pairs if _decides(pair))
    found: list[Meaning] = []
    for cluster in clusters:
        mine = [pair for pair in pairs if pair.cluster in (cluster, "") and _decides(pair)]
        words = _words(mine)
        old = _Half.of(sides.base, cluster, where, [pair.old for pair in mine if pair.old], words)
        new = _Half.of(sides.head, cluster, where, [pair.new for pair in mine if pair.new], words)
        if any(pair.ref.kind_name in _QUEUES for pair in mine):
            found += quotas(old.world, new.world, cluster)
        found += _jobs(old, new, mine, cluster)
    return found


def places_differ(pair: Pair) -> bool:
    """Whether what means nothing for the object itself may decide where pods stand: labels, and what nodes offer."""
    kinds = ("Node", "Namespace")
    if pair.ref.kind_name not in kinds or pair.old is None or pair.new is None:
        return False
    return pair.old.body != pair.new.body


def _words(pairs: Sequence[Pair]) -> tuple[bytes, ...]:
    """What stands in the files that must be read: with all jobs only where more than jobs and runtimes changed."""
    others = [pair for pair in pairs if not _is_job(pair)]
    if not others:
        return _WORDS
    return (*_WORDS, *(_TRAINJOBS if all(pair.ref.kind_name in _RUNTIMES for pair in others) else _JOBS))


def _is_job(pair: Pair) -> bool:
    return all(manifest is None or bool(_queue(manifest)) for manifest in (pair.old, pair.new))


def _decides(pair: Pair) -> bool:
    """Whether an object is one that Kueue's decisions depend on, or a job that is queued."""
    kind = pair.ref.kind_name
    if kind == "ConfigMap":
        written = str(pair.there.body.get("data"))
        return CONFIG_GROUP in written or "nventory" in str(pair.there.body)
    if kind in (*_QUEUES, *_SCALERS, *_RUNTIMES, *_IN_NAMESPACE, *_EVERYWHERE):
        return True
    return any(manifest is not None and bool(_queue(manifest)) for manifest in (pair.old, pair.new))


def _queue(manifest: Manifest) -> str:
    """The queue that a job, or the template of its pods, names; a Workload says it itself."""
    if manifest.ref.kind_name == f"Workload.{GROUP}":
        return text(mapping(manifest.body.get("spec")).get("queueName"))
    template = mapping(mapping(manifest.body.get("spec")).get("template"))
    for holder in (manifest.body, template):
        name = mapping(mapping(holder.get("metadata")).get("labels")).get(QUEUE_LABEL)
        if isinstance(name, str) and name:
            return name
    return ""


@dataclass(frozen=True, slots=True)
class Share:
    """What one ClusterQueue has of one flavor and resource, in Kueue's integers."""

    nominal: int = 0
    borrowable: int = 0
    lendable: int = 0


def shares(found: World) -> dict[tuple[str, FlavorResource], Share]:
    """Every ClusterQueue's share of each accelerator, by (queue, flavor and resource)."""
    state = idle(found)
    devices = set(found.settings.devices.values())
    result: dict[tuple[str, FlavorResource], Share] = {}
    for name, queue in found.queues.items():
        node = state.nodes.get(name)
        for key in queue.quotas if node is not None else ():
            if "/" in key.resource or key.resource in devices:
                result[name, key] = _share(node, key) if name in state.queues and node else Share()
    return result


def _share(node: QuotaNode, key: FlavorResource) -> Share:
    nominal = node.quota(key).nominal
    lendable = nominal - node.kept(key) if node.parent is not None else 0
    return Share(nominal, max(0, node.capacity(key) - nominal), max(0, lendable))


def quotas(old: World, new: World, cluster: str) -> Iterator[Meaning]:
    """Nominal, borrowable and lendable accelerators that teams lose or gain."""
    before, after = shares(old), shares(new)
    for queue, key in dict.fromkeys((*before, *after)):
        then, now = before.get((queue, key), Share()), after.get((queue, key), Share())
        if then == now:
            continue
        who = _team(new, queue) or _team(old, queue) or f"ClusterQueue {queue}"
        parts = []
        for word in ("nominal", "borrowable", "lendable"):
            was, will = getattr(then, word), getattr(now, word)
            if was != will:
                parts.append((will - was, word, shown(key.resource, was), shown(key.resource, will)))
        lost = [f"{shown(key.resource, -by)} {word} ({was} → {will})" for by, word, was, will in parts if by < 0]
        won = [f"{shown(key.resource, by)} {word} ({was} → {will})" for by, word, was, will in parts if by > 0]
        verbs = [f"{verb} {' and '.join(told)}" for verb, told in (("loses", lost), ("gains", won)) if told]
        words = f"{who} {', '.join(verbs)} {key.resource} on {key.flavor}"
        yield Meaning(Risk.CAPACITY, words, cluster, who, "quota")


def _team(found: World, queue: str) -> str:
    spaces = sorted({ns for (ns, _), local in found.local_queues.items() if local.cluster_queue == queue})
    if not spaces:
        return ""
    more = f" and {len(spaces) - 3} more" if len(spaces) > 3 else ""
    return f"team{'s' if len(spaces) > 1 else ''} {', '.join(spaces[:3])}{more}"


def _jobs(old: _Half, new: _Half, pairs: Sequence[Pair], cluster: str) -> Iterator[Meaning]:
    before, after = old.jobs(), new.jobs()
    chosen = list(_touched(before, after, old.world, new.world, pairs))
    left, queues = len(chosen) - _MOST_JOBS, new.world.local_queues.keys()
    for ref in chosen[:_MOST_JOBS]:
        then, now = before.get(ref), after.get(ref)
        found = new.decide(now) if now else None
        if now and found and found.admissible is None and _place(now) in old.world.local_queues.keys() - queues:
            found = replace(found, admissible=False)  # its queue is not somewhere else: it goes with this very change
        yield from _compared(ref, old.decide(then) if then else None, found, cluster)
        yield from _peak(ref, old, new, cluster)
    if left > 0:
        words = f"{left} more jobs were not decided: only the first {_MOST_JOBS} are"
        yield Meaning(Risk.UNKNOWN, words, cluster, "", "job")


def _touched(
    before: Mapping[Ref, Manifest], after: Mapping[Ref, Manifest], old: World, new: World, pairs: Sequence[Pair]
) -> Iterator[Ref]:
    """The jobs whose decision the pairs can change: they themselves, or those in a tree of queues that changed."""
    written = [m for pair in pairs for m in (pair.old, pair.new) if m is not None]
    refs = {manifest.ref for manifest in written}
    refs |= {_aimed(manifest) for manifest in written if manifest.ref.kind_name in _SCALERS}
    wide = any(ref.kind_name in _EVERYWHERE for ref in refs)
    spaces = {ref.namespace or ref.name for ref in refs if ref.kind_name in _IN_NAMESPACE}
    runtimes = {ref.name for ref in refs if ref.kind_name in _RUNTIMES}
    queues = {ref.name for ref in refs if ref.kind_name == f"ClusterQueue.{GROUP}"}
    cohorts = {ref.name for ref in refs if ref.kind_name == f"Cohort.{GROUP}"}
    roots = {
        _root(each, name)
        for each in (old, new)
        for name, queue in each.queues.items()
        if name in queues or (cohorts and cohorts & set(_way(each, queue.cohort)))
    }
    locals_ = {(ref.namespace or "default", ref.name) for ref in refs if ref.kind_name == f"LocalQueue.{GROUP}"}
    for ref in sorted(dict.fromkeys((*before, *after)), key=str):
        if wide or ref in refs or ref.namespace in spaces:
            yield ref
            continue
        queued = [(found, each) for found, each in ((old, before.get(ref)), (new, after.get(ref))) if each]
        if any(_place(each) in locals_ or _root_of(found, each) in roots for found, each in queued) or any(
            text(mapping(mapping(each.body.get("spec")).get("runtimeRef")).get("name")) in runtimes
            for _, each in queued
        ):
            yield ref


def _root_of(found: World, job: Manifest) -> str:
    local = found.local_queues.get(_place(job))
    return _root(found, local.cluster_queue) if local else ""


def _aimed(scaler: Manifest) -> Ref:
    kind, namespace, name = _target(scaler)
    group = {"Deployment": "apps", "Rollout": "argoproj.io"}.get(kind, "")
    return Ref(group, kind, namespace, name)


def _place(manifest: Manifest) -> tuple[str, str]:
    return manifest.ref.namespace or "default", _queue(manifest)


def _way(found: World, cohort: str) -> list[str]:
    way: list[str] = []
    while cohort and cohort not in way:
        way.append(cohort)
        cohort = found.cohorts[cohort].parent if cohort in found.cohorts else ""
    return way


def _root(found: World, queue: str) -> str:
    spec = found.queues.get(queue)
    way = _way(found, spec.cohort) if spec else []
    return f"cohort {way[-1]}" if way else f"queue {queue}"


def _compared(ref: Ref, then: Decision | None, now: Decision | None, cluster: str) -> Iterator[Meaning]:
    name = f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"
    if then is not None and now is not None and then.admissible and now.admissible:
        yield from (Meaning(Risk.CAPACITY, f"{name}{words}", cluster, name, "job") for words in moves(then, now))
    if now is None or (then is not None and then.admissible == now.admissible):
        return
    reason = now.primary
    because = f": {reason.message}" if reason else ""
    if now.admissible is False:
        verb = "can no longer be admitted" if then is not None else "is new and cannot be admitted"
        yield Meaning(Risk.CAPACITY, f"{name} {verb}{because}", cluster, name, "job")
    elif now.admissible is None and then is not None:
        yield Meaning(
            Risk.UNKNOWN, f"{name}: nobody knows any more whether it can be admitted{because}", cluster, name, "job"
        )
    elif now.admissible and then is not None:
        yield Meaning(Risk.CAPACITY, f"{name} can be admitted from now on", cluster, name, "job")


def _peak(ref: Ref, old: _Half, new: _Half, cluster: str) -> Iterator[Meaning]:
    """How much more an update needs at its peak than its quota has, where that got worse."""
    if ref.kind not in ("Rollout", "Deployment") or (short := _short(new, ref)) is None or not short[0]:
        return
    was = _short(old, ref)
    if was is not None and was[0] >= short[0]:
        return
    missing, needed, resource = short
    words = (
        f"{'the canary' if ref.kind == 'Rollout' else 'an update'} of {ref.namespace}/{ref.name} needs {needed} "
        f"{resource} at its peak, {missing} more than its quota gives"
    )
    yield Meaning(Risk.TRAFFIC, words, cluster, f"{ref.kind} {ref.namespace}/{ref.name}", "canary")


def _short(half: _Half, ref: Ref) -> tuple[int, int, str] | None:
    """Accelerators that are missing at the peak of an update, those needed, and which; None where nothing is known."""
    job = half.jobs().get(ref)
    if job is None:
        return None
    from blueprint.check.rules.update_peaks import peak  # takes all families of rules with it

    job = _scaled(half, job)
    most = peak(job)
    decision = half.decide(job, most[1]) if most is not None else None
    if most is None or decision is None:
        return None
    charge = {name: value for plan in decision.podsets for name, value in plan.charge.items() if "/" in name}
    if not charge or decision.admissible is None:
        return None
    resource, each = max(charge.items(), key=lambda entry: entry[1])
    return (most[1] - decision.admitted) * each, most[1] * each, resource


def _scaled(half: _Half, job: Manifest) -> Manifest:
    """The job with as many replicas as its scaler may ask for."""
    for manifest in half.manifests:
        if manifest.ref.kind_name in _SCALERS and _target(manifest) == (job.ref.kind, job.ref.namespace, job.ref.name):
            spec = mapping(manifest.body.get("spec"))
            most = spec.get("maxReplicaCount", spec.get("maxReplicas"))
            if isinstance(most, int):
                return replace(job, body={**job.body, "spec": {**mapping(job.body.get("spec")), "replicas": most}})
    return job


def _target(scaler: Manifest) -> tuple[str, str, str]:
    """Kind, namespace and name of what a scaler scales; keda.sh and autoscaling name it alike."""
    found = mapping(mapping(scaler.body.get("spec")).get("scaleTargetRef"))
    return text(found.get("kind")) or "Deployment", scaler.ref.namespace, text(found.get("name"))
