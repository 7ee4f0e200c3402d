#!/usr/bin/env python3
"""Check mutated and random files, each in a run of its own inside one process, and say how long the slowest took.

    python scripts/fuzz.py [--files 10000] [--seed 1]

Every file must end in findings: an exception ends this with 1 and names the seed. The files are those of
tests/check/test_fuzz.py, of which the suite takes a few.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from blueprint.catalog.schemas import SchemaPack  # noqa: E402
from blueprint.check import tree_rules, validate  # noqa: E402
from blueprint.check.locate import located  # noqa: E402
from blueprint.check.parse import Reading, read_bytes  # noqa: E402
from blueprint.check.patches import patched  # noqa: E402
from blueprint.check.silence import silenced  # noqa: E402
from tests.check.test_fuzz import BOMBS, inputs  # noqa: E402


def check(name: str, data: bytes, pack: SchemaPack) -> set[str]:
    """The codes that one file gives."""
    reading = Reading()
    read_bytes(data, name, reading)
    texts = {name: data.decode("utf-8", "replace")}
    manifests = [*reading.manifests, *reading.aside]
    judged = patched(validate(manifests, pack, tree_rules=tree_rules()).findings, manifests)
    findings, _ = silenced(located([*reading.findings, *judged], texts), texts, texts.get)
    return {finding.code for finding in findings}


def main() -> int:
    """Run them, and print one line with the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    pack = SchemaPack.shipped()
    codes: Counter[str] = Counter()
    slowest, started, failed = (0.0, ""), time.process_time(), 0
    files = [*((f"{name}.yaml", text.encode()) for name, text in BOMBS.items()), *inputs(asked.seed, asked.files)]
    for name, data in files:
        begin = time.process_time()
        try:
            codes.update(check(name, data, pack))
        except Exception:
            failed += 1
            print(f"{name} of seed {asked.seed}:\n{traceback.format_exc(limit=-4)}", file=sys.stderr)
        slowest = max(slowest, (time.process_time() - begin, name))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{len(files):,} files, {failed} exceptions, {len(codes)} codes, {time.process_time() - started:.0f} s of CPU, "
        f"slowest {slowest[0]:.2f} s ({slowest[1]}), peak {peak} MiB"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
