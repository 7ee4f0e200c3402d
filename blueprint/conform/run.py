"""Run suites on one cluster, in order, and say what came of it."""

from __future__ import annotations

import hashlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import urllib3

from blueprint import __version__
from blueprint.conform import evidence, modules, product, programs
from blueprint.conform.client import Client
from blueprint.conform.component import Component
from blueprint.conform.components.core import CORE
from blueprint.conform.isolate import isolate
from blueprint.conform.local import LocalCluster
from blueprint.conform.stage import Case, Fault, Record, Stage, Suite, WrongAnswerError
from blueprint.conform.suites import ALL
from blueprint.conform.tree import Tree
from blueprint.errors import BlueprintError, EnvironmentLacks, UsageError
from blueprint.render.emit import emit

Say = Callable[[str], None]

PATIENCE = 60.0
_FAULT_PATIENCE = 20.0
"""Seconds that one thing may take, and under a fault: it is to fail, and a run of all faults must not take an hour."""


@dataclass(slots=True)
class Outcome:
    """What a run came to. `skipped` names suites that could not run and why; `components` what ran, with digests; `on`
    the kind of cluster, with the version of a `server` that is not ours.
    """

    tree: str
    digest: str
    record: Record = field(default_factory=Record)
    skipped: dict[str, str] = field(default_factory=dict)
    components: dict[str, dict[str, str]] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, bool] = field(default_factory=dict)
    isolated: str = ""
    seconds: float = 0.0
    on: str = "local"
    server: str = ""
    repeats: list[float] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a case failed, or a seeded fault was not noticed."""
        return any(not case.passed for case in self.record.cases) or not all(self.faults.values())

    def rows(self) -> Iterator[tuple[str, int, int, int, float]]:
        """For each suite: its name, cases, negative ones among them, those that passed, seconds."""
        for name in dict.fromkeys(case.suite for case in self.record.cases):
            own = [case for case in self.record.cases if case.suite == name]
            negative, passed = sum(case.negative for case in own), sum(case.passed for case in own)
            yield name, len(own), negative, passed, self.took.get(name, 0.0)

    def summary(self) -> dict[str, Any]:
        """The stable document of `-o json` and of the evidence."""
        return {
            "blueprint": __version__,
            "cluster": self.tree,
            "tree": self.digest,
            "on": self.on,
            "server": self.server,
            "isolated": not self.isolated,
            "repeats": self.repeats,
            "machine": f"{platform.system()} {platform.machine()}",
            "seconds": self.seconds,
            "start": self.marks,
            "components": self.components,
            "suites": [
                dict(zip(("suite", "cases", "negative", "passed", "seconds"), row, strict=True)) for row in self.rows()
            ],
            "skipped": self.skipped,
            "faults": self.faults,
            "requirements": {each.id: each.shows for each in product.requirements(self.record.cases)},
            "cases": [asdict(case) for case in self.record.cases],
        }

    def write(self, folder: Path) -> None:
        """Leave the evidence: raises UsageError where the folder holds other files."""
        files = {evidence.JUNIT: evidence.junit(self.record.cases), "run.log": self._log().encode()}
        kubernetes = self.components.get("kube-apiserver", {}).get("version", "")
        if kubernetes and not self.faults:
            files["PRODUCT.yaml"] = product.draft(self.record.cases, kubernetes, self.tree).encode()
        files |= {f"objects/{name}": text.encode() for name, text in self.record.objects.items()}
        files |= {f"logs/{name}": content for name, content in self.logs.items()}
        evidence.write(folder, self.summary(), files)

    def _log(self) -> str:
        lines = [line(case) for case in self.record.cases]
        lines += [f"skipped {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join([*lines, ""])


def line(case: Case) -> str:
    """One case in one line."""
    mark = "ok  " if case.passed else "FAIL"
    return f"{mark} {case.suite}: {'must not: ' if case.negative else ''}{case.name} [{case.seconds} s] {case.said}"


def chosen(names: Sequence[str]) -> list[Suite]:
    """The suites of these names, in their order; all of them for none. Raises UsageError for an unknown name."""
    known = {suite.name: suite for suite in ALL}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no suite is called {', '.join(unknown)}", hint=f"suites: {', '.join(known)}")
    return [suite for suite in ALL if not names or suite.name in names]


def run(tree: Tree, suites: Sequence[Suite], say: Say) -> Outcome:
    """Run the suites on a cluster of processes; the first one, which lays the platform, always runs before the others.
    Those that want a cluster of their own come after the rest, each on a fresh one.

    A suite whose programs are missing is skipped, and the outcome says so. Raises EnvironmentLacks where not even the
    control plane can run.
    """
    started = time.monotonic()
    outcome = Outcome(tree.name, digest(tree))
    ready = equipped(suites, outcome)
    shared = [suite for suite in ready if not suite.alone]
    if any(not suite.bare for suite in shared) and ALL[0] not in shared:
        shared, ready = [ALL[0], *shared], [ALL[0], *ready]
    if any(not suite.bare for suite in ready):
        _packages()
        outcome.isolated = _apart(ready)
        if outcome.isolated:
            say(f"not isolated: {outcome.isolated}; everything listens on loopback ports that are free now")
    for group in filter(None, (shared, *([suite] for suite in ready if suite.alone))):
        if all(suite.bare for suite in group):
            perform([(suite, tree, PATIENCE) for suite in group], outcome, None, say)
            continue
        with tempfile.TemporaryDirectory(prefix="blueprint-conform-") as folder:
            _on_cluster(tree, group, outcome, Path(folder), say)
    for name in {name for suite in ready for name in suite.programs}:
        note_program(outcome, name)
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def repeat(tree: Tree, suites: Sequence[Suite], times: int, say: Say) -> Outcome:
    """Run the suites so many times, each on fresh clusters; the outcome is the first that failed, or the last one.

    Its `repeats` are the seconds of each run.
    """
    seconds: list[float] = []
    for number in range(1, times + 1):
        outcome = run(tree, suites, _silent)
        seconds.append(outcome.seconds)
        say(f"run {number} of {times}: {'FAILED' if outcome.failed else 'passed'} in {outcome.seconds} s")
        for case in outcome.record.cases:
            if not case.passed:
                say(line(case))
        if outcome.failed or number == times:
            break
    outcome.repeats = seconds
    return outcome


def prove(tree: Tree, suites: Sequence[Suite], say: Say) -> Outcome:
    """Seed each fault of each suite, one after the other on a fresh cluster: every one must turn its suite red."""
    started = time.monotonic()
    outcome = Outcome(tree.name, digest(tree))
    ready = equipped(suites, outcome)
    _packages()
    outcome.isolated = _apart([ALL[0], *ready])
    for suite in ready:
        for fault in suite.faults:
            seeded = fault.seed(tree)
            trial = Outcome(tree.name, outcome.digest)
            sought = partial(_reddens, suite, fault)
            with tempfile.TemporaryDirectory(prefix="blueprint-conform-") as folder:
                if suite.bare:
                    perform([(suite, seeded, _FAULT_PATIENCE)], trial, None, _silent, sought)
                else:
                    first = [] if suite is ALL[0] or suite.alone else [ALL[0]]
                    _on_cluster(seeded, [*first, suite], trial, Path(folder), _silent, hurried=suite, enough=sought)
            red = [case for case in trial.record.cases if not case.passed]
            # Red for another reason, such as a platform that was not laid, is no proof.
            right = [case for case in red if sought(case)]
            outcome.faults[f"{suite.name}: {fault.name}"] = bool(right) and all(c.suite == suite.name for c in red)
            said = [f"red: {case.name}: {case.said[:160]}" for case in right[:1] or red[:1]]
            say(f"fault {suite.name}: {fault.name} → {said[0] if said else 'NOT NOTICED'}")
            outcome.components |= trial.components
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _apart(suites: Sequence[Suite]) -> str:
    """Move into namespaces of our own, where there is no network: what Go may have to fetch is fetched before."""
    for module, _ in modules.sources():
        modules.folder(module, "crds")
    modules.folder("sigs.k8s.io/kwok", "kwok")
    for component in {c.name: c for suite in suites for c in (*suite.needs, *suite.uses, *suite.starts)}.values():
        for source in component.crds:
            modules.folder(source.module, source.pinned)
    return isolate()


def _reddens(suite: Suite, fault: Fault, case: Case) -> bool:
    """Whether a case is the one that a fault must turn red, and is red."""
    return not case.passed and case.suite == suite.name and fault.reddens in case.name


class _EnoughError(Exception):
    """What was sought was seen: the rest of the suite need not run."""


def _silent(_: str) -> None:
    """Says nothing."""


_PACKAGES = ("cryptography", "lupa")


def _packages() -> None:
    """Raise EnvironmentLacks without the Python packages that a cluster of processes needs."""
    if lacking := [name for name in _PACKAGES if find_spec(name) is None]:
        names = " ".join(lacking)
        raise EnvironmentLacks(f"conform needs Python packages that are not installed: pip install {names}")


def equipped(suites: Sequence[Suite], outcome: Outcome) -> list[Suite]:
    """The suites whose programs are here; the outcome says what the others lack."""
    ready = []
    for suite in suites:
        try:
            for component in (*suite.needs, *suite.starts):
                programs.find(component.program)
            for name in suite.programs:
                programs.find(name)
        except EnvironmentLacks as error:
            outcome.skipped[suite.name] = f"{error.message} ({error.hint})"
        else:
            ready.append(suite)
    return ready


def _on_cluster(
    tree: Tree,
    suites: Sequence[Suite],
    outcome: Outcome,
    folder: Path,
    say: Say,
    *,
    hurried: Suite | None = None,
    enough: Callable[[Case], bool] = lambda _: False,
) -> None:
    needed = list({c.name: c for suite in suites for c in suite.needs}.values())
    wanted = [*needed, *(c for c in _optional(suites) if c.name not in {n.name for n in needed})]
    later = list({c.name: c for suite in suites for c in suite.starts}.values())
    policy = next((text for path, text in tree.plain.items() if path.endswith("/audit-policy.yaml")), "")
    flags = []
    if policy:
        (folder / "audit-policy.yaml").write_text(policy, "utf-8")
        flags = [f"--audit-policy-file={folder / 'audit-policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
    served = _kinds(tree)
    crds = [crd for module, folders in modules.sources() for crd in modules.crds(module, "crds", folders, served)]
    cluster = LocalCluster(
        [*tree.bodies],
        wanted,
        folder=folder,
        later=later,
        flags=flags,
        crds=crds,
        isolated=not outcome.isolated,
    )
    with cluster:
        outcome.marks = outcome.marks or dict(cluster.figures.marks)
        took = cluster.figures.marks.get("controllers", 0)
        say(f"cluster of {len(list(cluster.pid_files))} processes after {took} s")
        _note(outcome, (*CORE, *wanted, *later))
        work = [(suite, tree, _FAULT_PATIENCE if suite is hurried else PATIENCE) for suite in suites]
        perform(work, outcome, cluster, say, enough)
    own = f"{suites[0].name}-" if suites[0].alone else ""
    outcome.logs |= {f"{own}{file.name}": _end(file) for file in sorted(folder.glob("*.log"))}


def perform(
    work: Sequence[tuple[Suite, Tree, float]],
    outcome: Outcome,
    cluster: LocalCluster | None,
    say: Say,
    enough: Callable[[Case], bool] = lambda _: False,
    *,
    visitor: Client | None = None,
) -> None:
    """Run suites, each on its tree with its patience; a case that is `enough` ends its suite."""

    def heard(case: Case) -> None:
        if not case.passed:
            say(line(case))
        if enough(case):
            raise _EnoughError

    outcome.record.heard = heard
    for suite, tree, patience in work:
        before = len(outcome.record.cases)
        with tempfile.TemporaryDirectory(prefix=f"blueprint-{suite.name}-") as folder:
            stage = Stage(suite.name, tree, cluster, outcome.record, Path(folder), patience, visitor)
            started = time.monotonic()
            try:
                suite.run(stage)
            except _EnoughError:
                pass
            except (WrongAnswerError, BlueprintError, LookupError, urllib3.exceptions.HTTPError) as error:
                case = Case(suite.name, "the suite runs to its end", passed=False, said=str(error))
                outcome.record.add(case)
            outcome.took[suite.name] = round(time.monotonic() - started, 1)
        own = outcome.record.cases[before:]
        say(f"{suite.name}: {sum(case.passed for case in own)} of {len(own)} cases")


def _kinds(tree: Tree) -> set[tuple[str, str]]:
    return {(m.ref.group, m.kind) for m in tree.manifests}


def _optional(suites: Sequence[Suite]) -> list[Component]:
    """Components that a suite uses where they are built, and plays where they are not."""
    found = []
    for component in {c.name: c for suite in suites for c in suite.uses}.values():
        try:
            programs.find(component.program)
        except EnvironmentLacks:
            continue
        found.append(component)
    return found


def _note(outcome: Outcome, components: Sequence[Component]) -> None:
    names = ["etcd", "kube-apiserver", *dict.fromkeys(component.program for component in components)]
    for name in names:
        note_program(outcome, name)


def note_program(outcome: Outcome, name: str) -> None:
    """Let the outcome tell the version and digest of a program that ran."""
    found = programs.find(name)
    outcome.components[name] = {"version": found.version, "sha256": evidence.digest(found.path.resolve())}


def digest(tree: Tree) -> str:
    """One digest of all objects, in their order."""
    text = "---\n".join(emit(body) for body in tree.bodies)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


_LOG = 400_000


def _end(file: Path) -> bytes:
    """The end of a log: enough to see what happened, not enough to fill a disk."""
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - _LOG))
        return log.read()
