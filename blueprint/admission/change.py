"""The smallest change that would admit a job: one number or one line, found by trying and proved by deciding again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from blueprint.admission.amounts import FlavorResource, shown
from blueprint.admission.decide import Decision, decide_job
from blueprint.admission.limits import levers
from blueprint.admission.match import LabelSelector, Toleration, untolerated
from blueprint.admission.podsets import QUEUE_LABEL, Job, PodSet, job
from blueprint.admission.queues import GROUP
from blueprint.admission.quota import Quota
from blueprint.admission.reasons import Limit, Reason, refusals
from blueprint.admission.world import World
from blueprint.finding import Ref
from blueprint.objects import Manifest

_T = TypeVar("_T")
_FIELDS = {"nominalQuota": "nominal", "borrowingLimit": "borrowing", "lendingLimit": "lending"}
#: How many settings of one kind (queues to name, flavors to tolerate) are tried.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Change:
    """What to change: `field` of `object` from `before` to `after`, in words people write; `object` may be the job."""

    object: Ref
    field: str
    before: str
    after: str

    @property
    def words(self) -> str:
        """The change in one line."""
        was = f" {self.before} →" if self.before else ""
        return f"{self.object}: {self.field}{was} {self.after}"


Option = tuple[int, int, Change]
"""Sorts changes: 0 repairs, 1 limits, 2 quotas, 3 the job itself; then by how much."""


def smallest_change(world: World, manifest: Manifest, decision: Decision) -> Change | None:
    """The smallest single change after which the job can be admitted, None where no single one does."""
    asked = job(manifest, world.find, world.manifests)
    if decision.admissible is not False or not isinstance(asked, Job):
        return None
    trial = _Trial(world, manifest, asked, decision)
    options = [*trial.repairs(), *trial.numbers()] or list(trial.job_changes())
    return min(options, key=lambda option: option[:2])[2] if options else None


@dataclass(frozen=True, slots=True)
class _Trial:
    world: World
    manifest: Manifest
    asked: Job
    decision: Decision

    def admits(self, world: World, asked: Job | None = None) -> bool:
        """Whether the job is admitted after a change (or would be, but for what is not known)."""
        found = decide_job(world, self.manifest, self.asked if asked is None else asked)
        return found.admissible is not False

    @property
    def _refused(self) -> tuple[Reason, ...]:
        return refusals(self.decision.reasons)

    def _has(self, *codes: str) -> bool:
        return any(reason.code in codes for reason in self._refused)

    def repairs(self) -> Iterator[Option]:
        """Lines that are plainly wrong or missing."""
        for world, asked, change in (*self._queue_repairs(), *self._flavor_repairs(), *self._settings_repairs()):
            if self.admits(world, asked):
                yield 0, 0, change

    def _queue_repairs(self) -> Iterator[tuple[World, Job | None, Change]]:
        world, way = self.world, self.decision.way
        namespace = self.manifest.ref.namespace or "default"
        if self._has("KQ101", "KQ104"):
            names = sorted(name for where, name in world.local_queues if where == namespace)
            for name in names[:_TRIES]:
                asked = replace(self.asked, labels={**self.asked.labels, QUEUE_LABEL: name})
                before = self.asked.labels.get(QUEUE_LABEL, "")
                yield world, asked, Change(self.manifest.ref, f"metadata.labels[{QUEUE_LABEL}]", before, name)
        if way.local_queue and self._has("KQ107"):
            key = (namespace, way.local_queue.name)
            local = world.local_queues.get(key)
            if local is not None and local.stopped:
                queues = {**world.local_queues, key: replace(local, stopped="")}
                change = Change(way.local_queue, "spec.stopPolicy", local.stopped, "None")
                yield replace(world, local_queues=queues), None, change
        spec = world.queues.get(way.cluster_queue.name) if way.cluster_queue else None
        if spec is None or way.cluster_queue is None:
            return
        if spec.stopped:
            fixed = _put(world.queues, spec.name, replace(spec, stopped=""))
            yield replace(world, queues=fixed), None, Change(spec.ref, "spec.stopPolicy", spec.stopped, "None")
        if self._has("KQ103") and spec.selector is None:
            fixed = _put(world.queues, spec.name, replace(spec, selector=LabelSelector(())))
            yield replace(world, queues=fixed), None, Change(spec.ref, "spec.namespaceSelector", "null", "{}")
        elif self._has("KQ103") and spec.selector is not None and len(spec.selector.requirements) == 1:
            wanted = spec.selector.requirements[0]
            if wanted.operator == "In" and wanted.values:
                mine = world.namespaces.get(namespace, {})
                spaces = {**world.namespaces, namespace: {**mine, wanted.key: wanted.values[0]}}
                field = f"metadata.labels[{wanted.key}]"
                change = Change(Ref("", "Namespace", "", namespace), field, mine.get(wanted.key, ""), wanted.values[0])
                yield replace(world, namespaces=spaces), None, change

    def _flavor_repairs(self) -> Iterator[tuple[World, Job | None, Change]]:
        for reason in [r for r in self._refused if r.code == "KQ203"][:_TRIES]:
            flavor = self.world.flavors[reason.flavor]
            taint = untolerated(flavor.taints, flavor.tolerations)
            if taint is None:
                continue
            toleration = Toleration(taint.key, "Exists", "", taint.effect)
            fixed = replace(flavor, tolerations=(*flavor.tolerations, toleration))
            ref = Ref(GROUP, "ResourceFlavor", "", flavor.name)
            change = Change(ref, "spec.tolerations", "", f"+ {{key: {taint.key}, operator: Exists}}")
            yield replace(self.world, flavors=_put(self.world.flavors, flavor.name, fixed)), None, change

    def _settings_repairs(self) -> Iterator[tuple[World, Job | None, Change]]:
        settings = self.world.settings
        where = settings.object or Ref("config.kueue.x-k8s.io", "Configuration", "", "")
        for reason in self._refused:
            if reason.code == "KQ206":
                fixed = replace(settings, excluded=(*settings.excluded, reason.resource))
                change = Change(where, "resources.excludeResourcePrefixes", "", f"+ {reason.resource}")
                yield replace(self.world, settings=fixed), None, change
            if reason.code == "KQ105" and "framework " in reason.message:
                name = reason.message.split()[1]
                fixed = replace(settings, frameworks=settings.frameworks | {name})
                yield (
                    replace(self.world, settings=fixed),
                    None,
                    Change(where, "integrations.frameworks", "", f"+ {name}"),
                )

    def numbers(self) -> Iterator[Option]:
        """Limits and quotas that are too small, each raised as little as will do."""
        queue = self.decision.way.queue
        if queue is None:
            return
        short: dict[FlavorResource, int] = {}
        for reason in self._refused:
            if reason.code == "KQ202":
                key = FlavorResource(reason.flavor, reason.resource)
                short[key] = max(reason.missing, short.get(key, 0))
        for key, missing in short.items():
            for limit in levers(queue, key):
                now = limit.value or 0
                needed = self._least(partial(self._admits_with, limit), now, missing)
                if needed is not None:
                    rank = 2 if limit.field == "nominalQuota" else 1
                    field = f"{limit.field} of {key.resource} on flavor {key.flavor}"
                    change = Change(limit.object, field, shown(key.resource, now), shown(key.resource, needed))
                    yield rank, needed - now, change

    def _admits_with(self, limit: Limit, value: int) -> bool:
        return self.admits(raised(self.world, limit, value))

    @staticmethod
    def _least(admits: Callable[[int], bool], now: int, missing: int) -> int | None:
        """The least value above `now` that admits; usually what is missing is just enough, and one less is not."""
        high = now + missing
        if admits(high):
            if missing == 1 or not admits(high - 1):
                return high
        else:
            high = now + 2 * missing
            if not admits(high):
                return None
        low = now
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if admits(middle) else (middle, high)
        return high

    def job_changes(self) -> Iterator[Option]:
        """Softer wishes for the topology, then fewer pods."""
        for index, podset in enumerate(self.asked.podsets):
            for softer, field, before, after in _softer(podset):
                if self.admits(self.world, self._with(index, softer)):
                    yield 3, 0, Change(self.manifest.ref, f"{field} of {podset.name}", before, after)
        if self.asked.copies > 1 and self.decision.admitted:
            asked = replace(self.asked, copies=self.decision.admitted)
            if self.admits(self.world, asked):
                after = str(self.decision.admitted)
                yield 3, 1, Change(self.manifest.ref, "spec.replicas", str(self.asked.copies), after)
        for index, podset in enumerate(self.asked.podsets):
            most = self._most(index, podset)
            if most:
                yield 3, 1, Change(self.manifest.ref, f"pods of {podset.name}", str(podset.count), str(most))

    def _with(self, index: int, podset: PodSet) -> Job:
        sets = list(self.asked.podsets)
        sets[index] = podset
        return replace(self.asked, podsets=tuple(sets))

    def _most(self, index: int, podset: PodSet) -> int:
        """The most pods of a pod set with which the job is admitted, 0 where fewer do not help."""
        low, high = 0, podset.count
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.admits(self.world, self._with(index, replace(podset, count=middle)))
            low, high = (middle, high) if fits else (low, middle)
        return low


def _softer(podset: PodSet) -> Iterator[tuple[PodSet, str, str, str]]:
    """The pod set with a weaker wish for the topology: (pod set, field, before, after)."""
    wish = podset.wish
    if wish.required is not None:
        soft = replace(wish, required=None, preferred=wish.required)
        yield replace(podset, wish=soft), "topology", f"required {wish.required}", f"preferred {wish.required}"
    if wish.slice_level is not None:
        soft = replace(wish, slice_level=None, slice_size=None)
        yield replace(podset, wish=soft), "slices", f"{wish.slice_size} in one {wish.slice_level}", "none"


def raised(world: World, limit: Limit, value: int) -> World:
    """The world with another number in one row of a ClusterQueue or Cohort."""
    key = FlavorResource(limit.flavor, limit.resource)

    def changed(quota: Quota) -> Quota:
        match _FIELDS[limit.field]:
            case "nominal":
                return replace(quota, nominal=value)
            case "borrowing":
                return replace(quota, borrowing=value)
        return replace(quota, lending=value)

    name = limit.object.name
    if limit.object.kind == "ClusterQueue":
        queue = world.queues[name]
        rows = {**queue.quotas, key: changed(queue.quotas.get(key, Quota(0)))}
        return replace(world, queues=_put(world.queues, name, replace(queue, quotas=rows)))
    cohort = world.cohorts[name]
    rows = {**cohort.quotas, key: changed(cohort.quotas.get(key, Quota(0)))}
    return replace(world, cohorts=_put(world.cohorts, name, replace(cohort, quotas=rows)))


def _put(found: Mapping[str, _T], name: str, value: _T) -> dict[str, _T]:
    return {**found, name: value}
