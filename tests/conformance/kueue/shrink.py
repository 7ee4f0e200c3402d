"""Shrink a world in which two deciders disagree: what is left out one by one is what the disagreement does not need.

    python -m tests.conformance.kueue.shrink SEED [--rivals] [--fair] [--kueue VERSION] [--out FILE]

Asks Kueue's scheduler and `blueprint.admission` about a random world, and writes the smallest one that is left. Many
candidates are judged at once: worlds under other names live in one cluster without touching each other.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.kueue.worlds import Made

Judge = Callable[[list[Made]], list[bool]]
"""Tells of each world whether the disagreement is in it. One that cannot be judged does not disagree."""

Path_ = tuple[str | int, ...]
_MOST_ROUNDS = 40
_KEPT = ("apiVersion", "kind", "metadata", "name")


def shrink(made: Made, judge: Judge) -> Made:
    """The smallest world found in which the disagreement stays; the world itself must have it.

    In each round every part is left out by itself; the parts that can go are then left out together, as many as can.
    """
    for _ in range(_MOST_ROUNDS):
        parts = list(_parts(made))
        alone = judge([_without(made, [part]) for part in parts])
        spare = [part for part, stays in zip(parts, alone, strict=True) if stays]
        if not spare:
            return made
        # Later parts first, so that the places of earlier ones stay what they are.
        together = [_without(made, spare[: number + 1]) for number in range(len(spare))]
        stays = judge(together)
        made = together[max(number for number, each in enumerate(stays) if each or number == 0)]
    return made


def prefix(made: Made) -> str:
    """What all names of a world begin with."""
    space = next(body for body in made.objects if body["kind"] == "Namespace")
    name: str = space["metadata"]["name"]
    return name.removesuffix("-ns")


def size(made: Made) -> int:
    """How many values a world has."""
    return sum(1 for body in (*made.objects, *made.workloads) for _ in _paths(body, ()))


def renamed(made: Made, new: str, seed: int) -> Made:
    """The same world under another name."""
    old = prefix(made)

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return new + value[len(old) :] if value == old or str(value).startswith(f"{old}-") else value

    return Made(seed, walk(made.objects), walk(made.workloads))


def _parts(made: Made) -> Iterator[tuple[int, Path_]]:
    """Parts that may be left out: (number of the body, path in it), the last ones first; whole bodies before fields."""
    bodies = [*made.objects, *made.workloads]
    whole = len(made.workloads) > 1
    for number in range(len(bodies) - 1, -1, -1):
        body = bodies[number]
        if body["kind"] != "Namespace" and (number < len(made.objects) or whole):
            yield number, ()
    for number in range(len(bodies) - 1, -1, -1):
        yield from ((number, path) for path in _paths(bodies[number], ()) if path[0] not in ("apiVersion", "kind"))


def _paths(value: Any, steps: Path_) -> Iterator[Path_]:
    """Every field and every member of a list, what is deep and late first."""
    if isinstance(value, dict):
        for key in reversed(list(value)):
            if not steps and key in ("apiVersion", "kind"):
                continue
            yield from _paths(value[key], (*steps, key))
            if key not in _KEPT:
                yield (*steps, key)
    elif isinstance(value, list):
        for index in range(len(value) - 1, -1, -1):
            yield from _paths(value[index], (*steps, index))
            yield (*steps, index)


def _without(made: Made, parts: Sequence[tuple[int, Path_]]) -> Made:
    bodies: list[Any] = copy.deepcopy([*made.objects, *made.workloads])
    gone = {number for number, path in parts if not path}
    for number, path in parts:
        if path and number not in gone:
            _leave_out(bodies[number], path)
    count = len(made.objects)
    objects = [body for number, body in enumerate(bodies[:count]) if number not in gone]
    workloads = [body for number, body in enumerate(bodies[count:], count) if number not in gone]
    return Made(made.seed, objects, workloads or made.workloads[-1:])


def _leave_out(body: Any, path: Path_) -> None:
    """Leave out one part; where a larger part around it has gone already there is nothing to do."""
    try:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]
    except (KeyError, IndexError):
        return


def written(made: Made, said: str) -> str:
    """A world as YAML, with what the two said."""
    whole = {"said": said, "objects": made.objects, "workloads": made.workloads}
    return yaml.safe_dump(whole, sort_keys=False, width=120)


def main() -> int:
    """Shrink one world, and write it; 1 where both agree about it."""
    from tests.conformance.kueue.judges import Question, asked

    parser = argparse.ArgumentParser(prog="python -m tests.conformance.kueue.shrink")
    parser.add_argument("seed", type=int)
    parser.add_argument("--rivals", action="store_true", help="several workloads, one after the other")
    parser.add_argument("--fair", action="store_true", help="fair sharing")
    parser.add_argument("--kueue", default="", help="0.19.2 asks that release; 0.17.0 else")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    question = Question(options.kueue, rivals=options.rivals or options.fair, fair=options.fair)
    with asked(question) as judge:
        (said,) = judge([question.made(options.seed)])
        if not said:
            print(f"world {options.seed}: both say the same")
            return 1
        print(said, file=sys.stderr)
        small = shrink(question.made(options.seed), lambda worlds: [bool(each) for each in judge(worlds)])
        (said,) = judge([small])
    text = written(small, said)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
