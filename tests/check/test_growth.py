"""No rule may look at all objects for each object: work grows as the tree does, also in one namespace."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.parse import Reading, read_bytes

ONE = Path(__file__).with_name("growth.yaml").read_text("utf-8")
NUMBER = re.compile("@(?!sha256)")
#: A call for each pair of objects would make the last step cost twice what the one before does.
MOST = 1.15
#: What is called this often at most does not matter, however it grows.
FEW = 20_000


def calls(teams: int) -> Counter[CodeType]:
    """How often each function is called, and each generator resumed, while so many teams are checked."""
    reading = Reading()
    for number in range(teams):
        read_bytes(
            ONE.replace("@sha", "\0").replace("@", str(number)).replace("\0", "@sha").encode(), "t.yaml", reading
        )
    found: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found[frame.f_code] += 1

    sys.setprofile(count)
    try:
        outcome = validate(reading.manifests, SchemaPack.shipped(), tree_rules=tree_rules())
    finally:
        sys.setprofile(None)
    assert outcome.objects == len(reading.manifests)
    return found


def test_work_grows_as_the_tree_does() -> None:
    calls(1)  # what is compiled or loaded once
    few, more, many = (calls(teams) for teams in (20, 40, 80))
    grown = {
        f"{code.co_filename}:{code.co_firstlineno} {code.co_name}": (few[code], more[code], many[code])
        for code in many
        if many[code] > FEW and many[code] - more[code] > MOST * 2 * (more[code] - few[code])
    }
    assert grown == {}
