"""Verbs as a user who may read but not write: one error with the place, exit code 3, and the tree as it was."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from blueprint.cli import main
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from blueprint.tree import verify

NOBODY = 65534


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


def _call(*arguments: str | Path) -> int:
    """The command line in this process; returns the exit code."""
    argv, sys.argv = sys.argv, ["blueprint", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = argv
        gc.enable()
    return 0


def _as_nobody(folder: Path, arguments: tuple[str | Path, ...]) -> Done:
    """The command line in a child that gave its rights away: Python itself may lie where only root reads."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            code = 70
            try:
                os.chdir(folder)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                code = _call(*arguments)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    assert status != 70, texts[1]
    return Done(status, *texts)


@pytest.fixture
def nobody() -> Iterator[tuple[Path, Run]]:
    """A folder that everybody may enter and root alone may write, and a way to call the product as somebody else."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as first:
        Path(folder).chmod(0o755)
        # Everything is imported before the rights are gone.
        with contextlib.redirect_stdout(io.StringIO()):
            assert [_call("new", f"{first}/a"), _call("render", f"{first}/a", "--check")] == [0, 1]
            assert _call("render", f"{first}/a") == 0
            (Path(first) / "a/apps/extra.yaml").write_text("kind: Taem\n")
            assert _call("render", f"{first}/a") == 0  # a warning

        yield Path(folder), lambda *arguments: _as_nobody(Path(folder), arguments)


def _bytes(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_no_tree_is_made_where_nobody_may_write(nobody: tuple[Path, Run]) -> None:
    folder, run = nobody
    copy_example("minimal", folder / "platform")
    before = _bytes(folder)
    done = run("render", folder / "platform")
    assert done.returncode == 3
    assert "Permission denied" in done.stderr and "rendered" in done.stderr
    assert _bytes(folder) == before


def test_a_tree_of_another_user_stays_whole(nobody: tuple[Path, Run]) -> None:
    folder, run = nobody
    platform, tree = folder / "platform", folder / "platform/rendered"
    copy_example("minimal", platform)
    render_platform(platform, tree)
    assert run("render", platform, "--check").returncode == 0
    spec = next((platform / "apps").rglob("*.yaml"))
    spec.write_text(spec.read_text().replace("gpus: 1", "gpus: 2", 1) + "# more\n")
    before = _bytes(folder)
    assert run("render", platform, "--check").returncode == 1
    done = run("render", platform)
    assert done.returncode == 3
    assert "as it was: Permission denied" in done.stderr
    assert _bytes(folder) == before
    assert not verify(tree)


def test_specs_that_may_not_be_read_are_a_finding(nobody: tuple[Path, Run]) -> None:
    folder, run = nobody
    copy_example("minimal", folder / "platform")
    spec = next((folder / "platform/apps").rglob("*.yaml"))
    spec.chmod(0o600)
    done = run("render", folder / "platform", "--out", folder / "tree")
    assert done.returncode == 1
    assert "cannot be read: permission denied" in done.stdout


@pytest.mark.parametrize("verb", [("new", "place"), ("new", "platform/below")])
def test_nothing_is_started_where_nobody_may_write(nobody: tuple[Path, Run], verb: tuple[str, ...]) -> None:
    folder, run = nobody
    (folder / "platform").mkdir(mode=0o755)
    done = run(*verb)
    assert done.returncode == 3
    assert "Permission denied" in done.stderr
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_folders_that_may_not_be_entered_are_said(nobody: tuple[Path, Run]) -> None:
    folder, run = nobody
    copy_example("minimal", folder / "platform")
    (folder / "platform/clusters").chmod(0o700)
    done = run("render", folder / "platform", "--out", folder / "tree")
    assert done.returncode == 1
    assert "clusters" in done.stdout and "permission denied" in done.stdout
    (folder / "platform").chmod(0o700)
    shut = run("render", folder / "platform")
    assert shut.returncode == 3
    assert str(folder / "platform") in shut.stderr
