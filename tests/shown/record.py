"""Type the sessions of rules again, and write down what they say: `python -m tests.shown.record CODE…`.

A session that is written as its commands alone gets its answers. What comes out is to be read as any other change.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from pathlib import Path

from blueprint.catalog import rules as catalog
from tests.attest.sigstore import Sigstore
from tests.attest.world import Office
from tests.shown.sessions import play
from tests.shown.stages import Stages

DATA = Path(catalog.__file__).parent / "data" / "rules"
STAGES = ("platform", "tree", "signed", "evidence", "shell")
_ROW = re.compile(r"^- code: (\w+)\n(?:(?!- code).*\n)*", re.MULTILINE)
_PART = re.compile(r"^  (bad|good|near): \|\n((?:    .*\n|\n)+)", re.MULTILINE)


def record(codes: list[str], stages: Stages, folder: Path) -> None:
    """Write the answers of the rules whose code begins with one of `codes`."""
    for path in sorted(DATA.glob("*.yaml")):
        old = path.read_text()
        new = _ROW.sub(lambda match: _row(match, codes, stages, folder), old)
        if new != old:
            path.write_text(new)


def _row(match: re.Match[str], codes: list[str], stages: Stages, folder: Path) -> str:
    form = re.search(r"^  form: (\w+)$", match[0], re.MULTILINE)
    if form is None or form[1] not in STAGES or not match[1].startswith(tuple(codes)):
        return match[0]

    def part(found: re.Match[str]) -> str:
        said = play(textwrap.dedent(found[2]), stages.make(form[1], folder / f"{match[1]}-{found[1]}"))
        sys.stdout.write(f"--- {match[1]} {found[1]}\n{said}")
        return f"  {found[1]}: |\n{textwrap.indent(said, '    ')}"

    return _PART.sub(part, match[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, Sigstore.running() as store, Sigstore.running() as other:
        here = Path(place)
        (here / "made").mkdir()
        with Stages.running(here / "made", Office(store), Office(other)) as running:
            record(sys.argv[1:], running, here)
