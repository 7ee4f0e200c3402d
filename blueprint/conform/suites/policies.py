"""Policies: three engines as live admission, each alone, on the same corpus: equal verdicts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from blueprint.conform import programs
from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.commandlines import COMMAND_LINES, CommandLine
from blueprint.conform.component import Component
from blueprint.conform.components.gatekeeper import GATEKEEPER
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.components.kyverno import KYVERNO
from blueprint.conform.corpus import PERSON, Request, corpus, sampled
from blueprint.conform.install import MANAGER
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, refused
from blueprint.conform.tree import Tree
from blueprint.render.gatekeeper import constraint_kind
from blueprint.render.pools import TEAM_LABEL

Body = dict[str, Any]

_LEAST = 500
_BINDING = "ValidatingAdmissionPolicyBinding"
_NAMED = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_BY_WEBHOOK = re.compile(r'admission webhook "[^"]*(gatekeeper|kyverno)[^"]*" denied')
_SIGNED = "signed-images"
"""The gate on signatures asks a registry, which is not here."""

ALLOWED, DENIED, OTHERWISE = "allowed", "denied by policy", "refused by something else"


def run(stage: Stage) -> None:
    """The API server's own engine first, which the other two must equal."""
    requests = corpus(stage.tree)
    shared = _shared(stage.tree)
    with stage.case("the corpus is large enough") as case:
        if len(requests) < _LEAST:
            raise WrongAnswerError(f"{len(requests)} objects")
        case.said = f"{len(requests)} requests, {len(shared)} policies that all three engines have"
    _without_gate(stage)
    _without_queues(stage)
    with _bound(stage, [name for name in _bindings(stage.tree) if name not in shared]):
        verdicts: list[str] = []
        with stage.case("the API server's engine: every policy refuses something and lets something in") as case:
            answers = _ask(stage.client, requests)
            verdicts = [verdict(answer) for answer in answers]
            named = Counter(name for answer in answers for name in _NAMED.findall(answer.message))
            idle = sorted(shared - named.keys() - _UNASKED)
            if idle or not {ALLOWED, DENIED} <= set(verdicts):
                raise WrongAnswerError(f"policies that refuse nothing: {', '.join(idle)}; {dict(Counter(verdicts))}")
            case.said = f"{dict(Counter(verdicts))}; {dict(sorted(named.items()))}"
        with stage.case("objects as they are rendered are let in") as case:
            held = [
                f"{request.what}: {answer.message[:200]}"
                for request, answer in zip(requests, answers, strict=True)
                if request.what.endswith("as it is") and request.user != PERSON and not answer.ok
            ]
            if held:
                raise WrongAnswerError("; ".join(held[:3]))
        with stage.case("the system's namespaces are none of its business") as case:
            _system(stage)
    for name, ask in COMMAND_LINES.items():
        with stage.case(f"the command line {name} gives the same verdicts") as case:
            case.said = _offline(stage, name, ask, requests, verdicts, shared)
    with _bound(stage, _bindings(stage.tree)):
        _engine(stage, GATEKEEPER, requests, verdicts)
        _engine(stage, KYVERNO, requests, verdicts)


_UNASKED = frozenset(
    {
        *("keep-queue-name", "tenant-namespaces", "tenant-bindings", "no-grants-to-everyone"),
        *("exceptions-in-platform", "no-device-admin-access"),
    }
)
"""Policies about changes, cluster-wide objects and Kyverno's own kinds, which new objects of tenants do not meet, and
the one on admin access, where the API server itself refuses first."""


def verdict(answer: Answer) -> str:
    """What an answer of the server means for the policies."""
    if answer.ok:
        return ALLOWED
    if "ValidatingAdmissionPolicy '" in answer.message or _BY_WEBHOOK.search(answer.message):
        return DENIED
    return OTHERWISE


def _shared(tree: Tree) -> set[str]:
    """Policies that all three engines have."""
    native = {body["metadata"]["name"] for body in tree.of_kind("ValidatingAdmissionPolicy")}
    kyverno = {body["metadata"]["name"] for body in tree.of_kind("ValidatingPolicy")}
    return {name for name in native & kyverno if tree.of_kind(constraint_kind(name))}


def _bindings(tree: Tree) -> list[str]:
    return [body["metadata"]["name"] for body in tree.of_kind(_BINDING)]


def _ask(client: Client, requests: Sequence[Request]) -> list[Answer]:
    """The server's answers; nothing stays."""
    users = {request.user: client.acting_as(request.user) for request in requests}
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda request: users[request.user].create(request.body, dry_run=True), requests))


def _without_gate(stage: Stage) -> None:
    for kind in (constraint_kind(_SIGNED), "ImageValidatingPolicy"):
        for body in stage.tree.of_kind(kind):
            stage.client.delete(Target.of(body))


def _without_queues(stage: Stage) -> None:
    """Kueue's webhooks look for the owner of a pod, and the pods of the corpus have none that is there."""
    for body in stage.local.hooks_of("kueue"):
        stage.client.delete(Target.of(body))


@contextmanager
def _bound(stage: Stage, names: Sequence[str]) -> Iterator[None]:
    """Take away bindings of the API server's engine for a while."""
    bodies = [body for name in names for body in stage.tree.of_kind(_BINDING, name)]
    for body in bodies:
        stage.client.delete(Target.of(body))
    try:
        yield
    finally:
        for body in bodies:
            accepted(stage.client.apply(body, manager=MANAGER), "the binding again")


def _settled(stage: Stage, requests: Sequence[Request], wanted: Sequence[str], engine: str) -> str:
    """The engine's verdicts equal `wanted`. Engines load policies in their own time: what differs is asked again."""
    todo = list(zip(requests, wanted, strict=True))
    deadline = time.monotonic() + _SLOW * stage.patience
    while todo and time.monotonic() < deadline:
        answers = _ask(stage.client, [request for request, _ in todo])
        todo = [
            (request, want) for (request, want), answer in zip(todo, answers, strict=True) if verdict(answer) != want
        ]
    if todo:
        last = _ask(stage.client, [request for request, _ in todo[:3]])
        shown = [
            f"{request.user} {request.what}: {want} by the API server, {engine}: {answer.message[:200] or 'allowed'}"
            for (request, want), answer in zip(todo, last, strict=False)
        ]
        raise WrongAnswerError(f"{len(todo)} of {len(requests)} verdicts differ: {'; '.join(shown)}")
    return f"{len(requests)} verdicts equal"


_SLOW = 2
"""How often the patience of a stage an engine may take to load seventeen policies."""


def _engine(stage: Stage, engine: Component, requests: Sequence[Request], verdicts: Sequence[str]) -> None:
    """Start an engine, whose policies lie there, compare, end it."""
    with stage.case(f"{engine.name} starts with the policies of the tree") as case:
        stage.local.start(engine)
        case.said = f"{len(stage.local.hooks_of(engine.name))} webhook configurations of ours"
    with stage.case(f"{engine.name} alone gives the same verdicts") as case:
        case.said = _settled(stage, requests, verdicts, engine.name)
    with stage.case(f"{engine.name} is not asked about the system's namespaces") as case:
        _system(stage)
        case.said = "a pod that breaks every policy is let in"
    _down(stage, engine.name, requests)


def _down(stage: Stage, name: str, requests: Sequence[Request]) -> None:
    """An engine that is gone: requests of tenants fail, as declared, and the system goes on."""
    spaces = [body["metadata"] for body in stage.tree.of_kind("Namespace")]
    teams = {meta["name"] for meta in spaces if TEAM_LABEL in meta.get("labels", {})}
    good = next(
        request
        for request in requests
        if request.what.endswith("as it is")
        and request.user != PERSON
        and request.body["metadata"]["namespace"] in teams
    )
    with stage.case(f"while {name} is down a tenant gets nothing in", negative=True) as case:
        stage.local.end(name)
        client = stage.client.acting_as(good.user)
        case.said = refused(client.create(good.body, dry_run=True), "a good pod", "failed calling webhook").message[
            :160
        ]
    with stage.case(f"while {name} is down the system's namespaces go on") as case:
        _system(stage)
        case.said = "a pod in kube-system is let in"
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for body in stage.client.every("admissionregistration.k8s.io/v1", kind):
            if body["metadata"]["name"].startswith(name):
                stage.client.delete(Target.of(body))


def _offline(
    stage: Stage, name: str, ask: CommandLine, requests: Sequence[Request], verdicts: Sequence[str], shared: set[str]
) -> str:
    """A command line's verdicts on a part of the corpus equal the server's; it knows nothing of what else refuses."""
    wanted = {id(request): word for request, word in zip(requests, verdicts, strict=True) if word != OTHERWISE}
    part = [request for request in sampled(requests) if id(request) in wanted]
    folder = stage.folder / name
    folder.mkdir()
    refuses = ask(programs.find(name).path, folder, stage.tree, shared, part)
    wrong = [
        f"{request.user} {request.what}: {wanted[id(request)]} by the API server"
        for request, no in zip(part, refuses, strict=True)
        if no is not (wanted[id(request)] == DENIED)
    ]
    if wrong:
        raise WrongAnswerError(f"{len(wrong)} of {len(part)} verdicts differ: {'; '.join(wrong[:3])}")
    return f"{len(part)} verdicts equal, {sum(refuses)} of them refusals"


def _system(stage: Stage) -> None:
    """A pod that breaks every policy, where no policy may look."""
    spec = {"containers": [{"name": "c", "image": "anything:latest"}], "hostNetwork": True}
    meta = {"name": "corpus", "namespace": "kube-system"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    accepted(stage.client.create(body, dry_run=True), "a pod in kube-system")


def _audited(tree: Tree) -> Tree:
    """One policy of the API server's engine only notes what it should refuse."""

    def put(body: Body) -> None:
        body["spec"]["validationActions"] = ["Audit"]

    return tree.changed(_BINDING, put, "images-by-digest")


SUITE = Suite(
    name="policies",
    title="Three policy engines, the same verdicts",
    run=run,
    needs=(KUEUE, TRAINING),
    starts=(GATEKEEPER, KYVERNO),
    programs=tuple(COMMAND_LINES),
    faults=(Fault("a policy set to Audit", _audited, "every policy refuses something"),),
    elsewhere="it takes policy engines and their webhooks away",
)
