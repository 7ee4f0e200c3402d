"""The deployment credential: given for a sound world, refused for each broken one with its reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from blueprint.attest import credential as credentials
from blueprint.attest.bundle import ByKey, Proof
from blueprint.attest.credential import Asked, Cluster, credential_statement, verify_credential
from blueprint.attest.evidence import World, moment
from blueprint.attest.refusal import Refused
from blueprint.attest.sign import WithKey
from blueprint.attest.verify import verify
from tests.attest.deployment import BACKUP, NOW, UID, VALIDATING, Deployment, ago, as_seen, seconds
from tests.attest.world import MALLORY, RENDERER, Office, listing


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "store")


def codes(world: World) -> list[str]:
    return [refused.code for refused in world.refusals]


def test_a_sound_world_is_not_refused(deployment: Deployment) -> None:
    world, policies, backup = deployment.judge()
    assert [refused.message for refused in world.refusals] == []
    assert policies.document["pass"] == 1
    assert {row["name"] for row in policies.document["policies"]} == {
        "images-by-digest",
        "signed-images",
        "no-token-secrets",
        "tenant-bindings",
    }
    assert backup.document["level"] == "store"
    assert {row["key"].rpartition("/")[2] for row in backup.document["objects"]} >= {
        f"{BACKUP}.tar.gz",
        f"{BACKUP}-volumeinfo.json.gz",
        "velero-backup.json",
    }


def test_hashes_follow_decisions_and_bytes_but_not_times(tmp_path: Path) -> None:
    _, first, kept = Deployment(tmp_path / "a").judge()
    later = Deployment(tmp_path / "b")
    later.objects["report"]["results"][0]["timestamp"] = seconds(minutes=9)
    later.objects["report"]["metadata"] = {"name": "another-uid", "namespace": "team-a", "resourceVersion": "7"}
    assert later.judge()[1].sha256 == first.sha256
    other = Deployment(tmp_path / "c")
    other.objects["report"]["results"][0]["message"] = "something else"
    assert other.judge()[1].sha256 != first.sha256
    fuller = Deployment(tmp_path / "d")
    fuller.members.append("resources/pods/namespaces/team-a/chat-1.json")
    assert fuller.judge()[2].sha256 != kept.sha256


Change = Callable[[Deployment], Any]


def _set(name: str, *path: Any) -> Change:
    """Set a field of an object: the last of `path` is the value."""

    def change(deployment: Deployment) -> None:
        holder: Any = deployment.objects[name]
        *steps, key, value = path
        for step in steps:
            holder = holder[step]
        holder[key] = value

    return change


def _drop(name: str) -> Change:
    return lambda deployment: deployment.objects.pop(name)


def _store(attribute: str, value: Any) -> Change:
    return lambda deployment: setattr(deployment, attribute, value)


EXCEPTION = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "PolicyException",
    "metadata": {"name": "mine", "namespace": "kyverno"},
    "spec": {"policyRefs": [{"kind": "ValidatingPolicy", "name": "images-by-digest"}]},
}

BROKEN: dict[str, tuple[Change, str]] = {
    "no report at all": (_drop("report"), "CRE101"),
    "a report without results": (_set("report", "results", []), "CRE101"),
    "a tree without policies": (_store("tree", []), "CRE101"),
    "a report of yesterday": (_set("report", "results", 0, "timestamp", seconds(hours=24)), "CRE102"),
    "a report from before the policy changed": (
        _set("validating", "metadata", "managedFields", [{"manager": "argocd", "time": ago(minutes=1)}]),
        "CRE102",
    ),
    "one result of yesterday among new ones": (
        lambda deployment: deployment.objects["report"]["results"].append(
            deployment.objects["report"]["results"][0] | {"rule": "left behind", "timestamp": seconds(hours=24)}
        ),
        "CRE102",
    ),
    "an audit of Gatekeeper of yesterday": (_set("constraint", "status", "auditTimestamp", ago(hours=24)), "CRE102"),
    "a pod that fails": (_set("report", "results", 0, "result", "fail"), "CRE103"),
    "a policy that cannot be evaluated": (_set("report", "results", 0, "result", "error"), "CRE103"),
    "a constraint with violations": (_set("constraint", "status", "totalViolations", 2), "CRE103"),
    "a policy in audit mode that claims to deny": (
        _set("validating", "spec", "validationActions", ["Audit"]),
        "CRE104",
    ),
    "an image gate in audit mode": (_set("gate", "spec", "validationActions", ["Audit"]), "CRE104"),
    "a constraint in dry run": (_set("constraint", "spec", "enforcementAction", "dryrun"), "CRE104"),
    "a policy that was removed": (_drop("validating"), "CRE105"),
    "a binding that was removed": (_drop("native"), "CRE105"),
    "a policy with another rule": (_set("validating", "spec", "validations", [{"expression": "false"}]), "CRE105"),
    "a policy that a condition keeps from judging": (
        _set("validating", "spec", "matchConditions", [{"name": "never", "expression": "false"}]),
        "CRE105",
    ),
    "a constraint that leaves a namespace out": (
        _set("constraint", "spec", "match", "excludedNamespaces", ["team-a"]),
        "CRE105",
    ),
    "a binding that reaches one namespace only": (
        _set("native", "spec", "matchResources", {"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        "CRE105",
    ),
    "an exception that Git does not hold": (
        lambda deployment: deployment.objects.update(exception=EXCEPTION),
        "CRE105",
    ),
    "a failure that is only a warning": (_set("report", "results", 0, "result", "warn"), "CRE103"),
    "a result without a name": (_set("report", "results", 0, "result", ""), "CRE103"),
    "a report about a tenant's policy of the same name": (
        _set("report", "results", 0, "policy", "team-a/images-by-digest"),
        "CRE101",
    ),
    "a report of another engine's policy of the same name": (
        _set("report", "results", 0, "source", "ValidatingAdmissionPolicy"),
        "CRE101",
    ),
    "a report about a policy of somebody else": (_set("report", "results", 0, "policy", "other"), "CRE106"),
    "no reports controller": (_set("reports", "status", {}), "CRE107"),
    "a report without a time": (_set("report", "results", 0, "timestamp", None), "CRE108"),
    "a report of the future": (_set("report", "results", 0, "timestamp", seconds(hours=-2)), "CRE108"),
    "no backup": (_drop("backup"), "CRE201"),
    "a backup that a tenant made": (_set("backup", "metadata", "namespace", "team-a"), "CRE201"),
    "an upload that a tenant made": (_set("upload", "metadata", "namespace", "team-b"), "CRE204"),
    "a backup that failed": (_set("backup", "status", "phase", "Failed"), "CRE201"),
    "a backup that is partial": (_set("backup", "status", "phase", "PartiallyFailed"), "CRE201"),
    "a backup that is under way": (_set("backup", "status", "phase", "InProgress"), "CRE201"),
    "a snapshot that is missing": (_set("backup", "status", "csiVolumeSnapshotsAttempted", 2), "CRE202"),
    "a backup with errors": (_set("backup", "status", "errors", 1), "CRE202"),
    "an operation that failed": (_set("backup", "status", "backupItemOperationsFailed", 1), "CRE202"),
    "a backup with fewer items": (_set("backup", "status", "progress", "itemsBackedUp", 2), "CRE202"),
    "an empty backup": (_set("backup", "status", "progress", {}), "CRE203"),
    "a backup that lists nothing": (_store("resources", {}), "CRE203"),
    "a backup whose archive is empty": (_store("members", ["metadata/version"]), "CRE203"),
    "a backup of metadata": (_store("volumes", []), "CRE204"),
    "a volume that was skipped": (
        _store("volumes", [{"pvcName": "models", "pvcNamespace": "team-a", "skipped": True}]),
        "CRE204",
    ),
    "an upload that is missing": (_drop("upload"), "CRE204"),
    "a store that is not available": (_set("location", "status", "phase", "Unavailable"), "CRE205"),
    "a store that nobody looked at": (_set("location", "status", "lastValidationTime", ago(hours=9)), "CRE205"),
    "a store that is not there": (_drop("location"), "CRE205"),
    "an archive that is not in the store": (_store("lost", [f"{BACKUP}.tar.gz"]), "CRE206"),
    "copies of volumes that the store does not tell of": (
        _store("lost", [f"{BACKUP}-podvolumebackups.json.gz"]),
        "CRE206",
    ),
    "volume information that is not in the store": (_store("lost", [f"{BACKUP}-volumeinfo.json.gz"]), "CRE206"),
    "another backup of the name": (_store("kept", {"metadata.uid": "older-uid"}), "CRE206"),
    "a backup of last week": (_set("backup", "status", "completionTimestamp", ago(days=7)), "CRE207"),
    "a backup that expired": (_set("backup", "status", "expiration", ago(minutes=1)), "CRE207"),
    "a backup of the future": (_set("backup", "status", "completionTimestamp", ago(hours=-3)), "CRE207"),
    "a backup without a time": (_set("backup", "status", "completionTimestamp", None), "CRE207"),
    "a volume that failed": (
        _store("volumes", [{"pvcName": "models", "pvcNamespace": "team-a", "result": "failed"}]),
        "CRE208",
    ),
    "an upload that was cut": (_set("upload", "status", "progress", "bytesDone", 4000), "CRE208"),
    "an upload that failed": (_set("upload", "status", "phase", "Failed"), "CRE208"),
    "a namespace that is left out": (_set("backup", "spec", "excludedNamespaces", ["team-a"]), "CRE209"),
    "a namespace that is not named": (_set("backup", "spec", "includedNamespaces", ["team-b"]), "CRE209"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_world_is_refused_for_its_reason(deployment: Deployment, name: str, tmp_path: Path) -> None:
    change, code = BROKEN[name]
    assert codes(Deployment(tmp_path / "twin").judge()[0]) == [], "the world before it is broken"
    change(deployment)
    world, _, _ = deployment.judge()
    assert code in codes(world), [refused.message for refused in world.refusals]


def test_broken_archives(tmp_path: Path) -> None:
    for number, (name, data) in enumerate(
        (
            (f"{BACKUP}.tar.gz", b"\x1f\x8b cut"),
            (f"{BACKUP}-volumeinfo.json.gz", b"{"),
            (f"{BACKUP}-podvolumebackups.json.gz", b"{"),
            (f"{BACKUP}-podvolumebackups.json.gz", gzip.compress(b"[]")),
            ("velero-backup.json", b"{"),
        )
    ):
        deployment = Deployment(tmp_path / str(number))
        deployment.write_store()
        (tmp_path / str(number) / "backups" / BACKUP / name).write_bytes(data)
        assert "CRE206" in codes(deployment.judge()[0])


def test_without_a_store_the_evidence_says_so(deployment: Deployment) -> None:
    deployment.store = None
    deployment.objects.pop("claim")
    world, _, backup = deployment.judge()
    assert codes(world) == []
    assert backup.document["level"] == "status"


def _event(name: str, when: str | None = ago(minutes=2), **more: Any) -> str:
    return json.dumps({"auditID": name, "stageTimestamp": when, **more})


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ([_event("a"), _event("b")], False),
        ([_event("a", ago(days=9)), _event("b")], False),
        ([_event("a"), _event("b", ago(days=9))], False),
        ([], True),
        (["not json"], True),
        (["5"], True),
        (["[" * 100_000], True),
        (['{"kind": "Event"}'], True),
        ([_event("b", None)], True),
        ([_event("b", ago(hours=3))], True),
        ([_event("b", ago(hours=-1))], True),
        ([_event("b", annotations={"failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "x"})], True),
    ],
)
def test_the_audit_log(deployment: Deployment, tmp_path: Path, lines: list[str], refused: bool) -> None:
    deployment.audit = tmp_path / "audit.log"
    deployment.audit.write_text("".join(f"{line}\n" for line in lines))
    world, policies, _ = deployment.judge()
    assert ("CRE109" in codes(world)) is refused
    if not refused:
        assert policies.document["auditLog"]["lastAuditID"] == "b"


# --- the credential itself


@pytest.fixture
def tree_proof(tree: Path, office: Office) -> tuple[Proof, str]:
    verdict = verify(listing(tree), office.prover())
    assert verdict.proof is not None
    assert verdict.rendered is not None
    return verdict.proof, verdict.rendered.digest


HERE = Cluster("prod-a", UID)


def _statement(deployment: Deployment, tree_proof: tuple[Proof, str], **changed: Any) -> bytes:
    world, policies, backup = deployment.judge()
    cluster = Cluster("prod-a", world.cluster_uid())
    lifetime = timedelta(hours=1)
    made = credential_statement(*tree_proof, cluster, policies, backup, NOW, lifetime)
    if not changed:
        return made
    document = json.loads(made)
    for path, value in changed.items():
        holder = document["predicate"]
        *steps, last = path.split("__")
        for step in steps:
            holder = holder[step]
        holder[last] = value
    return json.dumps(document).encode()


def _asked(tree_proof: tuple[Proof, str]) -> Asked:
    return Asked(tree_proof[1], tree_proof[0].sha256, HERE, NOW)


def test_a_credential_is_given_and_verified(
    deployment: Deployment, tree_proof: tuple[Proof, str], office: Office
) -> None:
    _, policies, backup = deployment.judge()
    data = office.sign(_statement(deployment, tree_proof))
    asked = replace(
        _asked(tree_proof),
        policy_level="cluster",
        backup_level="store",
        policy_hash=policies.sha256,
        backup_hash=backup.sha256,
    )
    found = verify_credential(data, office.prover(), asked)
    assert found.cluster == HERE
    assert abs(found.timestamp - NOW) < timedelta(minutes=10)
    assert (found.policy_hash, found.backup_hash) == (policies.sha256, backup.sha256)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"tree": "0" * 64}, "CRE301"),
        ({"render_bundle": "0" * 64}, "CRE301"),
        ({"cluster": Cluster("prod-b", UID)}, "CRE302"),
        ({"cluster": Cluster("prod-a", "another")}, "CRE302"),
        ({"now": NOW + timedelta(hours=2)}, "CRE303"),
        ({"now": NOW - timedelta(hours=2)}, "SIG106"),
        ({"policy_level": "offline"}, "CRE306"),
        ({"backup_level": "status"}, "CRE306"),
        ({"policy_hash": "0" * 64}, "CRE304"),
        ({"backup_hash": "0" * 64}, "CRE304"),
    ],
)
def test_a_credential_for_something_else_is_refused(
    deployment: Deployment, tree_proof: tuple[Proof, str], office: Office, asked: dict[str, Any], code: str
) -> None:
    data = office.sign(_statement(deployment, tree_proof))
    with pytest.raises(Refused) as caught:
        verify_credential(data, office.prover(), replace(_asked(tree_proof), **asked))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"decision": "deny"}, "CRE306"),
        ({"schema": 2}, "CRE306"),
        ({"notAfter": "2099-01-01T00:00:00Z"}, "CRE303"),
        ({"notAfter": ago(minutes=30)}, "CRE303"),
        ({"notAfter": "soon"}, "CRE306"),
        ({"notBefore": ago(hours=-1)}, "CRE303"),
        ({"renderTree": {"sha256": "0" * 64}}, "CRE301"),
        ({"policyEvidence__newest": ago(hours=-1)}, "CRE305"),
        ({"backupEvidence__completionTimestamp": ago(hours=-1)}, "CRE305"),
        ({"backupHash": None}, "CRE306"),
    ],
)
def test_a_credential_that_says_something_else_is_refused(
    deployment: Deployment, tree_proof: tuple[Proof, str], office: Office, changed: dict[str, Any], code: str
) -> None:
    data = office.sign(_statement(deployment, tree_proof, **changed))
    with pytest.raises(Refused) as caught:
        verify_credential(data, office.prover(), _asked(tree_proof))
    assert caught.value.code == code


def test_only_who_may_gives_credentials(deployment: Deployment, tree_proof: tuple[Proof, str], office: Office) -> None:
    statement = _statement(deployment, tree_proof)
    with pytest.raises(Refused, match="only"):
        verify_credential(office.sign(statement, MALLORY), office.prover(RENDERER), _asked(tree_proof))
    key = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(Refused, match="authority"):
        verify_credential(WithKey(key).sign(statement), ByKey([key.public_key()]), _asked(tree_proof))


def test_what_cannot_be_bound_is_not_signed(deployment: Deployment, tree_proof: tuple[Proof, str]) -> None:
    _, policies, backup = deployment.judge()
    for cluster, lifetime, code in (
        (Cluster("prod-a", ""), timedelta(hours=1), "CRE302"),
        (HERE, timedelta(days=30), "CRE303"),
        (HERE, timedelta(0), "CRE303"),
    ):
        with pytest.raises(Refused) as caught:
            credential_statement(*tree_proof, cluster, policies, backup, NOW, lifetime)
        assert caught.value.code == code
    assert credentials.bundle_name("prod-a") == "credential-prod-a.sigstore.json"


@pytest.mark.parametrize("value", [10**30, -(10**30), 2**63, 10**12])
def test_times_beyond_every_calendar_are_none(deployment: Deployment, value: int) -> None:
    assert moment({"seconds": value}) is None
    deployment.objects["report"]["results"][0]["timestamp"] = {"seconds": value}
    assert "CRE108" in codes(deployment.judge()[0])


def test_a_store_with_a_link_in_it_is_no_bucket(deployment: Deployment, tmp_path: Path) -> None:
    deployment.write_store()
    folder = tmp_path / "store/backups" / BACKUP
    (folder / "more").symlink_to("/etc/hostname")
    assert "CRE206" in codes(deployment.judge()[0])
    (folder / "more").unlink()
    (folder / "more").mkdir()
    assert "CRE206" in codes(deployment.judge()[0])
    (folder / "more").rmdir()
    (folder / "more").write_text("what Velero adds some day")
    assert codes(deployment.judge()[0]) == []


def test_a_backup_that_leads_out_of_the_store_is_not_read(deployment: Deployment, tmp_path: Path) -> None:
    deployment.write_store()
    deployment.objects["backup"]["metadata"]["name"] = f"x/../{BACKUP}"
    assert "CRE206" in codes(deployment.judge()[0])


def test_times() -> None:
    assert moment("2026-12-01T00:00:00") is None
    assert moment("never") is None
    assert moment(as_seen(VALIDATING)["metadata"]["creationTimestamp"]) is not None
