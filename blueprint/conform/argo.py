"""Argo CD at work on a repository: what its Applications say, and what a person may ask of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from blueprint.conform.client import NotAnswered, Target
from blueprint.conform.components.argocd import SPACE
from blueprint.conform.repository import BRANCH, HERE, Repository
from blueprint.conform.stage import Stage, WrongAnswerError, accepted

Body = dict[str, Any]

REFRESH = "argocd.argoproj.io/refresh"
_API = "argoproj.io/v1alpha1"
_ASKED = "asked"
_ENDED = ("Succeeded", "Failed", "Error")


def said(application: Body) -> str:
    """What an Application says of itself, short."""
    status = application.get("status") or {}
    operation = status.get("operationState") or {}
    parts = [
        str((status.get("sync") or {}).get("status", "not compared")),
        str((status.get("health") or {}).get("status", "no health")),
        f"operation {operation.get('phase', 'none')}: {operation.get('message', '')}",
        *(f"{row['type']}: {row['message']}" for row in status.get("conditions") or ()),
    ]
    failing = [
        f"{row['kind']}/{row['name']}: {row['message']}"
        for row in (operation.get("syncResult") or {}).get("resources") or ()
        if row.get("status") == "SyncFailed"
    ]
    apart = [f"{r['kind']}/{r['name']}" for r in status.get("resources") or () if r.get("status", "Synced") != "Synced"]
    return "; ".join([*parts, *failing, *([f"apart: {', '.join(apart)}"] if apart else [])])[:900]


def synced(application: Body) -> bool:
    """Whether the cluster is what Git says, and no operation runs."""
    status = application.get("status") or {}
    ended = (status.get("operationState") or {}).get("phase", "Succeeded") in _ENDED
    return bool((status.get("sync") or {}).get("status") == "Synced" and ended and "operation" not in application)


def healthy(application: Body) -> bool:
    """Whether it is Synced and Healthy."""
    return synced(application) and application["status"].get("health", {}).get("status") == "Healthy"


@dataclass(frozen=True, slots=True)
class Argo:
    """The Argo CD of a stage. `seconds` bounds each wait; a wait that fails tells what the Application says."""

    stage: Stage
    repository: Repository
    seconds: float

    def get(self, name: str) -> Body:
        """An Application as it is now."""
        return accepted(self.stage.client.get(_target(name)), f"Application {name}").body

    def until(self, name: str, holds: Any, what: str, seconds: float = 0) -> Body:  # noqa: ANN401
        """Watch an Application until something holds."""
        try:
            found = self.stage.client.until(
                _target(name), lambda b: bool(b) and holds(b), seconds or self.seconds, what
            )
        except NotAnswered:
            answer = self.stage.client.get(_target(name))
            last = self.stage.saw(answer.body) if answer.ok else {}
            raise WrongAnswerError(f"waited for {what}; {name} says: {said(last)}") from None
        return self.stage.saw(found)

    def refresh(self, name: str, *, hard: bool = False) -> Body:
        """Let it compare Git and the cluster again, now; returns it as it is after that."""
        note = {"metadata": {"annotations": {REFRESH: "hard" if hard else "normal"}}}
        accepted(self.stage.client.patch(_target(name), note), f"a refresh of {name}")
        return self.until(name, _compared, f"{name} to be compared again")

    def begin(self, name: str) -> str:
        """Ask for a sync, as its own options say; returns what tells this one from others."""
        token = uuid.uuid4().hex
        policy = self.get(name)["spec"].get("syncPolicy") or {}
        operation = {
            "initiatedBy": {"username": "conform"},
            "info": [{"name": _ASKED, "value": token}],
            "sync": {"revision": BRANCH, "syncOptions": policy.get("syncOptions") or []},
        }
        accepted(self.stage.client.patch(_target(name), {"operation": operation}), f"a sync of {name}")
        return token

    def ended(self, name: str, token: str) -> Body:
        """Wait until a sync that was asked for has ended; returns the Application then."""

        def done(body: Body) -> bool:
            state = body.get("status", {}).get("operationState") or {}
            asked = (state.get("operation") or {}).get("info") or []
            mine = {"name": _ASKED, "value": token} in asked
            return mine and state["phase"] in _ENDED and "operation" not in body

        return self.until(name, done, f"the sync of {name}")

    def sync(self, name: str) -> Body:
        """Sync it by hand; returns it once that has ended."""
        return self.ended(name, self.begin(name))

    def apply(self, name: str, path: str, namespace: str, *, plugin: str = "") -> None:
        """An Application of a folder of the repository that nobody but this suite knows; it is synced by hand."""
        source: Body = {"repoURL": self.repository.url, "targetRevision": BRANCH, "path": path}
        if plugin:
            source["plugin"] = {"name": plugin}
        spec = {
            "project": "default",
            "source": source,
            "destination": {"server": HERE, "namespace": namespace},
            "syncPolicy": {"syncOptions": ["ServerSideApply=true"]},
        }
        meta = {"name": name, "namespace": SPACE}
        accepted(self.stage.client.create({**_TYPE, "metadata": meta, "spec": spec}), f"Application {name}")
        self.until(name, lambda b: "sync" in b.get("status", {}), f"{name} to be compared")

    def terminate(self, name: str) -> None:
        """End a running operation, as `argocd app terminate-op` does."""
        change = {"status": {"operationState": {"phase": "Terminating"}}}
        accepted(self.stage.client.patch(_target(name), change), f"the end of the sync of {name}")
        self.until(name, lambda b: "operation" not in b, f"the sync of {name} to end")


_TYPE = {"apiVersion": _API, "kind": "Application"}


def _target(name: str) -> Target:
    return Target(_API, "Application", SPACE, name)


def _compared(application: Body) -> bool:
    return REFRESH not in (application["metadata"].get("annotations") or {})
