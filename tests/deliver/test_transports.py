"""Bare remotes behind real servers on loopback: OpenSSH's sshd, and Git's own CGI program for HTTP."""

from __future__ import annotations

import getpass
import os
import random
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from blueprint.deliver import Order, Remote, Status, deliver, source_of_promotion, source_of_rollback
from blueprint.deliver.promote import kept
from blueprint.errors import EnvironmentLacks, UsageError

from .repositories import PATH, bare, both, files_at, git, history, own_config, someone_pushes
from .test_verbs import over_http

ROUNDS = 20
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@pytest.fixture
def remote(tmp_path, monkeypatch):
    own_config(monkeypatch, tmp_path, "[core]\n  fsync = none\n")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return bare(tmp_path)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@contextmanager
def over_ssh(folder: Path):
    """An sshd of our own that knows one key; its address, and what a client must be told to be let in."""
    if SSHD is None:
        pytest.skip("sshd is not installed (openssh-server)")
    if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
        pytest.skip("sshd as root wants the folder /run/sshd")
    place = folder / "sshd"
    place.mkdir()
    host, mine, port = key(place / "host"), key(place / "mine"), free_port()
    shutil.copy(f"{mine}.pub", place / "allowed")
    lines = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": host,
        "AuthorizedKeysFile": place / "allowed",
        "PidFile": "none",
        "StrictModes": "no",  # the folders of tests are anybody's
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "MaxStartups": "100",
    }
    (place / "config").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    with (place / "log").open("w") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(place / "config")], stderr=log)
        try:
            for _ in range(200):
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, (place / "log").read_text()
                time.sleep(0.05)
            (place / "known").write_text(f"[127.0.0.1]:{port} {Path(f'{host}.pub').read_text()}")
            yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}", client(mine, place / "known")
        finally:
            server.terminate()
            server.wait()


def client(identity: Path, known: Path) -> list[tuple[str, str]]:
    """What a repository's own configuration says of its server; no agent, no other key, no question."""
    options = f"-F /dev/null -i {identity} -o IdentitiesOnly=yes -o UserKnownHostsFile={known} -o BatchMode=yes"
    return [("core.sshcommand", f"ssh {options}")]


@contextmanager
def over(kind: str, folder: Path, remote: Path):
    """The address of the remote by one of the transports, and the settings that reach it."""
    if kind == "file":
        yield f"file://{remote}", []
    elif kind == "path":
        yield str(remote), []
    elif kind == "http":
        git(remote, "config", "http.receivepack", "true")
        with over_http(folder) as address:
            yield f"{address}/{remote.name}", []
    else:
        with over_ssh(folder) as (address, settings):
            yield f"{address}{remote}", settings


KINDS = ["path", "file", "http", "ssh"]


@pytest.mark.parametrize("form", ["env/{}", "main"])
@pytest.mark.parametrize("kind", KINDS)
def test_commit_promote_and_the_way_back(kind, form, remote, tmp_path):
    """A branch for each cluster, and one for all stages: there each cluster has a folder."""
    with over(kind, tmp_path, remote) as (address, settings), Remote.open(address, settings) as place:
        stages, branch = [["preprod"], ["prod-a"]], form.format

        def commit(text):
            return deliver(place, Order(both(text).of(["preprod"]), branch("preprod"), PATH, keep=both(text)))

        def promote(release=None):
            found = release or source_of_promotion(place, "prod-a", stages, branch, PATH)
            return deliver(place, Order(found, branch("prod-a"), PATH, verb="Promote"))

        def goes_back():
            back, left = source_of_rollback(place, "prod-a", branch("prod-a"), PATH)
            order = Order(back, branch("prod-a"), PATH, verb="Roll back", trailers={"Rolled-Back": left})
            assert deliver(place, order).status is Status.COMMITTED
            return left

        def holds(cluster):
            files = files_at(remote, branch(cluster))
            return {path: data for path, data in files.items() if path.startswith(f"{PATH}/{cluster}/")}

        assert commit("one").status is Status.COMMITTED and commit("one").status is Status.UNCHANGED
        assert promote().status is Status.COMMITTED
        first = holds("prod-a")
        assert commit("two").status is promote().status is Status.COMMITTED
        second = holds("prod-a")
        assert commit("three").status is promote().status is Status.COMMITTED
        assert len({str(each) for each in (first, second, holds("prod-a"))}) == 3
        assert goes_back() == both("three").name and holds("prod-a") == second
        assert goes_back() == both("two").name and holds("prod-a") == first
        assert promote(kept(place, both("two").name[:12]).of(["prod-a"])).status is Status.COMMITTED
        assert holds("prod-a") == second
        with pytest.raises(UsageError, match="no release"):
            kept(place, "0" * 12)
        before = holds("preprod")
    assert before == holds("preprod")  # nothing of it was touched by the other's ways
    assert len(history(remote, branch("prod-a"))) == (6 if form != "main" else 9)


@pytest.mark.conformance  # many connections to real servers
@pytest.mark.parametrize("kind", ["http", "ssh"])
def test_rounds_with_rivals_and_hooks_that_fail(kind, remote, tmp_path):
    chance, notes = random.Random(f"rounds over {kind}"), []
    hook = remote / "hooks/pre-receive"
    with over(kind, tmp_path, remote) as (address, settings):

        def delivery(text):
            with Remote.open(address, settings) as place:
                return deliver(place, Order(both(text), "main", PATH))

        for number in range(ROUNDS):
            luck = chance.choice(["calm", "rivals", "pusher", "hook", "dies"])
            before = git(remote, "rev-parse", "--verify", "--quiet", "main", fine=False)
            if luck in ("hook", "dies"):
                hook.write_text(
                    "#!/bin/sh\necho no >&2\nexit 1\n"
                    if luck == "hook"
                    else "#!/bin/sh\ncat >/dev/null; kill -9 $PPID\n"
                )
                hook.chmod(0o755)
                with pytest.raises(EnvironmentLacks):
                    delivery(f"input-{number}")
                hook.unlink()
                assert git(remote, "rev-parse", "--verify", "--quiet", "main", fine=False) == before
                continue
            with ThreadPoolExecutor(3) as pool:
                rivals = [f"input-{number}", *([f"rival-{number}"] if luck == "rivals" else [])]
                running = [pool.submit(delivery, text) for text in rivals]
                if luck == "pusher":
                    notes.append(f"note-{number}")
                    someone_pushes(remote, notes[-1], "x")
                outcomes = [each.result() for each in running]
            assert {each.status for each in outcomes} == {Status.COMMITTED}
            tip = git(remote, "rev-parse", "main")
            assert tip in {each.commit for each in outcomes} or luck == "pusher"
        assert set(notes) <= set(files_at(remote))
        history(remote)
        git(remote, "fsck", "--connectivity-only", "--no-dangling")


def test_a_key_that_nobody_knows(remote, tmp_path):
    with over_ssh(tmp_path) as (address, settings):
        other = client(key(tmp_path / "other"), tmp_path / "sshd/known")
        with Remote.open(f"{address}{remote}", other) as place, pytest.raises(EnvironmentLacks) as caught:
            deliver(place, Order(both("one"), "main", PATH))
        assert "Permission denied" in caught.value.message
        assert caught.value.hint == "this identity may not do that there"
        with Remote.open(f"{address}{remote}", settings) as place:
            assert deliver(place, Order(both("one"), "main", PATH)).status is Status.COMMITTED


def test_a_server_that_is_another_one(remote, tmp_path):
    """Its key is not the one that is known: nothing is sent."""
    with over_ssh(tmp_path) as (address, settings):
        known = tmp_path / "sshd/known"
        known.write_text(known.read_text().split()[0] + " " + Path(f"{key(tmp_path / 'fake')}.pub").read_text())
        with (
            Remote.open(f"{address}{remote}", settings) as place,
            pytest.raises(EnvironmentLacks, match=r"[Hh]ost key"),
        ):
            deliver(place, Order(both("one"), "main", PATH))
    assert git(remote, "for-each-ref") == ""


@pytest.mark.parametrize("kind", ["http", "ssh"])
def test_a_remote_that_may_only_be_read(kind, remote, tmp_path):
    with over(kind, tmp_path, remote) as (address, settings), Remote.open(address, settings) as place:
        deliver(place, Order(both("one"), "main", PATH))
        if kind == "http":
            git(remote, "config", "http.receivepack", "false")
        else:
            hook = remote / "hooks/update"
            hook.write_text("#!/bin/sh\necho 'this copy is read-only' >&2\nexit 1\n")
            hook.chmod(0o755)
        with pytest.raises(EnvironmentLacks, match="403" if kind == "http" else "read-only"):
            deliver(place, Order(both("two"), "main", PATH))
    assert len(history(remote)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_remote_that_is_not_there(kind, remote, tmp_path):
    with over(kind, tmp_path, remote) as (address, settings):
        gone = address.replace("gitops.git", "nothing.git")
        with Remote.open(gone, settings) as place, pytest.raises(EnvironmentLacks) as caught:
            deliver(place, Order(both("one"), "main", PATH))
    assert "spec.repository.url" in caught.value.hint
