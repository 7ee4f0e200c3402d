"""Plays, beside a sync that somebody else does, the controllers that do not run here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import urllib3

from blueprint.conform import health
from blueprint.conform.client import Client, NotAnswered, Target
from blueprint.conform.install import tell
from blueprint.conform.tree import Tree

Body = dict[str, Any]

_EVERY = 0.3


class Player:
    """While it is entered, objects of the tree's kinds get the status that their controller would write, soon after
    they are there. `runs` says whether a component runs, and needs nobody to play it; `played` are kinds that were.
    """

    def __init__(self, client: Client, tree: Tree, runs: Callable[[str], bool]) -> None:
        self._client, self._runs = client, runs
        self._kinds = {(body["apiVersion"], body["kind"]) for body in tree.bodies if health.stand_in(body)}
        self._seen: set[tuple[str, int]] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self.played: set[str] = set()
        self.broken = ""

    def __enter__(self) -> Player:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _play(self) -> None:
        while not self._ended.wait(_EVERY):
            try:
                for api_version, kind in self._kinds:
                    for body in self._client.every(api_version, kind):
                        self._answer(body)
            except (NotAnswered, urllib3.exceptions.HTTPError) as error:
                self.broken = str(error)  # tried again; who waits in vain says what was broken last

    def _answer(self, body: Body) -> None:
        meta = body["metadata"]
        mark = (meta["uid"], meta.get("generation", 1))
        found = health.stand_in(body)
        if mark in self._seen or found is None or self._runs(found.component):
            return
        if body["kind"] == "ConstraintTemplate":
            self._client.create(health.constraint_crd(body))
        if tell(self._client, Target.of(body), found.status).ok:
            self._seen.add(mark)
            self.played.add(f"{body['kind']} ({found.component})")
