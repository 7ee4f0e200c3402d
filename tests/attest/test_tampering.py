"""The tamper matrix: whatever is done to a signed tree is refused, and for the reason that it should be."""

from __future__ import annotations

import copy
import re
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.attest.verify import Demands, verify
from blueprint.catalog.rules import rules
from tests.attest.forgers import Forgers
from tests.attest.forgery import OPERATIONS, Scene
from tests.attest.test_credential import BROKEN
from tests.attest.world import Office, listing

ROWS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "tampering.yaml").read_text("utf-8"))


@pytest.fixture(scope="session")
def forgers(signed_tree: Path, office: Office, foreign: Office, tmp_path_factory: pytest.TempPathFactory) -> Forgers:
    return Forgers(signed_tree, office, foreign, tmp_path_factory.mktemp("forgers"))


def demands(scene: Scene) -> Demands:
    """What the verifier asks for; by default no more than a signature that is not a year old."""
    now = datetime.now(UTC) + scene.demands.pop("now_plus", timedelta(0))
    return Demands(max_age=timedelta(days=365), now=now, **scene.demands)


@pytest.mark.parametrize("row", ROWS, ids=[row["attack"] for row in ROWS])
def test_refused(row: dict[str, Any], tree: Path, office: Office, forgers: Forgers) -> None:
    scene = Scene(tree, forgers)
    twin = verify(listing(tree), office.prover(), demands(scene))
    assert twin.findings == (), "the tree before the attack"
    scene.run(copy.deepcopy(row["do"]))
    verdict = verify(listing(tree), office.prover(), demands(scene))
    codes = [finding.code for finding in verdict.findings]
    assert any(re.fullmatch(row["code"], code) for code in codes), verdict.findings
    if any(code.startswith("SIG1") for code in codes) and "part" not in row["do"]:
        # Nothing about files is said where the signature does not hold.
        assert len(codes) == 1
        assert verdict.rendered is None


def test_the_untouched_twin_passes(tree: Path, office: Office, forgers: Forgers) -> None:
    for asked in (
        Demands(),
        Demands(max_age=timedelta(hours=1), after=7, cluster="prod-a"),
        Demands(after=7, after_digest=forgers.what.digest, cluster="prod-b"),
    ):
        verdict = verify(listing(tree), office.prover(), asked)
        assert verdict.findings == ()
        assert verdict.rendered == forgers.what


def test_a_credential_beside_the_tree_is_no_stranger(tree: Path, office: Office, forgers: Forgers) -> None:
    scene = Scene(tree, forgers)
    scene.run({"credential": "prod-a"})
    assert verify(listing(tree), office.prover()).findings == ()


def test_a_part_beside_the_whole_harms_nothing(tree: Path, office: Office, forgers: Forgers) -> None:
    """Signed by the same, with the same number, over its own files: what every forged part of the matrix is not."""
    scene = Scene(tree, forgers)
    scene.run({"part": "as it should be"})
    scene.run({"seen": {"prod-a": 7, "prod-z": 9}})
    assert verify(listing(tree), office.prover(), demands(scene)).findings == ()


def test_each_swap_has_a_twin_that_is_valid(tree: Path, office: Office, forgers: Forgers, tmp_path: Path) -> None:
    """The bundles that parts are swapped from verify by themselves: it is the mixture that is refused."""
    scene = Scene(tree, forgers)
    scene.run({"older": {}})
    assert verify(listing(tree), office.prover()).holds


def test_verifying_asks_nobody(tree: Path, office: Office) -> None:
    before = len(office.store.requests)
    assert verify(listing(tree), office.prover()).holds
    assert len(office.store.requests) == before


#: Kinds of attacks that must be in the matrix, each by one of its rows.
KINDS = {
    "bytes": "raise a limit by one byte of a manifest",
    "files": "add a manifest to an application",
    "modes": "make a manifest executable",
    "links": "replace a file by a link out of the tree",
    "names": "add a twin by case",
    "parts swapped between two valid bundles": "take the other bundle's log entry",
    "another signer": "sign by another identity",
    "another issuer": "sign for another issuer",
    "expired": "use a certificate that had expired",
    "too new": "stamp it in the future",
    "foreign root": "sign by a Sigstore of one's own",
    "missing time stamp": "strip the time stamp",
    "stripped log entry": "strip the log entry",
    "replayed older tree": "put the whole of an older signed tree in place",
    "other cluster": "deploy it to a cluster that it is not for",
    "other predicate": "sign another predicate",
    "two subjects": "sign two subjects, one of them this",
    "list swapped": "sign this digest with another list",
    "signatures' folder as a path": "take the signatures' folder as an Application's path",
}
#: Those of a deployment, among the broken worlds of the credential.
WORLDS = {
    "policy off": "a policy in audit mode that claims to deny",
    "policy narrowed": "a policy that a condition keeps from judging",
    "report stale": "a report from before the policy changed",
    "backup partial": "a backup that is partial",
}
"""Tags and unsigned containers are refused by the engines: tests/conformance/test_image_gate_live.py."""


def test_the_matrix_is_wide() -> None:
    assert len(ROWS) >= 180
    assert set(KINDS.values()) <= {row["attack"] for row in ROWS}
    assert set(WORLDS.values()) <= BROKEN.keys()
    assert [name for name, count in Counter(row["attack"] for row in ROWS).items() if count > 1] == []
    assert {name for row in ROWS for name in row["do"]} == set(OPERATIONS)
    reached = {code for code in rules() for row in ROWS if re.fullmatch(row["code"], code)}
    assert reached >= {f"SIG{number}" for number in (*range(101, 113), *range(201, 209))}


def test_a_link_is_not_followed(tree: Path, office: Office, tmp_path: Path) -> None:
    """The same bytes behind a link are refused: tomorrow they are others."""
    file = tree / "prod-a/chat/service-chat.yaml"
    shutil.move(file, tmp_path / "elsewhere.yaml")
    file.symlink_to(tmp_path / "elsewhere.yaml")
    verdict = verify(listing(tree), office.prover())
    assert [finding.code for finding in verdict.findings] == ["SIG205"]
