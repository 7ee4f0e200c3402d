import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.tree import lock as locks
from blueprint.tree.lock import Lock, Made, Part

from .trees import ZERO, made

ONE = Lock({"prod": Part(made("prod")["prod"], {"prod/a/x.yaml": ZERO})})


def document():
    return json.loads(locks.dump(ONE))


def codes(data):
    lock, findings = locks.parse(data)
    assert (lock == Lock()) == bool(findings)
    return [f.code for f in findings]


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
digests = st.binary(max_size=2).map(locks.digest)


@st.composite
def some_locks(draw):
    parts = {}
    for cluster in draw(st.lists(names, unique=True, max_size=3)):
        files = draw(
            st.dictionaries(st.text("ab-:/\"'é\u3042\U0001f600 ", min_size=1, max_size=6), digests, max_size=4)
        )
        rows = {f"{cluster}/{n}": d for n, d in files.items() if not locks.paths.fault(f"{cluster}/{n}")}
        parts[cluster] = Part(draw(st.builds(Made, st.text(max_size=5), digests, digests, digests)), rows)
    return Lock(parts)


@given(some_locks())
def test_reads_what_it_writes(lock):
    data = locks.dump(lock)
    assert locks.parse(data) == (lock, [])
    assert locks.dump(locks.parse(data)[0]) == data


def test_one_spelling_and_one_line_a_file():
    part = ONE.clusters["prod"]
    more = Lock({"a": Part(part.made, {"a/z": ZERO, "a/b": ZERO}), "prod": part})
    turned = Lock({"prod": part, "a": Part(part.made, {"a/b": ZERO, "a/z": ZERO})})
    assert locks.dump(more) == locks.dump(turned)
    added, removed = set(locks.dump(more).splitlines()), set(locks.dump(ONE).splitlines())
    assert removed < added
    assert sum(b'"a/' in line for line in added) == 2


def test_the_spelling_is_this():
    assert locks.dump(ONE).decode() == (
        f"""{{
  "clusters": {{
    "prod": {{
      "files": {{
        "prod/a/x.yaml": "{ZERO}"
      }},
      "made": {{
        "blueprint": "1.0.0",
        "inputs": "{ZERO}",
        "schemas": "{ZERO}",
        "templates": "{ZERO}"
      }}
    }}
  }},
  "version": 1
}}
"""
    )


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "prod/../../x",
        "prod/a/../../../x",
        "prod/.git/config",
        "prod\\x",
        "other/x",
        "prod",
        "",
        "prod/\ud800",
    ],
)
def test_a_path_that_leaves_the_cluster_makes_the_lock_unusable(path):
    broken = document()
    broken["clusters"]["prod"]["files"][path] = ZERO
    assert codes(json.dumps(broken).encode()) == ["TRE103"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(version=0),
        lambda d: d.update(version="1"),
        lambda d: d.update(version=99),
        lambda d: d.update(extra=1),
        lambda d: d.pop("clusters"),
        lambda d: d.update(clusters=[]),
        lambda d: d["clusters"].update(prod=None),
        lambda d: d["clusters"]["prod"].update(files=[]),
        lambda d: d["clusters"]["prod"].update(extra=1),
        lambda d: d["clusters"]["prod"].update(made="x"),
        lambda d: d["clusters"]["prod"]["made"].pop("inputs"),
        lambda d: d["clusters"]["prod"]["made"].update(inputs=1),
        lambda d: d["clusters"]["prod"]["files"].update({"prod/y": 1}),
        lambda d: d["clusters"]["prod"]["files"].update({"prod/y": "sha256:abc"}),
        lambda d: d["clusters"]["prod"]["files"].update({"prod/y": ZERO + "\n"}),
    ],
)
def test_a_shape_that_we_never_write(change):
    broken = document()
    change(broken)
    assert codes(json.dumps(broken).encode()) == ["TRE102"]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"version": ' + b"1" * 5000 + b"}", b"nul", b"# yaml: yes"]
)
def test_what_is_no_json(data):
    assert codes(data) == ["TRE101"]


@pytest.mark.parametrize("data", [b"null", b"[]", b"1", b'"x"', b"NaN"])
def test_json_that_is_no_lock(data):
    assert codes(data) == ["TRE102"]


def test_the_same_path_twice():
    data = locks.dump(ONE).replace(b'"prod/a/x.yaml"', b'"prod/a/x.yaml": "' + ZERO.encode() + b'", "prod/a/x.yaml"')
    lock, findings = locks.parse(data)
    assert lock == Lock()
    assert [(f.code, f.message) for f in findings] == [("TRE104", "the lock names 'prod/a/x.yaml' twice")]


def test_a_merge_conflict_is_called_one_and_placed():
    lines = locks.dump(ONE).splitlines(keepends=True)
    data = b"".join([*lines[:4], b"<<<<<<< HEAD\n", lines[4], b"=======\n", lines[4], b">>>>>>> main\n", *lines[5:]])
    _, (finding,) = locks.parse(data, "rendered/blueprint.lock")
    assert (finding.code, str(finding.source)) == ("TRE101", "rendered/blueprint.lock:5")
    assert "merge conflict" in finding.message


def test_a_huge_lock_is_not_parsed():
    assert codes(b" " * (locks.LARGEST + 1)) == ["TRE101"]


def test_a_hostile_lock_does_not_flood():
    broken = document()
    broken["clusters"]["prod"]["files"] = {f"../{n}": ZERO for n in range(10_000)}
    assert len(codes(json.dumps(broken).encode())) == 20


def test_a_line_number_for_broken_json():
    _, (finding,) = locks.parse(b'{\n "version": 1,,\n}')
    assert str(finding.source) == "blueprint.lock:2:15"


@given(st.binary(max_size=200))
def test_never_raises(data):
    locks.parse(data)
