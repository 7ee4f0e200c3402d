import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.tree import exchange, recover, tidy, verify, write

from .trees import beside, content, made, new_files, old_files
from .tripwire import in_child

BOTH = made("prod-a", "staging")


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "rendered", old_files(), BOTH)
    return tmp_path / "rendered"


@pytest.fixture(params=["exchange", "journal"])
def way(request, monkeypatch):
    """Both switches; the second by a kernel that knows no exchange."""
    if request.param == "journal":
        monkeypatch.setattr(exchange, "_libc", object)
    return request.param


def test_files_are_as_given(root, way):
    write(root, new_files(), BOTH)
    found = content(root)
    del found["blueprint.lock"]
    assert found == new_files()
    assert verify(root) == []
    assert beside(root) == []


def test_unchanged_files_keep_inode_and_time(root, way):
    keep = root / "prod-a/queues/configmap-3.yaml"
    os.utime(keep, ns=(1, 1))
    before = keep.stat()
    write(root, new_files(), BOTH)
    after = keep.stat()
    assert (before.st_ino, before.st_mtime_ns, after.st_nlink) == (after.st_ino, after.st_mtime_ns, 1)


def test_an_unchanged_run_touches_nothing(root):
    def seen() -> dict[Path, tuple[int, ...]]:
        stats = {path: path.stat() for path in root.rglob("*")}  # reading may move the time of access, and no other
        return {
            path: (s.st_ino, s.st_mode, s.st_nlink, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
            for path, s in stats.items()
        }

    before = seen()
    write(root, old_files(), BOTH)
    assert seen() == before


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077])
def test_modes_whatever_the_umask(tmp_path, way, umask):
    root = tmp_path / "rendered"
    before = os.umask(umask)
    try:
        write(root, old_files(), BOTH)
        write(root, new_files(), BOTH)
    finally:
        os.umask(before)
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (root, *root.rglob("*"))}
    assert modes == {(True, 0o755), (False, 0o644)}


def test_folders_keep_their_mode(root):
    (root / "prod-a").chmod(0o2775)
    write(root, new_files(), BOTH)
    assert stat.S_IMODE((root / "prod-a").stat().st_mode) == 0o2775


def test_folders_above_are_made(tmp_path):
    write(tmp_path / "a/b/rendered", old_files(), BOTH)
    assert verify(tmp_path / "a/b/rendered") == []


def test_an_empty_folder_is_a_target(tmp_path):
    (tmp_path / "rendered").mkdir()
    write(tmp_path / "rendered", old_files(), BOTH)
    assert verify(tmp_path / "rendered") == []


def test_a_relative_target_and_one_that_we_stand_in(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    write(Path("rendered"), new_files(), BOTH)
    assert verify(root) == []
    monkeypatch.chdir(root / "prod-a")
    inode = root.stat().st_ino
    write(Path(".."), old_files(), BOTH)
    assert root.stat().st_ino == inode  # a shell in there still stands in the tree
    assert Path().samefile(root / "prod-a")
    assert verify(root) == []


def test_a_linked_target_is_refused(root, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(root)
    before = content(tmp_path)
    for check_only in (False, True):
        with pytest.raises(UsageError, match=f"symbolic link to {root}"):
            write(link, new_files(), BOTH, check_only=check_only)
    with pytest.raises(UsageError, match="symbolic link"):
        recover(link)
    assert content(tmp_path) == before


def test_a_link_above_the_target_is_the_users_own(root, tmp_path):
    (tmp_path / "repo").symlink_to(tmp_path)
    write(tmp_path / "repo/rendered", new_files(), BOTH)
    assert verify(root) == []


def test_a_file_as_target_is_refused(tmp_path):
    (tmp_path / "rendered").write_text("x")
    with pytest.raises(UsageError, match="must be a folder"):
        write(tmp_path / "rendered", old_files(), BOTH)


def test_two_runs_at_once(root):
    before = content(root)
    with (root.parent / ".rendered.blueprint-run").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run is writing this tree"):
            write(root, new_files(), BOTH)
        assert not write(root, old_files(), BOTH, check_only=True).changes
        assert content(root) == before
    write(root, new_files(), BOTH)
    assert beside(root) == []


def test_many_runs_at_once_leave_one_whole_tree(root):
    """Four processes that write either tree, over and over: each run wins or is told, and no tree is ever mixed."""
    code = (
        "import sys; from pathlib import Path; from blueprint.errors import UsageError\n"
        "from blueprint.tree import write; from tests.tree.trees import *\n"
        "for n in range(12):\n"
        "    files = old_files() if (n + int(sys.argv[2])) % 2 else new_files()\n"
        "    try: print('refused' if write(Path(sys.argv[1]), files, made('prod-a', 'staging')).refused else 'wrote')\n"
        "    except UsageError as error: print('told')\n"
    )
    top = os.fspath(Path(__file__).parents[2])
    runs = [
        subprocess.Popen([sys.executable, "-c", code, root, str(n)], cwd=top, stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    said = [line for run in runs for line in run.communicate()[0].split()]
    assert [run.returncode for run in runs] == [0] * 4
    assert len(said) == 48
    assert "wrote" in said
    assert set(said) <= {"wrote", "told"}
    found = content(root)
    del found["blueprint.lock"]
    assert found in (old_files(), new_files())
    assert verify(root) == []
    assert beside(root) == []


def test_a_touch_during_the_run_stops_it(root, monkeypatch):
    build = exchange._stage
    edited = root / "staging/chat/configmap-0.yaml"

    def build_and_edit(planned, stage):
        build(planned, stage)
        edited.write_text("saved by an editor just now")

    monkeypatch.setattr(exchange, "_stage", build_and_edit)
    with pytest.raises(UsageError, match="touched during the run"):
        write(root, new_files(), BOTH)
    assert edited.read_text() == "saved by an editor just now"
    assert beside(root) == []


def test_leftovers_of_a_killed_run_are_cleared(root):
    stage = root.parent / ".rendered.blueprint-stage"
    (stage / "prod-a/chat").mkdir(parents=True)
    os.link(root / "prod-a/chat/configmap-0.yaml", stage / "prod-a/chat/configmap-0.yaml")
    (root.parent / ".rendered.blueprint-run").touch()
    recover(root)
    assert beside(root) == []
    assert verify(root) == []


@pytest.mark.parametrize("left", [".rendered.blueprint-run", ".rendered.blueprint-stage", "rendered/.blueprint-work"])
def test_each_leftover_of_a_dead_run_is_cleared_by_itself(root, left):
    place = root.parent / left
    if left.endswith("-run"):
        place.touch()
    else:
        place.mkdir()
    tidy(root)
    assert not place.exists()
    assert beside(root) == []
    assert verify(root) == []


def test_what_a_live_run_holds_is_left_alone(root):
    stage = root.parent / ".rendered.blueprint-stage"
    stage.mkdir()
    (stage / "half.yaml").touch()
    with (root.parent / ".rendered.blueprint-run").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        tidy(root)
        assert beside(root) == [".rendered.blueprint-run", ".rendered.blueprint-stage"]
        assert (stage / "half.yaml").exists()
    tidy(root)
    assert beside(root) == []


def test_a_stage_that_is_a_link_is_removed_not_followed(root, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    (tmp_path / ".rendered.blueprint-stage").symlink_to(mine)
    write(root, new_files(), BOTH)
    assert (mine / "file").read_text() == "mine"
    assert beside(root) == ["mine"]


def test_recover_of_a_whole_tree_does_nothing(root):
    before = root.parent.stat()
    recover(root)
    assert root.parent.stat() == before


def test_a_repository_inside_keeps_its_place(root):
    (root / ".git/objects").mkdir(parents=True)
    (root / ".git/index").write_text("x")
    inodes = root.stat().st_ino, (root / ".git").stat().st_ino
    planned = write(root, new_files(), BOTH)
    assert planned.foreign == ()
    assert (root.stat().st_ino, (root / ".git").stat().st_ino) == inodes
    assert (root / ".git/index").read_text() == "x"
    assert verify(root) == []


def test_no_hard_links_here(root, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(root, new_files(), BOTH)
    assert verify(root) == []
    assert beside(root) == []


NOBODY = 65534


@pytest.fixture
def shared():
    """A tree below a folder that everybody may enter, and a way to act as somebody who is not root."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = Path(folder) / "place/rendered"
        write(root, old_files(), BOTH)
        for path in (root.parent, root, *root.rglob("*")):
            if path.is_dir() and not os.geteuid():
                os.chown(path, NOBODY, NOBODY)

        def act(run):
            def drop_and_run():
                if not os.geteuid():
                    os.setgroups([])
                    os.setresgid(NOBODY, NOBODY, NOBODY)
                    os.setresuid(NOBODY, NOBODY, NOBODY)
                run()

            assert in_child(drop_and_run)

        yield root, act


@pytest.mark.parametrize("folder", ["", "staging", "staging/chat"])
def test_read_only_by_mode(shared, folder):
    root, act = shared
    (root / folder).chmod(0o555)
    before = content(root)

    def run():
        with pytest.raises(EnvironmentLacks, match="as it was: Permission denied"):
            write(root, new_files(), BOTH)

    act(run)
    assert content(root) == before
    assert beside(root) == []
    (root / folder).chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of two users")
def test_files_of_another_user_are_replaced_where_the_folders_are_ours(shared):
    root, act = shared  # the files are root's, so nobody may not link them where fs.protected_hardlinks is set
    act(lambda: write(root, new_files(), BOTH))
    assert verify(root) == []
    assert beside(root) == []


def test_a_place_that_cannot_be_written_but_holds_a_tree_that_can(shared):
    root, act = shared
    root.parent.chmod(0o555)
    act(lambda: write(root, new_files(), BOTH))
    assert verify(root) == []
    assert sorted(path.name for path in root.iterdir()) == ["blueprint.lock", "prod-a", "staging"]
    root.parent.chmod(0o755)
