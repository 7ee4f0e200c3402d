"""Run on a cluster that is not a set of our own processes: the one of a person's kubeconfig, or one that kind makes."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import urllib3

from blueprint.conform import modules, programs
from blueprint.conform.borrowed import Borrowed, described, new_prefix, prefixed
from blueprint.conform.client import Client
from blueprint.conform.crds import load
from blueprint.conform.kubeconfig import Context, current
from blueprint.conform.run import PATIENCE, Outcome, Say, digest, equipped, note_program, perform
from blueprint.conform.stage import Suite
from blueprint.conform.tree import Tree
from blueprint.errors import EnvironmentLacks

Agree = Callable[[str], None]
"""Is told what would be written, and where; raises where the person does not agree."""

IMAGE = "kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0"
"""A node of Kubernetes 1.35 as kind v0.33.0 lists it (github.com/kubernetes-sigs/kind releases, tag v0.33.0)."""

_ENGINES = ("docker", "podman", "nerdctl")
_CREATE = 600


def visit(tree: Tree, suites: Sequence[Suite], say: Say, agree: Agree, context: Context, *, on: str) -> Outcome:
    """Run what can be shown there: in namespaces and with rights of our own, removed whatever happens.

    Raises UsageError where the context cannot be used, EnvironmentLacks where the cluster does not answer or refuses
    our namespaces, and whatever `agree` raises before anything is written.
    """
    started = time.monotonic()
    outcome = Outcome(tree.name, digest(tree), on=on)
    able = []
    for suite in suites:
        if isinstance(suite.elsewhere, str):
            outcome.skipped[suite.name] = f"not on a cluster that is not ours: {suite.elsewhere}"
        else:
            able.append(replace(suite, run=suite.elsewhere, needs=(), uses=(), starts=()))
    able = equipped(able, outcome)
    with tempfile.TemporaryDirectory(prefix="blueprint-visit-") as folder:
        client = context.client(Path(folder))
        try:
            if any(not suite.bare for suite in able):
                _within(tree, able, outcome, client, context, say, agree)
            else:
                perform([(suite, tree, PATIENCE) for suite in able], outcome, None, say)
        except urllib3.exceptions.HTTPError as error:
            raise EnvironmentLacks(f"{context.server} does not answer: {error}") from None
        finally:
            client.close()
    for name in {name for suite in able for name in suite.programs}:
        note_program(outcome, name)
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _within(
    tree: Tree, suites: Sequence[Suite], outcome: Outcome, client: Client, context: Context, say: Say, agree: Agree
) -> None:
    answer = client.request("GET", "/version")
    if not answer.ok:
        raise EnvironmentLacks(f"{context.server} does not let us in: {answer.status} {answer.message}")
    outcome.server = str(answer.body.get("gitVersion", ""))
    prefix = new_prefix()
    place = Borrowed(client, prefixed(tree, prefix), prefix)
    late = place.earlier()
    more = f", and removes {len(late)} objects that earlier runs left" if late else ""
    agree(
        f"On {context.name} ({context.server}, Kubernetes {outcome.server}) this writes "
        f"{', '.join(described(place.plan))}, all called {prefix}… or in namespaces called so, and removes them "
        f"again{more}. Everything else is asked as a dry run."
    )
    try:
        with place:
            perform([(suite, place.tree, PATIENCE) for suite in suites], outcome, None, say, visitor=client)
    finally:
        for name in place.leftovers:
            say(f"still there: {name}; remove it by hand")


@contextmanager
def kind() -> Iterator[Context]:
    """A cluster of containers, with all kinds of the schema pack served, for as long as it is entered.

    Raises EnvironmentLacks without a container engine that runs, without kind, or where it makes no cluster.
    """
    _engine()
    program = programs.find("kind").path
    name = f"blueprint-{secrets.token_hex(3)}"
    with tempfile.TemporaryDirectory(prefix="blueprint-kind-") as folder:
        file = Path(folder) / "kubeconfig"
        common = [str(program), "--quiet"]
        try:
            _call(
                [
                    *common,
                    "create",
                    "cluster",
                    f"--name={name}",
                    f"--image={IMAGE}",
                    f"--kubeconfig={file}",
                    "--wait=180s",
                ]
            )
            context = current({"KUBECONFIG": str(file)})
            client = context.client(Path(folder))
            crds = [crd for module, folders in modules.sources() for crd in modules.crds(module, "crds", folders)]
            load(client, crds, 180)
            client.close()
            yield context
        finally:
            _call([*common, "delete", "cluster", f"--name={name}", f"--kubeconfig={file}"])


def _engine() -> None:
    said = []
    for name in _ENGINES:
        if shutil.which(name) is None:
            continue
        try:
            done = subprocess.run([name, "info"], capture_output=True, text=True, check=False, timeout=20)
        except (OSError, subprocess.TimeoutExpired) as error:
            said.append(f"{name}: {error}")
            continue
        if done.returncode == 0:
            return
        said.append(f"{name}: {(done.stderr.strip().splitlines() or ['no answer'])[-1][:200]}")
    found = "; ".join(said) or f"none of {', '.join(_ENGINES)} is in PATH"
    raise EnvironmentLacks(f"--on kind needs a container engine that runs ({found}); --on local needs none")


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False, timeout=_CREATE)
    except subprocess.TimeoutExpired:
        raise EnvironmentLacks(f"kind {command[2]} took more than {_CREATE} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise EnvironmentLacks(f"kind {command[2]} failed: {last}")
