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
    from blueprint.attest.bundle import Proof, Prover
    from blueprint.attest.evidence import World
    from blueprint.attest.filelist import Listing
    from blueprint.attest.ledger import Ledger
    from blueprint.attest.policy_evidence import PolicyEvidence
    from blueprint.attest.statement import Rendered
    from blueprint.finding import Finding

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
_Run = Annotated[
    Path | None,
    typer.Option(
        "--policy-run", metavar="FILE", help="What `credential run` wrote about this tree, instead of reports."
    ),
]
_Audit = Annotated[
    Path | None, typer.Option("--audit-log", metavar="FILE", help="Audit log of the API server, one event a line.")
]
_Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FOLDER", help="Ledger of what was verified: refuses replays and forked logs."),
]


@credential.command()
def issue(
    tree: _Tree = Path("rendered"),
    cluster: _Cluster = "",
    objects: _Objects = None,
    store: _Store = None,
    backup: _Backup = "",
    policy_run: _Run = None,
    audit_log: _Audit = None,
    lifetime: Annotated[str, typer.Option("--for", metavar="TIME", help="How long it is good, up to 7d.")] = "1h",
    identity: attesting.Identity_ = None,
    issuer: attesting.Issuer_ = None,
    trust_config: attesting.Config_ = None,
    identity_token: attesting.Token_ = None,
    log: _Log = None,
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
    ledger = _ledger(log)
    verdict = verify(listing, prover, Demands(cluster=cluster, seen=ledger.highest if ledger else {}))
    findings, told = list(verdict.findings), {}
    if verdict.rendered and verdict.proof and not findings:
        world, policies, saved = _evidence(
            listing, (cluster, verdict.rendered.digest), objects or [], (store, backup), policy_run, audit_log, now
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
                if ledger:
                    findings = _keep(ledger, listing, prover, verdict.rendered, (data, proof))
            if not findings:
                (file,) = signing.write(tree, {credentials.bundle_name(cluster): data})
                told = {"file": str(file), "signer": proof.signer, "timestamp": _when(proof.signed_at)}
                told |= {"policyHash": policies.sha256, "backupHash": saved.sha256, "clusterUid": bound.uid}
        except Refused as refused:
            findings = [refused.finding(tree.as_posix())]
    attesting.tell(output, findings, started, ("credential", told), _lines)


@credential.command()
def kinds(tree: _Tree = Path("rendered"), cluster: _Cluster = "") -> None:
    """Print where the API server lists what a credential stands on: `kubectl get --raw PATH` into a file for each."""
    from blueprint.attest.dump import needed

    _named(cluster)
    for each in needed(_rendered(attesting.listing(tree, None), cluster)):
        print(each.path)


@credential.command()
def run(
    tree: _Tree = Path("rendered"),
    cluster: _Cluster = "",
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="FILE", help="Objects to judge beside those of the tree, such as samples."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the run is kept.")] = Path("run.json"),
) -> None:
    """Run the policies of a tree on its objects, by kyverno and gator: the evidence for --policy-run."""
    import json

    from blueprint.attest import offline

    _named(cluster)
    listing = attesting.listing(tree, None)
    found = offline.run(_rendered(listing, cluster), cluster, listing.digest, beside or [])
    out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    programs = " and ".join(found["outputs"]) or "none"
    print(f"{out}: {len(found['policies'])} policies on {found['treeDigest']}, by {programs}")


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
    policy_run: _Run = None,
    audit_log: _Audit = None,
    log: _Log = None,
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
    ledger = _ledger(log)
    verdict = verify(listing, prover, Demands(cluster=cluster, seen=ledger.highest if ledger else {}))
    findings, told = list(verdict.findings), {}
    if verdict.rendered and verdict.proof and not findings:
        hashes = ("", "")
        if objects:
            about = (cluster, verdict.rendered.digest)
            world, policies, saved = _evidence(listing, about, objects, (store, backup), policy_run, audit_log, now)
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
            if ledger and not findings:
                given = (listing.bundles[name], givers.prove(listing.bundles[name]))
                findings = _keep(ledger, listing, prover, verdict.rendered, given)
        except Refused as refused:
            findings.append(refused.finding(tree.as_posix()))
    attesting.tell(output, findings, started, ("credential", told), _lines)


def _ledger(log: Path | None) -> Ledger | None:
    from blueprint.attest.ledger import Ledger

    return Ledger.open(log) if log else None


def _keep(
    ledger: Ledger, listing: Listing, prover: Prover, rendered: Rendered, given: tuple[bytes, Proof]
) -> list[Finding]:
    """Keep the tree's bundles and the credential's; nothing where a log contradicts what is kept."""
    from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE

    for name in (RENDER_BUNDLE, PROVENANCE_BUNDLE):
        ledger.take(listing.bundles[name], prover.prove(listing.bundles[name]))
    ledger.take(*given)
    if not (found := ledger.findings()):
        ledger.save(rendered.made.keys(), rendered.sequence, rendered.digest)
    return found


def _named(cluster: str) -> None:
    if not cluster:
        raise UsageError("--cluster names the cluster that the credential is for")


def _evidence(
    listing: Listing,
    about: tuple[str, str],
    objects: list[Path],
    saved: tuple[Path | None, str],
    run: Path | None,
    audit_log: Path | None,
    now: datetime,
) -> tuple[World, PolicyEvidence, BackupEvidence]:
    """Read the evidence about (cluster, digest of the tree); its reasons to refuse are in the world."""
    from blueprint.attest.backup_evidence import backup_evidence
    from blueprint.attest.dump import needed, read_dump
    from blueprint.attest.engines import asked
    from blueprint.attest.evidence import Window
    from blueprint.attest.policy_evidence import from_cluster
    from blueprint.attest.policy_run import from_run

    if not objects:
        raise UsageError("--objects names what the cluster says of itself", hint="blueprint credential kinds")
    rendered, window = _rendered(listing, about[0]), Window(now)
    world = read_dump(objects, needed(rendered, offline=run is not None))
    if run is not None:
        policies = from_run(rendered, run, world, *about)
    else:
        policies = from_cluster(rendered, world, window, audit_log)
        asked(rendered, world)
    store, name = saved
    return world, policies, backup_evidence(world, window, name, store, rendered)


def _rendered(listing: Listing, cluster: str) -> World:
    from blueprint.attest.evidence import World

    return World.read([Path(listing.where) / cluster])


def _when(moment: datetime | None) -> str:
    from blueprint.attest.evidence import written

    return written(moment) if moment else ""


def _lines(told: dict[str, Any]) -> Iterator[str]:
    return (f"{key:<15} {value}" for key, value in told.items())
