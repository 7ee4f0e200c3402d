"""Anything at all ends in findings: mutated and random files, bombs, and files far too large.

BLUEPRINT_FUZZ says how many files (10,000 take some minutes); without it there are few.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from blueprint.catalog.rules import rules
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.documents import MAX_EXACT, load_yaml
from blueprint.check.locate import located
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.patches import patched
from blueprint.check.read import read
from blueprint.check.scalars import Unreadable
from blueprint.check.silence import silenced
from blueprint.finding import Report
from blueprint.report import Totals
from blueprint.report.formats import NAMES, written

FILES = int(os.environ.get("BLUEPRINT_FUZZ", "400"))
BATCH = 40
ROOT = Path(__file__).parents[2]
PACK = SchemaPack.shipped()

TEMPLATE = """\
{{- if .Values.on }}
# blueprint: ignore NAM101, SCH because
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "x" . }}, labels: {{- toYaml .Values.labels | nindent 4 }}
spec:
  replicas: ${REPLICAS}
  template: {spec: {containers: [{name: "<name>", image: "{{ .Values.image }}"}]}}
{{- end }}
"""
TOKENS = [
    b"{{", b"}}", b"{%", b"%}", b"${", b"}", b"{", b"[", b"]", b"---\n", b"...\n", b"&a ", b"*a ", b"<<: ", b"\t",
    b"\r\n", b"!!binary ", b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xee\x80\x80", b"|\n", b">-\n", b"- ", b": ", b"#",
    b"'", b'"', b"null", b"~", b"yes", b"1e999", b"-9223372036854775809", b"0x", b"9" * 400, b"2024-01-01", b".nan",
    b"apiVersion: ", b"kind: List\nitems:\n", b"# blueprint: ignore NAM\n", b"\xf0\x9f\x98\x80", b"\xe2\x80\xa8",
    b"\\ud800", b"9" * 5000, b"a" * 3000,
]  # fmt: skip


def corpus() -> list[bytes]:
    """Files of every sort that the repository has."""
    folders = ("tests/bad/manifests", "tests/bad/specs", "tests/cases", "apps", "clusters", "policies", "actions")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.y*ml"))]
    files += [ROOT / ".pre-commit-hooks.yaml"]
    golden = sorted((ROOT / "tests" / "golden").rglob("*.yaml"))
    files += golden[:: max(len(golden) // 60, 1)]
    shown = [rule.bad.encode() for rule in rules().values() if rule.bad]
    return [TEMPLATE.encode(), *shown, *(path.read_bytes() for path in files)]


def mutated(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """The same with a few things wrong."""
    for _ in range(chance.randint(1, 5)):
        at = chance.randint(0, len(data))
        to = min(at + chance.choice((1, 1, 2, 8, 40, 400)), len(data))
        match chance.randrange(8):
            case 0:
                data = data[:at] + data[to:]
            case 1:
                data = data[:at] + chance.choice(TOKENS) + data[at:]
            case 2:
                data = data[:at] + chance.randbytes(to - at) + data[to:]
            case 3:
                data = data[:to] + data[at:]
            case 4:
                cut = chance.randint(0, len(other))
                data = data[:at] + other[cut : cut + 500] + data[at:]
            case 5:
                lines = data.splitlines(keepends=True)
                chance.shuffle(lines)
                data = b"".join(lines)
            case 6:
                data = data.replace(b"\n", b"\n" + b" " * chance.randint(1, 3), chance.randint(1, 9))
            case _:
                data = data[:at] + chance.choice((b"[", b"{a: ", b"- ", b"  a:\n")) * chance.randint(1, 300) + data[at:]
    return data


def inputs(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files, the same for the same seed."""
    chance = random.Random(seed)
    known = corpus()
    for number in range(count):
        if chance.random() < 0.1:
            data = b"".join(chance.choice(TOKENS) for _ in range(chance.randint(0, 60)))
        else:
            data = mutated(chance.choice(known), chance.choice(known), chance)
        yield f"f{number}{chance.choice(('.yaml', '.yml', '.json'))}", data


@pytest.mark.parametrize("seed", range((FILES + BATCH - 1) // BATCH))
def test_mutated_and_random_files_end_in_findings(seed: int) -> None:
    reading = Reading()
    texts = {}
    for name, data in inputs(seed, BATCH):
        texts[name] = data.decode("utf-8", "replace")
        read_bytes(data, name, reading)
    manifests = [*reading.manifests, *reading.aside]
    judged = patched(validate(manifests, PACK, tree_rules=tree_rules()).findings, manifests)
    findings, _ = silenced(located([*reading.findings, *judged], texts), texts, texts.get)
    report = Report.of(findings)
    assert {finding.code for finding in report.findings} <= rules().keys()
    assert reading.counts.files == BATCH
    for name in NAMES:
        written(name, report, Totals(), rules(), "0").encode()


BOMBS = {
    "laughs": "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "cycle": "a: &a\n  b: &b\n    c: *a\n    d: *b\n",
    "itself": "&a [*a]",
    "merges": "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
    "deep": "[" * 100_000,
    "deeper": '{"a":' * 100_000,
    "dashes": "- " * 100_000,
    "indents": "".join(" " * n + f"a{n}:\n" for n in range(2_000)),
    "anchors": "".join(f"a{n}: &a x\n" for n in range(20_000)),
    "quotes": '"' + "\\" * 100_001,
    "openings": "apiVersion: v1\nkind: Pod\nmetadata: {name: {{" + '{{"\\"' * 50_000,
    "lines": '{"a": 1}\n' * 50_000,
    "number": "a: " + "9" * 100_000,
    "separators": "---\n" * 50_000,
    "comments": "# blueprint: ignore NAM101\n" * 20_000 + "a: 1\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_in_findings(name: str) -> None:
    for file in ("a.yaml", "a.json"):
        reading = Reading()
        read_bytes(BOMBS[name].encode(), file, reading)
        silenced(reading.findings, ["a.yaml"], lambda _: BOMBS[name])
        validate(reading.manifests, PACK)
        assert reading.counts.files == 1


def test_a_document_that_would_take_too_long_is_refused() -> None:
    with pytest.raises(Unreadable, match="8 MiB that are read of one document"):
        load_yaml("a: yes\n" * (MAX_EXACT // 7 + 1))


def test_a_hundred_mebibytes_take_no_memory(tmp_path: Path) -> None:
    """A file of 100 MiB, a sparse one of 100 GiB and all bombs, read by a process of its own."""
    with (tmp_path / "full.yaml").open("wb") as file:
        for _ in range(100):
            file.write(b"a: yes\n" * (2**20 // 7))
    with (tmp_path / "sparse.yaml").open("wb") as file:
        file.truncate(100 * 2**30)
    for name, text in BOMBS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    program = """
        import re, resource, sys
        from pathlib import Path
        from blueprint.check.read import read
        reading = read([sys.argv[1]])
        status = Path("/proc/self/status")
        if status.exists():
            # ru_maxrss would begin with what the process that forked this one had used.
            used = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) // 2**10
        else:
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**20
        print(reading.counts.files, used, *sorted({finding.code for finding in reading.findings}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    files, used, *codes = done.stdout.split()
    assert int(files) == len(BOMBS) + 2
    assert int(used) < 400, "MiB"
    assert {"YML103", "YML107", "YML108"} <= set(codes)


def test_links_that_go_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "c").symlink_to(".")
    assert {finding.code for finding in read([tmp_path], build=True).findings} == {"YML101"}
