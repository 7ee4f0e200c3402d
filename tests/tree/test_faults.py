"""A disk that fails, is full or read-only ends in one clear error and a whole tree."""

import errno
import os
import resource
import subprocess
from itertools import count

import pytest

from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.tree import exchange, recover, verify, write
from blueprint.tree.scan import WORK

from .trees import beside, content, made, new_files, old_files
from .tripwire import in_child, tripwire

BOTH = made("prod-a", "staging")


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "rendered", old_files(), BOTH)
    return tmp_path / "rendered"


@pytest.fixture
def mount(tmp_path):
    """Mount something on a folder for the length of a test; only root may."""
    mounted = []

    def mount(*options, at):
        at.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", *options, at], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("needs the right to mount")
        mounted.append(at)
        return at

    if os.geteuid():
        pytest.skip("needs the right to mount")
    yield mount
    for at in reversed(mounted):
        subprocess.run(["umount", "-l", at], check=True)


@pytest.mark.parametrize("way", ["exchange", "journal"])
def test_each_single_system_call_may_fail(tmp_path, monkeypatch, way):
    if way == "journal":
        monkeypatch.setattr(exchange, "_libc", object)
    root, before, after = tmp_path / "rendered", old_files(4), new_files(4)
    write(root, after, BOTH)
    new = content(root)
    write(root, before, BOTH)
    old = content(root)

    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    refused = 0
    for call in count():
        with tripwire(call, fail) as called:
            try:
                write(root, after, BOTH)
            except EnvironmentLacks as error:
                refused += 1
                assert "No space left on device" in error.message
                if "as it was" in error.message:
                    assert content(root) == old
        if len(called) <= call:
            break
        recover(root)
        found = content(root)
        assert found in (old, new)
        if found == new:
            write(root, before, BOTH)
            assert content(root) == old
            assert beside(root) == []
    assert content(root) == new
    assert beside(root) == []
    assert refused > 50


def test_a_full_disk(tmp_path, mount):
    root = mount("-t", "tmpfs", "-o", "size=512k", "none", at=tmp_path / "small") / "rendered"
    write(root, old_files(), BOTH)
    before = content(root)
    big = new_files() | {"prod-a/big.yaml": bytes(600_000)}
    with pytest.raises(EnvironmentLacks, match="as it was: No space left") as caught:
        write(root, big, BOTH)
    assert caught.value.hint == "free some space on that disk"
    assert content(root) == before
    assert beside(root) == []
    write(root, new_files(), BOTH)
    assert verify(root) == []


def test_no_more_inodes(tmp_path, mount):
    root = mount("-t", "tmpfs", "-o", "nr_inodes=60", "none", at=tmp_path / "small") / "rendered"
    write(root, old_files(), BOTH)
    before = content(root)
    many = new_files() | {f"prod-a/many/{n}.yaml": b"x" for n in range(40)}
    with pytest.raises(EnvironmentLacks, match="as it was: No space left"):
        write(root, many, BOTH)
    assert content(root) == before
    assert beside(root) == []


def test_a_limit_on_file_size(root):
    before = content(root)

    def run():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with pytest.raises(EnvironmentLacks, match="as it was: File too large"):
            write(root, new_files(), BOTH)

    assert in_child(run)
    assert content(root) == before
    assert beside(root) == []


@pytest.mark.parametrize("above", [False, True])
def test_a_read_only_mount(tmp_path, mount, above):
    """The target itself, or the file system that it lies in."""
    place = mount("-t", "tmpfs", "none", at=tmp_path / ("disk" if above else "rendered"))
    root = place / "rendered" if above else place
    write(root, old_files(), BOTH)
    before = content(root)
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    with pytest.raises(EnvironmentLacks, match="as it was") as caught:
        write(root, new_files(), BOTH)
    assert caught.value.hint
    assert content(root) == before
    assert write(root, new_files(), BOTH, check_only=True).changes
    assert verify(root) == []


def test_an_immutable_folder_inside(root, mount):
    """Mode and attributes inside the tree are respected, though an exchange would not need the right."""
    folder = root / "staging/queues"
    if subprocess.run(["chattr", "+i", folder], check=False, capture_output=True).returncode:
        pytest.skip("no chattr +i on this file system")
    try:
        before = content(root)
        with pytest.raises(EnvironmentLacks, match=r"as it was: .* \(.*staging/queues\)"):
            write(root, {p: d + b"#" for p, d in new_files().items()}, BOTH)
        assert content(root) == before
        assert beside(root) == []
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)


def test_a_target_that_is_a_mount(tmp_path, mount):
    root = mount("-t", "tmpfs", "none", at=tmp_path / "rendered")
    write(root, old_files(), BOTH)
    write(root, new_files(), BOTH)
    assert verify(root) == []
    assert sorted(p.name for p in root.iterdir()) == ["blueprint.lock", "prod-a", "staging"]
    assert beside(root) == []


def test_a_target_that_is_a_bind_mount_of_the_same_disk(root, tmp_path, mount):
    place = mount("--bind", root, at=tmp_path / "bound")
    write(place, new_files(), BOTH)
    assert verify(root) == []
    assert beside(root) == ["bound"]


def test_a_mounted_target_in_a_read_only_place(tmp_path, mount):
    disk = mount("-t", "tmpfs", "none", at=tmp_path / "disk")
    root = mount("-t", "tmpfs", "none", at=disk / "rendered")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    write(root, old_files(), BOTH)
    write(root, new_files(), BOTH)
    assert verify(root) == []
    assert sorted(p.name for p in root.iterdir()) == ["blueprint.lock", "prod-a", "staging"]


def test_a_mount_inside_the_target_stays(root, mount):
    inner = mount("-t", "tmpfs", "none", at=root / "mine")
    (inner / "file").write_text("ours")
    write(root, new_files(), BOTH)
    assert (inner / "file").read_text() == "ours"
    assert inner.is_mount()


@pytest.mark.parametrize(
    "journal",
    [
        "{",
        "[]",
        '{"write": {"0": "prod-a/../../x"}, "remove": [], "folders": []}',
        '{"write": {}, "remove": ["../mine"], "folders": []}',
        '{"write": {}, "remove": ["/etc/hostname"], "folders": []}',
        '{"write": {}, "remove": [], "folders": ["../"]}',
        '{"write": {"../../mine": "prod-a/x"}, "remove": [], "folders": []}',
        '{"write": {}, "remove": "x", "folders": []}',
        '{"write": {}, "remove": [1], "folders": []}',
    ],
)
def test_a_journal_that_we_did_not_write(root, journal):
    (root / WORK).mkdir()
    (root / WORK / "journal").write_text(journal)
    (root.parent / "mine").write_text("mine")
    before = content(root.parent)
    with pytest.raises(UsageError, match="journal of an interrupted run is damaged"):
        write(root, new_files(), BOTH)
    assert content(root.parent) == before


def test_a_journal_does_not_go_through_a_link(root):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("mine")
    (root / "prod-b").symlink_to(outside)
    (root / WORK).mkdir()
    (root / WORK / "journal").write_text('{"write": {}, "remove": ["prod-b/x"], "folders": []}')
    with pytest.raises(UsageError, match="prod-b is a symbolic link"):
        write(root, new_files(), BOTH)
    assert (outside / "x").read_text() == "mine"
