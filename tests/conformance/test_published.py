"""Material that projects publish: whatever `check` calls certain there is replayed, or was looked at, one by one.

The lists in published/ say which that is. The files are read from the Go module cache when the test runs, whole modules
with their examples, charts and tests; a module that is not there is left out.
"""

from __future__ import annotations

from collections import Counter

import pytest

from blueprint.check import programs
from blueprint.conform.controlplane import ControlPlane
from tests.conformance.conftest import program
from tests.conformance.published.faults import Look, Server, lists, look, modules, table

LISTS = dict(lists())
OTHERS = ("no matches for kind", "error looking up service account")
"""What a server says for want of another object, or of a CRD."""


@pytest.fixture(scope="module", params=sorted(LISTS))
def seen(request: pytest.FixtureRequest) -> tuple[str, Look]:
    """A module and what `check` says of it."""
    folder = modules() / request.param
    if not folder.is_dir():
        pytest.skip(f"{request.param} is not in the module cache")
    kustomize = str(program("kustomize"))
    with pytest.MonkeyPatch.context() as patched:  # whatever else the machine has
        patched.setattr(programs, "which", lambda *names: kustomize if "kustomize" in names else "")
        return request.param, look(folder)


@pytest.fixture(scope="module")
def server(platform_plane: ControlPlane) -> Server:
    """A server with every CRD."""
    return Server(platform_plane.client)


def test_nothing_certain_that_was_not_looked_at(seen: tuple[str, Look]) -> None:
    module, found = seen
    listed = LISTS[module]
    assert table(found.faults) == listed["refused"]
    rows = {(row["code"], row["file"], row["object"]): row["why"] for row in listed["read"]}
    assert {(each.code, each.file, each.object) for each in found.faults if not each.by_server} == rows.keys()
    assert all(rows.values())


def test_the_server_refuses_what_is_called_refused(seen: tuple[str, Look], server: Server) -> None:
    faults = [each for each in seen[1].faults if each.by_server and each.manifest]
    assert [each for each in faults if each.manifest and not server.refuses(each.manifest)] == []


def test_the_server_takes_what_nothing_is_said_of(seen: tuple[str, Look], server: Server) -> None:
    module, found = seen
    known = {(row["file"], row["object"]) for row in LISTS[module].get("silent", ())}
    folder = str(modules() / module)
    refused = {
        (each.source.file.removeprefix(f"{folder}/"), str(each.ref)): said
        for each in found.quiet
        if (said := server.refuses(each)) and not any(words in said for words in OTHERS)
    }
    assert {place: said for place, said in refused.items() if place not in known} == {}


def test_no_more_is_likely_than_was_looked_at(seen: tuple[str, Look]) -> None:
    module, found = seen
    assert Counter(each.code for each in found.likely) <= Counter(LISTS[module].get("likely", {}))
