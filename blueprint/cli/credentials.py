"""The verbs of the deployment credential: `credential issue` and `credential verify`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blueprint.cli import attesting
from blueprint.cli.app import Format, Output, app
from blueprint.errors import UsageError

if TYPE_CHECKING:
    from blueprint.attest.backup_evidence import BackupEvidence
    from blueprint.attest.evidence import World
    from blueprint.attest.filelist import Listing
    from blueprint.attest.policy_evidence import PolicyEvidence

credential = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Issue and verify the credential to deploy a signed tree."
)
app.add_typer(credential, name="credential")

_Tree = Annotated[Path, typer.Argument(help="The rendered tree, with its signatures.")]
_Cluster = Annotated[str, typer.Option("--cluster", help="Name of the cluster, as in the tree.")]
_Objects = Annotated[
    list[Path] | None,
    typer.Option("--objects", metavar="FILE", help="Objects of the cluster: `kubectl get … -o json`, or a folder."),
]
_Store = Annotated[
    Path | None, typer.Option("--store", metavar="FOLDER", help="The bucket of the backups, mounted or copied.")
]
_Backup = Annotated[str, typer.Option("--backup", help="Name of the backup [default: the newest].")]
_Runs = Annotated[
    list[Path] | None,
    typer.Option("--policy-run", metavar="FILE", help="What kyverno or gator printed (JSON), instead of reports."),
]
_Audit = Annotated[
    Path | None, typer.Option("--audit-log", metavar="FILE", help="Audit log of the API server, one event a line.")
]


@credential.command()
def issue(
    tree: _Tree = Path("rendered"),
    cluster: _Cluster = "",
    objects: _Objects = None,
    store: _Store = None,
    backup: _Backup = "",
    policy_run: _Runs = None,
    audit_log: _Audit = None,
    lifetime: Annotated[str, typer.Option("--for", metavar="TIME", help="How long it is good, up to 7d.")] = "1h",
    identity: attesting.Identity_ = None,
    issuer: attesting.Issuer_ = None,
    trust_config: attesting.Config_ = None,
    identity_token: attesting.Token_ = None,
    output: Format = Output.TEXT,
) -> None:
    """Issue a credential, or say why not. --identity and --issuer are those who may have signed the tree."""
    from blueprint.attest import credential as credentials
    from blueprint.attest import sign as signing
    from blueprint.attest.refusal import Refused
    from blueprint.attest.trust import trust_config as read_config
    from blueprint.attest.verify import Demands, verify

    started, now = time.monotonic(), datetime.now(UTC)
    _named(cluster)
    _, prover = attesting.prover(identity, issuer, None, trust_config)
    listing = attesting.listing(tree, None)
    verdict = verify(listing, prover, Demands(cluster=cluster))
    findings, told = list(verdict.findings), {}
    if verdict.rendered and verdict.proof and not findings:
        world, policies, saved = _evidence(
            listing, cluster, objects or [], store, backup, policy_run or [], audit_log, now
        )
        findings = [refused.finding(tree.as_posix()) for refused in world.refusals]
        length = attesting.duration(lifetime) or timedelta(0)
        bound = credentials.Cluster(cluster, world.cluster_uid())
        try:
            if not findings:
                statement = credentials.credential_statement(
                    verdict.proof, verdict.rendered.digest, bound, policies, saved, now, length
                )
                config = read_config(trust_config)
                signer = signing.Keyless(config, signing.identity_token(config, identity_token))
                data, proof = signing.signed(statement, signer)
                (file,) = signing.write(tree, {credentials.bundle_name(cluster): data})
                told = {"file": str(file), "signer": proof.signer, "timestamp": _when(proof.signed_at)}
                told |= {"policyHash": policies.sha256, "backupHash": saved.sha256, "clusterUid": bound.uid}
        except Refused as refused:
            findings = [refused.finding(tree.as_posix())]
    attesting.tell(output, findings, started, ("credential", told), _lines)


@credential.command("verify")
def verify_(
    tree: _Tree = Path("rendered"),
    cluster: _Cluster = "",
    uid: Annotated[str, typer.Option("--uid", help="UID of the cluster's namespace kube-system.")] = "",
    identity: attesting.Identity_ = None,
    issuer: attesting.Issuer_ = None,
    trusted_root: attesting.Root_ = None,
    signer: Annotated[
        list[str] | None,
        typer.Option("--signer", metavar="NAME", help="Who may issue credentials [default: as --identity]."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Take evidence of a cluster and its store only, no offline run.")
    ] = False,
    objects: _Objects = None,
    store: _Store = None,
    backup: _Backup = "",
    output: Format = Output.TEXT,
) -> None:
    """Verify a credential: signature, tree, cluster, time; with --objects the hashes of today's evidence, too."""
    from blueprint.attest import credential as credentials
    from blueprint.attest.refusal import Refused
    from blueprint.attest.verify import Demands, verify

    started, now = time.monotonic(), datetime.now(UTC)
    _named(cluster)
    if not uid:
        raise UsageError("--uid names the cluster that it must be for", hint="kubectl get ns kube-system -o yaml")
    _, prover = attesting.prover(identity, issuer, None, trusted_root)
    _, givers = attesting.prover(signer or identity, issuer, None, trusted_root)
    listing = attesting.listing(tree, None)
    verdict = verify(listing, prover, Demands(cluster=cluster))
    findings, told = list(verdict.findings), {}
    if verdict.rendered and verdict.proof and not findings:
        hashes = ("", "")
        if objects:
            world, policies, saved = _evidence(listing, cluster, objects, store, backup, [], None, now)
            findings = [refused.finding(tree.as_posix()) for refused in world.refusals]
            hashes = (policies.sha256, saved.sha256 if store else "")
        levels = ("cluster", "store") if strict else ("", "")
        bound = credentials.Cluster(cluster, uid)
        asked = credentials.Asked(verdict.rendered.digest, verdict.proof.sha256, bound, now, *levels, *hashes)
        name = credentials.bundle_name(cluster)
        try:
            if name not in listing.bundles:
                raise Refused("SIG101", f"{name} is missing: there is no credential for {cluster}")
            found = credentials.verify_credential(listing.bundles[name], givers, asked)
            told = {"file": name, "timestamp": _when(found.timestamp), "notAfter": _when(found.not_after)}
            told |= {"policyHash": found.policy_hash, "backupHash": found.backup_hash, "clusterUid": uid}
            told |= {"policyEvidence": found.policy_level, "backupEvidence": found.backup_level}
        except Refused as refused:
            findings.append(refused.finding(tree.as_posix()))
    attesting.tell(output, findings, started, ("credential", told), _lines)


def _named(cluster: str) -> None:
    if not cluster:
        raise UsageError("--cluster names the cluster that the credential is for")


def _evidence(
    listing: Listing,
    cluster: str,
    objects: list[Path],
    store: Path | None,
    backup: str,
    runs: list[Path],
    audit_log: Path | None,
    now: datetime,
) -> tuple[World, PolicyEvidence, BackupEvidence]:
    """Read the evidence; its reasons to refuse are in the world."""
    from blueprint.attest.backup_evidence import backup_evidence
    from blueprint.attest.evidence import Window, World
    from blueprint.attest.policy_evidence import from_cluster, from_run

    if not objects:
        raise UsageError("--objects names what the cluster says of itself", hint="kubectl get … -o json > objects.json")
    world, window = World.read(objects), Window(now)
    rendered = World.read([Path(listing.where) / cluster])
    policies = from_run(rendered, runs, world) if runs else from_cluster(rendered, world, window, audit_log)
    return world, policies, backup_evidence(world, window, backup, store)


def _when(moment: datetime | None) -> str:
    from blueprint.attest.evidence import written

    return written(moment) if moment else ""


def _lines(told: dict[str, Any]) -> Iterator[str]:
    return (f"{key:<15} {value}" for key, value in told.items())
