"""The deployment credential: this tree may go to this cluster now, for its policies agree and it can be restored.

    {policyHash, backupHash, timestamp}, bound to the digest of the tree and to the cluster, signed and logged.

The timestamp is that of the authority that stamped the signature, never one that the predicate claims. A reason to
refuse is a finding; a credential with a reason against it is not made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from blueprint.attest.backup_evidence import BackupEvidence
from blueprint.attest.bundle import Proof, Prover
from blueprint.attest.evidence import AHEAD, moment, written
from blueprint.attest.policy_evidence import PolicyEvidence
from blueprint.attest.refusal import Refused
from blueprint.attest.statement import CREDENTIAL, SUBJECT, read_statement, statement
from blueprint.attest.verify import credential_bundle, in_time

SCHEMA: Final = 1
LONGEST: Final = timedelta(days=7)
"""How long a credential may be good for."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster by its name in the tree and the UID of its namespace kube-system."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Credential:
    """A verified credential: what it is for, on what it stands, and until when."""

    cluster: Cluster
    tree: str
    policy_hash: str
    backup_hash: str
    timestamp: datetime
    not_after: datetime
    policy_level: str
    backup_level: str


def bundle_name(cluster: str) -> str:
    """The file of a cluster's credential among the signatures."""
    return credential_bundle(cluster)


def credential_statement(
    tree: Proof,
    digest: str,
    cluster: Cluster,
    policies: PolicyEvidence,
    backup: BackupEvidence,
    now: datetime,
    lifetime: timedelta,
) -> bytes:
    """What is signed about a tree that was verified by `tree`. Raises Refused (CRE3xx) for what cannot be bound."""
    if not cluster.uid:
        raise Refused("CRE302", "the evidence does not hold the namespace kube-system: which cluster is it?")
    if not timedelta(0) < lifetime <= LONGEST:
        raise Refused("CRE303", f"a credential is good for up to {LONGEST.days} days")
    predicate = {
        "schema": SCHEMA,
        "decision": "allow",
        "cluster": {"name": cluster.name, "uid": cluster.uid},
        "renderTree": {"sha256": digest},
        "renderBundle": {"sha256": tree.sha256},
        "policyHash": {"sha256": policies.sha256},
        "policyEvidence": policies.document,
        "backupHash": {"sha256": backup.sha256},
        "backupEvidence": backup.document,
        "notBefore": written(now - AHEAD),
        "notAfter": written(now + lifetime),
    }
    return statement(digest, CREDENTIAL, predicate)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a credential is held to: the tree that is there, the cluster, and the clock.

    `render_bundle` is the SHA-256 of the tree's own bundle. With `levels` "cluster" and "store" weaker evidence is
    refused. Hashes, where given, are those of evidence that was read anew.
    """

    tree: str
    render_bundle: str
    cluster: Cluster
    now: datetime
    policy_level: str = ""
    backup_level: str = ""
    policy_hash: str = ""
    backup_hash: str = ""


def verify_credential(data: bytes, prover: Prover, asked: Asked) -> Credential:
    """Verify a credential. Raises Refused: SIG1xx for the signature, CRE3xx for what it says."""
    proof = prover.prove(data)
    if proof.signed_at is None or not proof.issuer:
        raise Refused("SIG105", "no trusted authority says when the credential was given: it must be by an identity")
    in_time(proof, None, asked.now)
    subject, predicate = read_statement(proof.payload, proof.payload_type, CREDENTIAL, SUBJECT)
    found = _read(predicate, proof.signed_at)
    if subject != found.tree:
        raise Refused("CRE301", "the credential's subject is not the tree that it speaks of")
    if found.tree != asked.tree or predicate["renderBundle"] != {"sha256": asked.render_bundle}:
        raise Refused("CRE301", "the credential is for another tree, or for another signature of it")
    if found.cluster != asked.cluster:
        raise Refused("CRE302", f"the credential is for {found.cluster.name} ({found.cluster.uid})")
    _times(found, predicate, asked.now)
    for name, level, wanted in (
        ("policies", found.policy_level, asked.policy_level),
        ("backup", found.backup_level, asked.backup_level),
    ):
        if wanted and level != wanted:
            raise Refused("CRE306", f"the evidence about the {name} is of level {level}, {wanted} is asked for")
    for name, value, wanted in (
        ("policyHash", found.policy_hash, asked.policy_hash),
        ("backupHash", found.backup_hash, asked.backup_hash),
    ):
        if wanted and value != wanted:
            raise Refused("CRE304", f"the {name} is not that of today's evidence")
    return found


def _times(found: Credential, predicate: Mapping[str, Any], now: datetime) -> None:
    begins = moment(predicate["notBefore"])
    if (
        begins is None
        or not begins <= found.timestamp <= found.not_after
        or found.not_after - begins > LONGEST + AHEAD * 2
    ):
        raise Refused("CRE303", "the credential was not signed within the time that it names")
    if now > found.not_after:
        raise Refused("CRE303", f"the credential ended at {written(found.not_after)}")
    for name, value in (
        ("its newest report", predicate["policyEvidence"].get("newest")),
        ("its backup", predicate["backupEvidence"].get("completionTimestamp")),
    ):
        seen = moment(value)
        if seen is not None and seen > found.timestamp + AHEAD:
            raise Refused("CRE305", f"{name} is newer than the credential")


def _read(predicate: object, signed_at: datetime) -> Credential:
    match predicate:
        case {
            "schema": 1,
            "decision": "allow",
            "cluster": {"name": str(name), "uid": str(uid)},
            "renderTree": {"sha256": str(tree)},
            "renderBundle": {"sha256": str()},
            "policyHash": {"sha256": str(policy_hash)},
            "policyEvidence": {"level": str(policy_level)},
            "backupHash": {"sha256": str(backup_hash)},
            "backupEvidence": {"level": str(backup_level)},
            "notBefore": str(),
            "notAfter": str(ends),
        } if (not_after := moment(ends)) is not None:
            cluster = Cluster(name, uid)
            return Credential(cluster, tree, policy_hash, backup_hash, signed_at, not_after, policy_level, backup_level)
    raise Refused("CRE306", "the credential does not allow anything, or is of another shape")
