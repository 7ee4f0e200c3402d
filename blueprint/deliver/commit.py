"""Render-and-commit: put a release on top of a branch, whoever else pushes meanwhile."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from blueprint.deliver import message as words
from blueprint.deliver.git import GitFailed
from blueprint.deliver.release import REFERENCES, SIGNED, Release, name_of
from blueprint.deliver.remote import Pushed, Remote
from blueprint.deliver.specs import Age, Specs
from blueprint.errors import EnvironmentLacks
from blueprint.finding import Finding
from blueprint.tree import Plan, plan
from blueprint.tree.lock import NAME, parse
from blueprint.tree.scan import SIGNATURES

ATTEMPTS = 6
"""How often a push is tried while others move the branch."""
_HISTORY = 20
"""Commits in which the last delivery of the same clusters is looked for."""


class Status(StrEnum):
    """What a delivery came to."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    PLANNED = "planned"  # asked only what would happen
    PROPOSED = "proposed"  # on a branch of its own, for a pull request
    SUPERSEDED = "superseded"  # newer specs were delivered already
    REFUSED = "refused"  # findings forbid it


@dataclass(frozen=True, slots=True)
class Order:
    """What to deliver where: a release to folder `path` of `branch`.

    `verb` begins the message and `trailers` end it. With `specs`, a delivery that newer specs made is not overwritten,
    unless `older` says so. `keep` is a whole release that the remote keeps for later stages. `overwrite` goes over
    files that were edited by hand in the branch. `onto` is a branch that gets the commit instead, for a pull request.
    `check_only` pushes nothing.
    """

    release: Release
    branch: str
    path: str
    verb: str = "Deliver"
    trailers: Mapping[str, str] = field(default_factory=dict)
    specs: Specs | None = None
    keep: Release | None = None
    sign: bool | None = None
    older: bool = False
    overwrite: bool = False
    onto: str = ""
    check_only: bool = False

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters whose files are delivered, sorted."""
        return tuple(sorted(self.release.lock.clusters))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an order: `commit` is "" where none was made, `base` is what it stands on ("" a new branch)."""

    order: Order
    status: Status
    base: str = ""
    commit: str = ""
    message: str = ""
    attempts: int = 1
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()
    note: str = ""
    url: str = ""


Pause = Callable[[int], None]


def wait(attempt: int) -> None:
    """Wait before another attempt: up to 0.2 s, 0.4 s, 0.8 s …, by chance, so that two runs do not stay in step."""
    time.sleep(random.uniform(0.05, 0.2 * 2 ** (attempt - 1)))  # noqa: S311 - no secret


def deliver(remote: Remote, order: Order, *, pause: Pause = wait) -> Outcome:
    """Make the branch hold the release, in one commit on top of what is there, or say why not.

    When somebody else pushes meanwhile, the commit is made again on top of theirs, a few times. Raises EnvironmentLacks
    where the remote does not answer or does not take the commit; the branch is then as it was.
    """
    for attempt in range(1, ATTEMPTS + 1):
        outcome = _prepare(remote, order, remote.tip(order.branch, depth=_HISTORY), attempt)
        if order.check_only or outcome.status not in (Status.COMMITTED, Status.UNCHANGED):
            return outcome
        if order.keep is not None:
            # Before the branch: whoever sees a release running must find it, in order to promote it.
            keep(remote, order.keep)
        if outcome.status is Status.UNCHANGED:
            return outcome
        if order.onto:
            return _propose(remote, order, outcome)
        branch = f"refs/heads/{order.branch}"
        try:
            verdict, why = remote.push({branch: outcome.commit})[branch]
        except GitFailed:
            if remote.tip(order.branch) != outcome.commit:
                raise
            return outcome  # it arrived, only the answer was lost
        if verdict is Pushed.DONE:
            return outcome
        if verdict is Pushed.REFUSED:
            raise EnvironmentLacks(
                f"the remote refuses the commit: {why}", where=f"{remote.shown} {order.branch}", hint=_REFUSED
            )
        pause(attempt)
    raise EnvironmentLacks(
        f"others moved the branch {ATTEMPTS} times while this ran; nothing was pushed",
        where=f"{remote.shown} {order.branch}",
        hint="run again",
    )


_REFUSED = "a hook or a rule of that branch says no; --pull-request proposes the commit instead"


def _prepare(remote: Remote, order: Order, tip: str, attempt: int) -> Outcome:
    """The commit on top of `tip`, stored but not pushed."""
    if (specs := order.specs) and tip and not order.older:
        last = _last_delivery(remote, tip, order)
        if specs.compare(last.get("Spec-Commit", ""), last.get("Spec-Time", "")) is Age.NEWER:
            note = f"{last['Spec-Commit'][:12]} is newer than {specs.commit[:12]}, and delivered already"
            return Outcome(order, Status.SUPERSEDED, tip, attempts=attempt, note=note)
    planned = planned_on(remote, order, tip)
    outcome = Outcome(order, Status.REFUSED, tip, attempts=attempt, plan=planned, findings=planned.findings)
    if planned.refused:
        return outcome
    proofs = _new_proofs(remote, order, tip, planned)
    if not planned.changes and not proofs:
        return replace(outcome, status=Status.UNCHANGED)
    made = order.release.made
    head = words.subject(order.verb, order.clusters, planned)
    trailers = {
        **order.trailers,
        **_of_specs(order.specs),
        "Clusters": ", ".join(order.clusters),
        "Release": order.release.name,
        "Blueprint-Version": made.blueprint,
    }
    text = words.message(head, planned, trailers)
    changes: dict[str, bytes | None] = {f"{order.path}/{path}": None for path in planned.removed}
    changes |= {f"{order.path}/{path}": data for path, data in planned.contents.items()}
    changes[f"{order.path}/{NAME}"] = planned.lock
    changes |= proofs
    commit = remote.commit(remote.graft(tip, changes), tip, text, sign=order.sign)
    status = Status.PLANNED if order.check_only else Status.COMMITTED
    return replace(outcome, status=status, commit=commit, message=text, note=_unproven(remote, order, tip, planned))


def _unproven(remote: Remote, order: Order, tip: str, planned: Plan) -> str:
    """Why no signature holds for what the branch then is, "" where one does, or nobody signs here."""
    lock, _ = parse(planned.lock)
    there = bool(tip) and remote.has(tip, f"{order.path}/{SIGNATURES}")
    if order.release.proofs(lock) or not (order.release.signatures or there):
        return ""
    made = {name_of(part.made) for part in lock.clusters.values()}
    if len(made) > 1:
        counts = f"its {len(lock.clusters)} clusters run one release, and not {len(made)}"
        return f"no signature holds on {order.branch} until {counts}"
    if order.release.signatures:
        return f"no signature holds on {order.branch}: it has only a part of what was signed together"
    return f"no signature holds on {order.branch}: this release is not signed, and what lies there is of another tree"


def _of_specs(specs: Specs | None) -> dict[str, str]:
    if specs is None or not specs.commit:
        return {}
    changed = f"{len(specs.changed)} files changed since" if specs.changed else ""
    return {"Spec-Commit": specs.commit, "Spec-Time": specs.time, "Spec-State": changed}


def planned_on(remote: Remote, order: Order, tip: str) -> Plan:
    """What the release changes in the branch, judged as `render` judges a tree: hand edits are found, not lost."""
    folder = remote.unpack(tip, order.path) if tip and remote.has(tip, order.path) else remote.folder / "empty"
    try:
        parts = order.release.lock.clusters
        made = {name: part.made for name, part in parts.items()}
        planned = plan(folder, order.release.files, made, partial=True, overwrite=order.overwrite)
        shown = [
            replace(f, source=f.source and f.source._replace(file=_named(f.source.file, folder, order)))
            for f in planned.findings
        ]
        return replace(planned, findings=tuple(shown))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _new_proofs(remote: Remote, order: Order, tip: str, planned: Plan) -> dict[str, bytes]:
    """Signatures that come along: only when the branch then holds exactly the tree that they are about."""
    lock, _ = parse(planned.lock)
    wanted = {f"{order.path}/{path}": data for path, data in order.release.proofs(lock).items()}
    return {path: data for path, data in wanted.items() if not tip or remote.read(tip, path) != data}


def _named(file: str, folder: object, order: Order) -> str:
    """A file of the branch as a person finds it, not as it lay here for a moment."""
    return f"{order.branch}:{order.path}{file.removeprefix(str(folder))}"


def _last_delivery(remote: Remote, tip: str, order: Order) -> dict[str, str]:
    """The trailers of the newest commit that delivered one of the clusters from specs; nothing where none is near."""
    log = remote.git("log", "-z", "--format=%B", f"--max-count={_HISTORY}", tip).decode("utf-8", "replace")
    for text in log.split("\0"):
        found = words.trailers(text)
        if "Spec-Commit" in found and set(found.get("Clusters", "").split(", ")) & set(order.clusters):
            return found
    return {}


def keep(remote: Remote, release: Release) -> None:
    """Let the remote keep a release by its name. One name is one content, so whoever comes first is right.

    Its signatures lie beside it: of those the last ones count.
    """
    _keep_signatures(remote, release)
    name = f"{REFERENCES}{release.name}"
    if name in remote.references(name):
        return
    verdict, why = remote.push({name: remote.graft("", release.contents())})[name]
    if verdict is not Pushed.DONE and name not in remote.references(name):
        raise EnvironmentLacks(f"the remote does not keep releases: {why}", where=remote.shown)


def _keep_signatures(remote: Remote, release: Release) -> None:
    if not release.signatures:
        return
    name, tree = f"{SIGNED}{release.name}", remote.graft("", release.signatures)
    old = remote.references(name).get(name, "")
    if old != tree:
        verdict, why = remote.push({name: tree}, replace={name: old})[name]
        if verdict is Pushed.REFUSED:
            raise EnvironmentLacks(f"the remote does not keep signatures: {why}", where=remote.shown)


def _propose(remote: Remote, order: Order, outcome: Outcome) -> Outcome:
    """Push to a branch of our own; one that is there from a proposal before, and says the same, stays as it is."""
    name = f"refs/heads/{order.onto}"
    old = remote.fetch(name, depth=2)
    if old and remote.git.text("rev-parse", f"{old}^{{tree}}", f"{old}^") == "\n".join(
        (remote.git.text("rev-parse", f"{outcome.commit}^{{tree}}"), outcome.base)
    ):
        return replace(outcome, status=Status.PROPOSED, commit=old)
    verdict, why = remote.push({name: outcome.commit}, replace={name: old})[name]
    if verdict is not Pushed.DONE:
        raise EnvironmentLacks(f"the remote refuses the branch: {why}", where=f"{remote.shown} {order.onto}")
    return replace(outcome, status=Status.PROPOSED)
