"""A kill at any moment leaves the old tree or the new one."""

import os
import random
import signal
import time
from itertools import count

import pytest

from blueprint.tree import exchange, plan, recover, verify, write

from .trees import beside, content, made, new_files, old_files
from .tripwire import die, in_child, tripwire

BOTH = made("prod-a", "staging")


@pytest.fixture
def root(tmp_path):
    """A small old tree, with a file of somebody else."""
    write(tmp_path / "rendered", old_files(4), BOTH)
    (tmp_path / "rendered/README.md").write_text("ours")
    return tmp_path / "rendered"


@pytest.fixture
def journalled(monkeypatch):
    """A kernel that cannot exchange folders."""
    monkeypatch.setattr(exchange, "_libc", object)


def to_old(root):
    return write(root, old_files(4), BOTH)


def to_new(root):
    return write(root, new_files(4), BOTH)


def killed(number, run, *args):
    """Run in a process that is killed at its system call `number`; whether it came so far."""

    def go():
        with tripwire(number, die):
            run(*args)

    return not in_child(go)


@pytest.fixture
def trees(root):
    """What a reader sees of the old and of the new tree."""
    old = content(root)
    to_new(root)
    new = content(root)
    to_old(root)
    assert content(root) == old
    return old, new


def test_a_kill_at_each_single_system_call(root, trees):
    """Every call of a whole run in turn, with no recovery before the tree is read."""
    seen = []
    for number in count():
        died = killed(number, to_new, root)
        seen.append(trees.index(content(root)))
        if not died:
            break
        if number % 4 == 0:  # in the other cases the next round is the following run
            assert to_new(root).changes != bool(seen[-1])
            assert content(root) == trees[1]
            assert beside(root) == []
        if number % 4 == 0 or seen[-1]:
            to_old(root)
            assert content(root) == trees[0]
            assert beside(root) == []
    assert beside(root) == []
    assert number > 100
    assert seen == sorted(seen), "once the new tree is there it stays"
    assert set(seen) == {0, 1}


def test_a_kill_at_each_call_of_a_first_run(tmp_path):
    root = tmp_path / "rendered"
    files = dict(list(old_files().items())[:6])
    for number in count():
        died = killed(number, write, root, files, made("prod-a"))
        assert not root.exists() or verify(root) == []
        write(root, files, made("prod-a"))
        assert verify(root) == []
        assert beside(root) == []
        if not died:
            break
        exchange.remove(root)
    assert number > 30


def test_a_kill_at_each_call_of_a_journalled_run(root, trees, journalled):
    """Here the tree is old until the decision, and old or new for whoever recovers first."""
    seen, mixed = [], 0
    for number in count():
        died = killed(number, to_new, root)
        before = {path: data for path, data in content(root).items() if not path.startswith(".blueprint-work/")}
        if before not in trees:
            mixed += 1
            assert "TRE206" in {f.code for f in verify(root)}
            assert plan(root, new_files(4), BOTH).refused
        recover(root)
        seen.append(trees.index(content(root)))
        if not died:
            break
        if seen[-1]:
            to_old(root)
            assert content(root) == trees[0]
            assert beside(root) == []
    assert number > 60
    assert mixed, "or the recovery was never needed"
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}


def test_kills_of_the_recovery_itself(root, trees, journalled):
    with tripwire(-1, die) as called:
        to_new(root)
    decided = called.index("rename") + 1
    rng = random.Random(7)
    died = 0
    for _ in range(20):
        to_old(root)
        assert killed(rng.randrange(decided, decided + 20), to_new, root)
        for _ in range(3):
            died += killed(rng.randrange(30), recover, root)
        recover(root)
        assert content(root) == trees[1]
    assert died > 10


def test_two_hundred_kills_at_random_moments(tmp_path):
    """A process writes two trees in turn, and is killed from outside, 200 times; the tree is read as it lies."""
    root, before, after = tmp_path / "rendered", old_files(15), new_files(15)
    write(root, before, BOTH)
    old = content(root)
    write(root, after, BOTH)
    trees = old, content(root)
    rng = random.Random(11)
    seen, interrupted = [], 0
    for _ in range(200):
        ready, go = os.pipe()
        child = os.fork()
        if not child:
            os.write(go, b".")
            while True:
                write(root, before, BOTH)
                write(root, after, BOTH)
        os.read(ready, 1)
        time.sleep(rng.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(go)
        seen.append(trees.index(content(root)))
        interrupted += bool(beside(root))
        if rng.random() < 0.2:
            write(root, after, BOTH)
            assert content(root) == trees[1]
            assert beside(root) == []
    write(root, before, BOTH)
    assert content(root) == trees[0]
    assert beside(root) == []
    assert set(seen) == {0, 1}
    assert interrupted > 20, "or the kills hit nothing"
