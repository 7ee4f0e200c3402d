"""What a suite works on, and what it leaves behind: cases, and the objects that were seen."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.component import Component
from blueprint.conform.local import LocalCluster
from blueprint.conform.tree import Tree
from blueprint.errors import EnvironmentLacks
from blueprint.render.emit import emit

Body = dict[str, Any]
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class WrongAnswerError(Exception):
    """What was seen is not what must be; the message says both."""


@dataclass(slots=True)
class Case:
    """One thing that was tried; `negative`: something must not work. `said` is what was seen, or what went wrong."""

    suite: str
    name: str
    negative: bool = False
    passed: bool = True
    said: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Record:
    """The cases of a run, and the objects seen in it: file name below the suite's folder → YAML.

    `heard` is told of each case as it ends.
    """

    cases: list[Case] = field(default_factory=list)
    objects: dict[str, str] = field(default_factory=dict)
    heard: Callable[[Case], None] = field(default=lambda _: None)

    def add(self, case: Case) -> None:
        """Note a case that has ended."""
        self.cases.append(case)
        self.heard(case)


@dataclass(frozen=True, slots=True)
class Stage:
    """One suite at work: the cluster, the tree, and where what it does is noted.

    `patience` are the seconds that one thing may take that must come; `folder` is for files of the suite's own. On a
    cluster that is not ours there is only a client, the `visitor`.
    """

    suite: str
    tree: Tree
    cluster: LocalCluster | None
    record: Record
    folder: Path
    patience: float = 60.0
    visitor: Client | None = None

    @property
    def local(self) -> LocalCluster:
        """The cluster of processes; raises EnvironmentLacks for a suite that runs without one."""
        if self.cluster is None:
            raise EnvironmentLacks(f"suite {self.suite} needs a cluster")
        return self.cluster

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.visitor or self.local.client

    @contextmanager
    def case(self, name: str, *, negative: bool = False) -> Iterator[Case]:
        """One case: it fails when something inside raises that nothing was seen in time, or the wrong thing."""
        case = Case(self.suite, name, negative)
        started = time.monotonic()
        try:
            yield case
        except (WrongAnswerError, EnvironmentLacks, LookupError) as error:
            case.passed, case.said = False, str(error).strip() or repr(error)
        case.seconds = round(time.monotonic() - started, 2)
        self.record.add(case)

    def saw(self, body: Body) -> Body:
        """Keep an object as it was seen, for the evidence; returns it."""
        kept = {key: value for key, value in body.items() if key != "metadata"}
        kept["metadata"] = {k: v for k, v in body.get("metadata", {}).items() if k != "managedFields"}
        meta = kept["metadata"]
        name = f"{body.get('kind', 'object')}-{meta.get('namespace', '')}-{meta.get('name', '')}".lower()
        self.record.objects[f"{self.suite}/{_UNSAFE.sub('-', name)}.yaml"] = emit(kept)
        return body

    def until(self, body: Body, holds: Callable[[Body], bool], seconds: float, what: str) -> Body:
        """Watch the object that `body` names until something holds, and keep it as seen."""
        return self.saw(self.client.until(Target.of(body), holds, seconds, what))


def accepted(answer: Answer, what: str) -> Answer:
    """The answer, where the request was taken; raises WrongAnswerError otherwise."""
    if not answer.ok:
        raise WrongAnswerError(f"{what} is refused: {answer.status} {answer.message[:500]}")
    return answer


def refused(answer: Answer, what: str, words: str = "") -> Answer:
    """The answer, where the request was refused with these words in the message; raises WrongAnswerError otherwise."""
    if answer.ok:
        raise WrongAnswerError(f"{what} is accepted")
    if words not in answer.message:
        raise WrongAnswerError(f"{what} is refused, but not with {words!r}: {answer.message[:500]}")
    return answer


def condition(body: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition of an object by its type, {} where it has none."""
    rows: Sequence[Mapping[str, Any]] = (body.get("status") or {}).get("conditions") or ()
    return next((row for row in rows if row.get("type") == kind), {})


def holds(body: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    """Whether an object has a condition with this status."""
    return condition(body, kind).get("status") == status


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake to seed into the tree, which must turn the suite red: in a case whose name holds `reddens`."""

    name: str
    seed: Callable[[Tree], Tree]
    reddens: str


@dataclass(frozen=True, slots=True)
class Suite:
    """A group of cases.

    `needs` are components beside the core ones, `uses` those that are played where they are not built, `starts` those
    that it starts and ends by itself, `programs` command lines that it calls. A `bare` one needs no cluster at all, one
    that is `alone` gets a fresh cluster of its own, on which nothing was laid. `elsewhere` is what of it can be shown
    on a cluster that is not ours, or why nothing of it can.
    """

    name: str
    title: str
    run: Callable[[Stage], None]
    faults: tuple[Fault, ...]
    needs: tuple[Component, ...] = ()
    uses: tuple[Component, ...] = ()
    starts: tuple[Component, ...] = ()
    programs: tuple[str, ...] = ()
    bare: bool = False
    alone: bool = False
    elsewhere: Callable[[Stage], None] | str = ""
