"""A hundred deliveries under bad luck: kills, other people who push, hooks that fail, remotes that take nothing, and
clones in every state that people leave them in.
"""

import os
import random
import signal
import time

import pytest

from blueprint.deliver import Order, Remote, deliver, specs_at
from blueprint.deliver.git import borrowed
from blueprint.deliver.message import trailers
from blueprint.errors import EnvironmentLacks
from blueprint.tree.lock import NAME, digest, parse

from .repositories import PATH, bare, both, files_at, git, history, own_config, someone_pushes

ROUNDS = 100


@pytest.fixture
def quiet(monkeypatch, tmp_path):
    own_config(monkeypatch, tmp_path, "[core]\n  fsync = none\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return bare(tmp_path)


@pytest.fixture
def platforms(tmp_path, quiet):
    """Clones in which people work: clean, with changes that are not committed, off any branch, and a shallow one."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "clean")
    (tmp_path / "clean/apps").mkdir()
    for text in ("one", "two"):
        (tmp_path / "clean/apps/team.yaml").write_text(text)
        git(tmp_path / "clean", "add", ".")
        git(tmp_path / "clean", "commit", "--quiet", "-m", text)
    for name, options in (("dirty", []), ("detached", []), ("shallow", ["--depth=1"])):
        git(tmp_path, "clone", "--quiet", *options, f"file://{tmp_path}/clean", name)
    (tmp_path / "dirty/apps/team.yaml").write_text("not committed")
    (tmp_path / "dirty/apps/new.yaml").write_text("untracked")
    git(tmp_path / "dirty", "rm", "--quiet", "--cached", "apps/team.yaml")
    git(tmp_path / "detached", "checkout", "--quiet", "--detach")
    return [tmp_path / name for name in ("clean", "dirty", "detached", "shallow")]


def untouched(platform):
    """Every byte of a clone, its index and references among them."""
    return {path: path.read_bytes() for path in sorted(platform.rglob("*")) if path.is_file()}


def start(remote, wanted, platform):
    """Deliver in a process of its own, with its own group so that a kill takes git too."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    code = 1
    try:
        with Remote.open(str(remote), borrowed(platform)) as place:
            deliver(place, Order(wanted, "main", PATH, keep=wanted, specs=specs_at(platform)))
        code = 0
    except EnvironmentLacks:
        code = 3
    finally:
        os._exit(code)


def settle(remote):
    """Nothing is at work any more: what a killed receive-pack left locked is what git itself would ask to remove."""
    for lock in remote.rglob("*.lock"):
        lock.unlink()


def look(remote):
    """Every rule that must hold at any moment: linear, and each delivered tree exactly as its own lock says."""
    if not git(remote, "for-each-ref", "refs/heads/main"):
        return None
    history(remote)
    git(remote, "fsck", "--connectivity-only", "--no-dangling")
    held = {
        path.removeprefix(f"{PATH}/"): text for path, text in files_at(remote).items() if path.startswith(f"{PATH}/")
    }
    if NAME not in held:
        return None
    lock, findings = parse(held.pop(NAME).encode())
    assert findings == []
    owned = lock.files()
    assert owned.keys() == held.keys()
    assert all(digest(held[path].encode()) == value for path, value in owned.items())
    return next(iter(lock.clusters.values())).made.inputs


@pytest.mark.conformance  # with real git, real kills; too slow for every save of a file
def test_a_hundred_rounds(quiet, platforms):
    remote, chance = quiet, random.Random(20261201)
    edits, arrived, before_all = [], 0, [untouched(platform) for platform in platforms]
    hook = remote / "hooks/pre-receive"
    for number in range(ROUNDS):
        luck = chance.choice(["calm", "kill", "kill", "pushers", "rival", "hook", "read-only", "kill and pushers"])
        wanted = both(f"input-{number}")
        if luck == "hook":
            hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
            hook.chmod(0o755)
        if luck == "read-only":
            hook.write_text("#!/bin/sh\ncat >/dev/null; kill -9 $PPID\n")  # the remote dies in the middle of its work
            hook.chmod(0o755)
        before = git(remote, "rev-parse", "--verify", "--quiet", "main", fine=False)
        platform = platforms[number % len(platforms)]
        children = [start(remote, wanted, platform)]
        if luck == "rival":
            children.append(start(remote, both(f"rival-{number}"), platform))
        if "pushers" in luck:
            for turn in range(chance.randrange(1, 4)):
                time.sleep(chance.random() * 0.05)
                try:
                    someone_pushes(remote, f"note-{number}-{turn}", "x")
                except Exception:
                    continue  # theirs was the slower one; git told them
                edits.append(f"note-{number}-{turn}")
        if "kill" in luck:
            time.sleep(chance.random() * 0.4)
            try:
                os.killpg(children[0], signal.SIGKILL)
            except ProcessLookupError:
                os.kill(children[0], signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        hook.unlink(missing_ok=True)
        settle(remote)
        runs = look(remote)
        mine = {item.made.inputs for item in (wanted, both(f"rival-{number}"))}
        if luck in ("calm", "pushers", "rival"):
            assert codes == [0] * len(codes), luck
            assert runs in mine
        if luck in ("hook", "read-only"):
            assert codes == [3]
            assert git(remote, "rev-parse", "--verify", "--quiet", "main", fine=False) == before
        arrived += runs in mine
    assert [untouched(platform) for platform in platforms] == before_all
    assert set(edits) <= set(files_at(remote))
    assert arrived > ROUNDS // 4
    texts = git(remote, "log", "-z", "--format=%B", "main").split("\0")
    assert all("Release" in trailers(text) or text.startswith("Edit note-") for text in filter(None, texts))


def test_a_remote_that_may_only_be_read(quiet):
    with Remote.open(str(quiet)) as place:
        deliver(place, Order(both("one"), "main", PATH))
    hook = quiet / "hooks/update"
    hook.write_text("#!/bin/sh\necho 'this copy is read-only' >&2\nexit 1\n")
    hook.chmod(0o755)
    with Remote.open(str(quiet)) as place, pytest.raises(EnvironmentLacks, match="read-only"):
        deliver(place, Order(both("two"), "main", PATH))
    assert look(quiet) == both("one").made.inputs
