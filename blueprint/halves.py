"""Work on the two halves of a list at once, where that is worth a second process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def each(work: Callable[[A], B], items: Sequence[A], *, together: bool) -> list[B]:
    """`work` of every item, in order; with `together` every other item is done by a forked copy of this process.

    Results travel by pickle, items and `work` need not. What the copy cannot do, this process does after all, so an
    exception is raised here as ever. Where processes cannot fork, nothing is done together.
    """
    ours, theirs = items[::2], items[1::2]
    if not together or not theirs or "fork" not in multiprocessing.get_all_start_methods():
        return [work(item) for item in items]
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    copy = fork.Process(target=_send, args=(work, theirs, sender), daemon=True)
    copy.start()
    sender.close()
    done = [work(item) for item in ours]
    try:
        rest: list[B] = receiver.recv()
    except EOFError:
        rest = [work(item) for item in theirs]
    copy.join()
    result: list[B] = []
    for number, one in enumerate(done):
        result += [one, *rest[number : number + 1]]
    return result


def _send(work: Callable[[A], B], items: Sequence[A], sender: Connection) -> None:
    with suppress(Exception), sender:
        sender.send([work(item) for item in items])
