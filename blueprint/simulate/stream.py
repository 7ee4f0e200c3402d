"""Rows of arrivals as workloads in queues: the jobs that they name, with what the rows change."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from blueprint.admission.amounts import Amounts, summed
from blueprint.admission.body import labels
from blueprint.admission.decide import Decision, decide_job
from blueprint.admission.demand import Workload
from blueprint.admission.engine import queued
from blueprint.admission.podsets import PRIORITY_LABEL, QUEUE_LABEL, Job, job
from blueprint.admission.queues import GROUP
from blueprint.admission.reasons import refusals
from blueprint.admission.state import Queue, State
from blueprint.finding import Confidence, Finding, Ref, Severity, Source
from blueprint.objects import Manifest
from blueprint.simulate.arrivals import Arrival

LIMIT_LABEL = f"{GROUP}/max-exec-time-seconds"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a row makes of a job: the workload in its queue, how often, and the first reason that keeps it out for ever.

    `limit` is the longest run that Kueue allows, in seconds, None without a limit.
    """

    ref: Ref
    workload: Workload
    queue: Queue
    copies: int
    limit: float | None
    never: str
    asked: Amounts


@dataclass(frozen=True, slots=True)
class Stream:
    """Workloads of one row: the first at `start`, another one every `step` seconds.

    `duration` is that of one run, None for one that never ends; `checkpoint` the seconds between two points that a
    preempted run can go on from, None where it begins again.
    """

    shape: Shape
    count: int
    start: float
    step: float
    duration: float | None
    checkpoint: float | None
    source: Source

    @property
    def name(self) -> str:
        """The job, as people say it."""
        return f"{self.shape.ref.kind}/{self.shape.ref.name}"


class Reader:
    """Reads rows; what they have in common is read and decided once."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.findings: list[Finding] = []
        self._by_name: dict[tuple[str, str], list[Manifest]] = {}
        self._shapes: dict[str, Shape | None] = {}
        for manifest in state.world.manifests:
            self._by_name.setdefault((manifest.kind.lower(), manifest.ref.name), []).append(manifest)

    def streams(self, rows: Sequence[tuple[Arrival, Source]]) -> list[Stream]:
        """All rows that come to stand in a queue; the rest are findings."""
        times = [row.at for row, _ in rows]
        first = min((at for at in times if isinstance(at, datetime)), default=None)
        streams = []
        for row, source in rows:
            start = row.at - first if isinstance(row.at, datetime) and first is not None else row.at
            shape = self._shape(row, source)
            if shape is None or not isinstance(start, timedelta):
                continue
            duration = _seconds(row.duration)
            if shape.limit is not None:
                duration = shape.limit if duration is None else min(duration, shape.limit)
            step = _seconds(row.every) or 0.0
            streams.append(
                Stream(
                    shape, row.count, start.total_seconds(), step, duration, _seconds(row.checkpoint) or None, source
                )
            )
        return streams

    def _shape(self, row: Arrival, source: Source) -> Shape | None:
        given = row.model_dump(include={"job", "object", "pods", "requests", "namespace", "queue", "priority"})
        key = hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
        if key not in self._shapes:
            self._shapes[key] = self._read(row, source, key)
        return self._shapes[key]

    def _read(self, row: Arrival, source: Source, key: str) -> Shape | None:
        manifest = self._manifest(row, source)
        asked = job(manifest, self.state.world.find, self.state.world.manifests) if manifest else None
        if manifest is None:
            return None
        if not isinstance(asked, Job):
            why = (
                f"{asked} is not among the objects"
                if asked
                else f"Kueue does not queue objects of kind {manifest.kind}"
            )
            self._say("SIM202", f"{manifest.kind}/{manifest.ref.name} never comes to stand in a queue: {why}", source)
            return None
        asked = _changed(asked, row)
        found = queued(self.state, manifest, asked)
        decision = decide_job(self.state.world, manifest, asked)
        if found is None:
            why = decision.primary.message if decision.primary else decision.words
            self._say("SIM202", f"{manifest.kind}/{manifest.ref.name} never comes to stand in a queue: {why}", source)
            return None
        workload, queue = found
        never = _never(decision)
        if never:
            message = f"{manifest.kind}/{manifest.ref.name} is never admitted on this inventory: {never}"
            self._say("SIM203", message, source, Severity.WARNING)
        limit = _limit(manifest)
        total = summed(demand.total(demand.podset.count) for demand in workload.demands)
        # Rows that ask for the same in the same way are alike, whatever their job is called.
        alike = hashlib.sha256(f"{workload.namespace} {workload.demands!r}".encode()).hexdigest()[:16]
        return Shape(manifest.ref, replace(workload, alike=alike), queue, asked.copies, limit, never, total)

    def _manifest(self, row: Arrival, source: Source) -> Manifest | None:
        if row.object is not None:
            return _manifest(row.object, row, source)
        if row.pods is not None:
            return _manifest(_small(row), row, source)
        kind, slash, name = (row.job or "").partition("/")
        if not slash or not kind or not name:
            self._say("SIM201", f"{row.job} is no job: write KIND/NAME, such as PyTorchJob/llama3-8b-sft", source)
            return None
        found = [
            manifest
            for manifest in self._by_name.get((kind.lower(), name), ())
            if not row.namespace or (manifest.ref.namespace or "default") == row.namespace
        ]
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(manifest.source) for manifest in found[:3])
            self._say("SIM201", f"{row.job} is there {len(found)} times: {places}", source, fix="name the namespace")
            return None
        names = [other for other_kind, other in self._by_name if other_kind == kind.lower()]
        close = difflib.get_close_matches(name, names, 1)
        where = f" in namespace {row.namespace}" if row.namespace else ""
        fix = f"did you mean {close[0]}?" if close else ""
        self._say("SIM201", f"there is no {row.job}{where} among the objects", source, fix=fix)
        return None

    def _say(self, code: str, message: str, source: Source, severity: Severity = Severity.ERROR, fix: str = "") -> None:
        confidence = Confidence.CERTAIN if severity is Severity.ERROR else Confidence.LIKELY
        self.findings.append(Finding(code, message, source, severity, confidence, fix=fix))


def _changed(asked: Job, row: Arrival) -> Job:
    """The job in the queue and with the priority that a row gives it."""
    mine = dict(asked.labels)
    if row.queue:
        mine[QUEUE_LABEL] = row.queue
    if isinstance(row.priority, str):
        mine[PRIORITY_LABEL] = row.priority
        return replace(asked, labels=mine, priority=None)
    return replace(asked, labels=mine, priority=asked.priority if row.priority is None else row.priority)


def _manifest(body: dict[str, Any], row: Arrival, source: Source) -> Manifest:
    written = body.get("metadata")
    meta = written if isinstance(written, dict) else {}
    where = {"namespace": row.namespace} if row.namespace and not meta.get("namespace") else {}
    return Manifest({**body, "metadata": {**meta, **where}}, source)


def _small(row: Arrival) -> dict[str, Any]:
    """The Workload of a row that only says what its pods ask for."""
    container = {"name": "main", "resources": {"requests": row.requests or {}}}
    pods = {"name": "main", "count": row.pods, "template": {"spec": {"containers": [container]}}}
    spec = {"queueName": row.queue, "podSets": [pods]}
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": "Workload", "metadata": {"name": row.queue}, "spec": spec}


def _never(decision: Decision) -> str:
    if decision.admissible is not False or decision.admitted:
        return ""
    kept = refusals(decision.reasons)
    return kept[0].message if kept else decision.words


def _limit(manifest: Manifest) -> float | None:
    written = labels(manifest.body, "metadata", "labels").get(LIMIT_LABEL, "")
    return float(written) if written.isdigit() else None


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
