"""The ledger: proofs of Merkle trees, replays, and a log that tells two stories."""

from __future__ import annotations

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.attest.bundle import Proof
from blueprint.attest.growth import Log, _numbered
from blueprint.attest.ledger import Ledger
from blueprint.attest.merkle import is_beginning, root_from
from blueprint.attest.order import in_order
from blueprint.attest.refusal import Refused
from blueprint.attest.sign import WithKey, signed
from blueprint.attest.statement import RENDER, Rendered, render_statement, statement
from blueprint.errors import EnvironmentLacks, UsageError
from tests.attest.sigstore.merkle import Tree
from tests.attest.sigstore.pki import new_key
from tests.attest.sigstore.rekor import RekorV2
from tests.attest.world import MADE, Office


def _tree(size: int) -> Tree:
    tree = Tree()
    for number in range(size - 1):
        tree.add(str(number).encode())
    return tree


@given(st.integers(1, 70), st.data())
def test_inclusion(size: int, data: st.DataObject) -> None:
    tree = _tree(size)
    index = data.draw(st.integers(0, size - 1))
    path, root = tree.inclusion(index), tree.root()
    assert root_from(tree.leaves[index], index, size, path) == root
    assert root_from(b"\0" * 32, index, size, path) != root
    for other in {index - 1, index + 1} & set(range(size)):
        assert root_from(tree.leaves[index], other, size, path) != root
    assert root_from(tree.leaves[index], index, size, [*path, b"\0" * 32]) is None
    if path:
        assert root_from(tree.leaves[index], index, size, path[:-1]) != root
    assert root_from(tree.leaves[index], size, size, path) is None


@given(st.integers(1, 70), st.data())
def test_consistency(size: int, data: st.DataObject) -> None:
    tree = _tree(size)
    old = data.draw(st.integers(1, size))
    first, second, path = tree.root(old), tree.root(), tree.consistency(old)
    assert is_beginning(old, first, size, second, path)
    other = b"\1" * 32
    assert not is_beginning(old, other, size, second, path)
    assert not is_beginning(old, first, size, other, path)
    assert not is_beginning(old, first, size, second, [*path, other])
    if path:
        assert not is_beginning(old, first, size, second, path[:-1])
    if old < size:
        assert not is_beginning(size, second, old, first, path)


def _sign(office: Office, number: int) -> bytes:
    return office.sign(statement(f"{number:064x}", RENDER, {}))


def _take(ledger: Ledger, office: Office, *bundles: bytes) -> list[str]:
    for data in bundles:
        ledger.take(data, office.prover().prove(data))
    return [finding.code for finding in ledger.findings()]


@pytest.fixture
def log(office: Office) -> RekorV2:
    """The office's log; a test that replaces its tree gets it back."""
    tree = office.store.rekor2.tree
    try:
        yield office.store.rekor2  # type: ignore[misc]
    finally:
        office.store.rekor2.tree = tree


def test_an_honest_log_is_silent(tmp_path: Path, office: Office, log: RekorV2) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    for number in range(12):
        log.tree.add(b"somebody else's")
        assert _take(ledger, office, _sign(office, number)) == []
        ledger.save(["lab"], number + 1, "")
    again = Ledger.open(tmp_path / "ledger")
    assert again.findings() == []
    assert again.highest == {("lab",): (12, "")}
    assert len(again.entries) == 12
    sizes = sorted(int(file.stem) for file in (tmp_path / "ledger" / "checkpoints" / log.id.hex()).iterdir())
    assert sizes == [entry.size for entry in again.entries]


@pytest.mark.parametrize("before", range(1, 9))
def test_a_forked_log_shows(tmp_path: Path, office: Office, log: RekorV2, before: int) -> None:
    """The log shows us one history, and later another: the entry that we hold is not in it."""
    ledger = Ledger.open(tmp_path)
    kept = [_sign(office, number) for number in range(before)]
    assert _take(ledger, office, *kept) == []
    forked = Tree()
    for number in range(len(log.tree.leaves) - 1):
        forked.add(f"other {number}".encode())
    log.tree = forked
    assert "SIG302" in _take(ledger, office, _sign(office, 99))


@pytest.mark.parametrize("size", [2, 3, 7, 8, 255, 256, 257, 300, 511, 512, 513, 700])
def test_a_log_of_tiles_proves_that_it_grew(office: Office, log: RekorV2, size: int) -> None:
    """Computed from the log's tiles, the partial ones too; and a proof of another history proves nothing."""
    log.tree = _tree(size)
    for old in sorted({1, 2, size // 3, size // 2, size - 1} & set(range(1, size))):
        path = Log(office.store.url, size).proof(old)
        assert path == log.tree.consistency(old)
        assert is_beginning(old, log.tree.root(old), size, log.tree.root(), path)
        assert not is_beginning(old, b"\1" * 32, size, log.tree.root(), path)
    assert Log(office.store.url, size).proof(size) == []


def test_numbers_of_tiles_are_spelt_in_threes() -> None:
    spelt = {0: "000", 5: "005", 999: "999", 1000: "x001/000", 1234067: "x001/x234/067"}
    assert {number: _numbered(number) for number in spelt} == spelt


def test_a_log_of_the_first_generation_proves_that_it_grew(tmp_path: Path, office: Office) -> None:
    ledger = Ledger.open(tmp_path)
    for number in range(3):
        _take(ledger, office, office.sign(statement(f"{number:064x}", RENDER, {}), rekor=1))
    assert ledger.gaps()
    for old, new in ledger.gaps():
        assert new.shard == "1234567890"
        ledger.learn(old, new, Log(office.store.url, new.size, new.shard).proof(old.size))
    assert ledger.findings() == ledger.gaps() == []
    ledger.save(["lab"], 1, "")
    again = Ledger.open(tmp_path)
    assert again.findings() == again.gaps() == []


def test_a_log_that_does_not_answer_proves_nothing(office: Office, log: RekorV2) -> None:
    log.tree = _tree(5)
    for asked in (Log(office.store.url, 900), Log(f"{office.store.url}/elsewhere", 5), Log("http://127.0.0.1:9", 5)):
        with pytest.raises(EnvironmentLacks, match="log"):
            asked.proof(3)


@pytest.mark.parametrize("gap", [1, 2, 3, 5, 11])
def test_every_fork_shows_where_the_log_is_asked(tmp_path: Path, office: Office, log: RekorV2, gap: int) -> None:
    """Whatever the sizes are: here the proofs of inclusion need not have anything in common."""
    ledger = Ledger.open(tmp_path)
    _take(ledger, office, _sign(office, 1))
    forked = Tree()
    for number in range(len(log.tree.leaves) + gap):
        forked.add(f"other {number}".encode())
    log.tree = forked
    _take(ledger, office, _sign(office, 2))
    for old, new in ledger.gaps():
        ledger.learn(old, new, Log(office.store.url, new.size).proof(old.size))
    assert "SIG302" in {finding.code for finding in ledger.findings()}


def test_two_trees_of_one_size(tmp_path: Path, office: Office, log: RekorV2) -> None:
    ledger = Ledger.open(tmp_path)
    honest = copy.deepcopy(log.tree)
    first = _sign(office, 1)
    log.tree = honest
    second = _sign(office, 2)
    assert _take(ledger, office, first) == []
    assert "SIG302" in _take(ledger, office, second)


def test_nothing_is_kept_before_it_is_saved(tmp_path: Path, office: Office) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    _take(ledger, office, _sign(office, 1))
    assert not (tmp_path / "ledger").exists()


def test_ledgers_that_are_open_at_once_lose_nothing(tmp_path: Path) -> None:
    first, second, third = (Ledger.open(tmp_path) for _ in range(3))
    first.save(["prod-a"], 8, "new")
    second.save(["prod-a"], 7, "old")
    third.save(["prod-b"], 3, "other")
    assert Ledger.open(tmp_path).highest == {("prod-a",): (8, "new"), ("prod-b",): (3, "other")}
    assert second.highest["prod-a",] == (8, "new")


def test_verifiers_at_once_lose_nothing(tmp_path: Path) -> None:
    def keep(number: int) -> None:
        Ledger.open(tmp_path).save([f"cluster-{number % 4}"], number, str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(1, 81)))
    assert {name: row[0] for (name,), row in Ledger.open(tmp_path).highest.items()} == {
        "cluster-0": 80,
        "cluster-1": 77,
        "cluster-2": 78,
        "cluster-3": 79,
    }


def test_a_bundle_that_was_changed_in_the_ledger(tmp_path: Path, office: Office) -> None:
    ledger = Ledger.open(tmp_path)
    _take(ledger, office, _sign(office, 1))
    ledger.save(["lab"], 1, "")
    (file,) = (tmp_path / "bundles").iterdir()
    document = json.loads(file.read_bytes())
    document["verificationMaterial"]["tlogEntries"][0]["canonicalizedBody"] = "e30="
    changed = json.dumps(document).encode()
    file.write_bytes(changed)
    with pytest.raises(UsageError, match="not the bundle that was kept"):
        Ledger.open(tmp_path)
    file.rename(file.with_name(f"{sha256(changed).hexdigest()}.sigstore.json"))
    assert "SIG301" in {finding.code for finding in Ledger.open(tmp_path).findings()}


DAMAGED = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "another schema": b'{"schema": 3, "highest": []}',
    "no rows": b'{"schema": 2}',
    "a row without a sequence": b'{"schema": 2, "highest": [{"clusters": ["lab"], "digest": ""}]}',
    "a sequence that is a text": b'{"schema": 2, "highest": [{"clusters": ["lab"], "sequence": "7", "digest": ""}]}',
    "a sequence below nothing": b'{"schema": 2, "highest": [{"clusters": ["lab"], "sequence": -1, "digest": ""}]}',
    "no clusters": b'{"schema": 2, "highest": [{"clusters": null, "sequence": 7, "digest": ""}]}',
    "rows of nothing": b'{"highest": null}',
    "no UTF-8": b'{"schema": 2, "highest": "\xff"}',
    "a nest": b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_ledger_is_told_in_words_by_reading_and_by_saving(tmp_path: Path, name: str) -> None:
    """Damaged before it is opened, and between opening and saving; what is there is left as it is."""
    file, opened = tmp_path / "ledger.json", Ledger.open(tmp_path)
    file.write_bytes(DAMAGED[name])
    with pytest.raises(UsageError, match="damaged"):
        Ledger.open(tmp_path)
    with pytest.raises(UsageError, match="damaged"):
        opened.save(["lab"], 9, "")
    assert file.read_bytes() == DAMAGED[name]
    file.write_bytes(b'{"schema": 2, "highest": [{"clusters": ["lab"], "sequence": 7, "digest": "d"}]}')
    assert Ledger.open(tmp_path).highest == {("lab",): (7, "d")}
    opened.save(["lab"], 9, "")
    assert Ledger.open(tmp_path).highest == {("lab",): (9, "")}


def test_a_ledger_whose_numbers_are_gone_is_damaged(tmp_path: Path, office: Office) -> None:
    """Taking one file away would let every older tree pass."""
    ledger = Ledger.open(tmp_path)
    _take(ledger, office, _sign(office, 1))
    ledger.save(["lab"], 1, "")
    kept = (tmp_path / "ledger.json").read_bytes()
    (tmp_path / "ledger.json").unlink()
    with pytest.raises(UsageError, match=r"ledger\.json is gone"):
        Ledger.open(tmp_path)
    (tmp_path / "ledger.json").mkdir()
    with pytest.raises(UsageError, match="damaged"):
        Ledger.open(tmp_path)
    (tmp_path / "ledger.json").rmdir()
    (tmp_path / "ledger.json").write_bytes(kept)
    assert Ledger.open(tmp_path).findings() == []


@pytest.mark.parametrize("key", [False, True])
def test_older_numbers_beside_newer_bundles_are_damage(tmp_path: Path, office: Office, key: bool) -> None:
    """Whoever puts an older ledger.json back would let the tree of its time pass again."""

    def sign(sequence: int, clusters: str) -> tuple[bytes, Proof]:
        signer = WithKey(new_key()) if key else office.signer()
        return signed(render_statement(Rendered((), dict.fromkeys(clusters, MADE), sequence)), signer)

    files = []
    for sequence, clusters in ((4, "ab"), (5, "ab"), (2, "c"), (6, "a")):
        ledger = Ledger.open(tmp_path)
        ledger.take(*sign(sequence, clusters))
        ledger.save(clusters, sequence, "")
        files.append((tmp_path / "ledger.json").read_bytes())
    assert Ledger.open(tmp_path).highest == {("a", "b"): (5, ""), ("c",): (2, ""), ("a",): (6, "")}
    for older in files[:-1]:
        (tmp_path / "ledger.json").write_bytes(older)
        with pytest.raises(UsageError, match="knows older trees only"):
            Ledger.open(tmp_path)
    (tmp_path / "ledger.json").write_bytes(b'{"highest": {"all": [6, "x"]}}')
    assert Ledger.open(tmp_path).highest == {("*",): (6, "")}, "a ledger of the first form is none that was changed"


def test_a_checkpoint_outlasts_the_bundle_that_brought_it(tmp_path: Path, office: Office, log: RekorV2) -> None:
    """Who takes a bundle out of the ledger does not take what the log signed: another tree of the size shows."""
    honest = copy.deepcopy(log.tree)
    ledger = Ledger.open(tmp_path)
    _take(ledger, office, _sign(office, 1))
    ledger.save(["lab"], 1, "")
    (bundle,) = (tmp_path / "bundles").iterdir()
    bundle.unlink()
    log.tree = honest
    again = Ledger.open(tmp_path)
    assert _take(again, office, _sign(office, 2)) == ["SIG302"]
    (checkpoint,) = (tmp_path / "checkpoints" / log.id.hex()).iterdir()
    checkpoint.write_text("cut")
    assert "SIG301" in {finding.code for finding in Ledger.open(tmp_path).findings()}


# --- the order of trees


SEEN = {("a", "b"): (8, "whole"), ("c",): (5, "other")}


@pytest.mark.parametrize(
    ("seen", "clusters", "sequence", "digest", "refused"),
    [
        (SEEN, "ab", 7, "older", True),
        (SEEN, "a", 7, "the part of a, older", True),
        (SEEN, "b", 7, "the part of b, older", True),
        (SEEN, "abc", 7, "older for two of three", True),
        (SEEN, "ab", 8, "another", True),
        (SEEN, "", 3, "a tree of no cluster", True),
        (SEEN, "ab", 8, "whole", False),
        (SEEN, "a", 8, "the part of a", False),
        (SEEN, "ab", 9, "newer", False),
        (SEEN, "c", 5, "other", False),
        (SEEN, "c", 7, "newer, on a branch of its own", False),
        (SEEN, "d", 1, "nobody saw it", False),
        ({}, "a", 1, "the first", False),
        ({("*",): (8, "")}, "d", 7, "what an older ledger kept of any", True),
        ({("*",): (8, "")}, "d", 8, "the same", False),
    ],
)
def test_what_was_seen_of_a_cluster_holds_for_every_tree_of_it(
    seen: dict[tuple[str, ...], tuple[int, str]], clusters: str, sequence: int, digest: str, refused: bool
) -> None:
    with pytest.raises(Refused, match="was seen before") if refused else nullcontext():
        in_order(seen, tuple(clusters), sequence, digest)


def test_a_ledger_of_the_first_form_keeps_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text('{"highest": {"all": [6, "x"], "prod-a": [8, "y"]}}')
    ledger = Ledger.open(tmp_path)
    assert ledger.highest == {("*",): (6, ""), ("prod-a",): (8, "")}
    ledger.save(["prod-a", "prod-b"], 9, "z")
    assert Ledger.open(tmp_path).highest == ledger.highest


def test_consistency_proofs_are_held_to_the_checkpoints(tmp_path: Path, office: Office, log: RekorV2) -> None:
    ledger = Ledger.open(tmp_path)
    for number in range(3):
        _take(ledger, office, _sign(office, number))
        log.tree.add(b"somebody else's")
    ledger.save(["lab"], 1, "")
    whole = log.tree
    folder = tmp_path / "consistency" / log.id.hex()
    folder.mkdir(parents=True)
    sizes = [entry.size for entry in ledger.entries]
    for old, new in pairwise(sizes):
        tree = Tree()
        tree.leaves = whole.leaves[:new]
        (folder / f"{old}-{new}.json").write_text(json.dumps([step.hex() for step in tree.consistency(old)]))
    assert ledger.findings() == []
    (folder / f"{sizes[0]}-{sizes[1]}.json").write_text(json.dumps(["00" * 32]))
    assert [finding.code for finding in ledger.findings()] == ["SIG302"]
