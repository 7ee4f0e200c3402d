"""Verbs about signatures: `sign` and `verify`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from blueprint.cli.app import Format, Output, app, write_as, write_text
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report
from blueprint.report import Totals

if TYPE_CHECKING:
    from blueprint.attest.bundle import Proof, Prover
    from blueprint.attest.filelist import Listing
    from blueprint.attest.ledger import Ledger
    from blueprint.attest.trust import Identity

Rev_ = Annotated[
    str | None, typer.Option("--rev", metavar="REVISION", help="Read the tree from this commit, not from the disk.")
]
Config_ = Annotated[
    Path | None,
    typer.Option("--trust-config", metavar="FILE", help="Where to sign and whom to trust [default: public Sigstore]."),
]
Token_ = Annotated[
    Path | None,
    typer.Option("--identity-token", metavar="FILE", help="File with an OIDC token [default: that of the CI]."),
]
Identity_ = Annotated[
    list[str] | None,
    typer.Option("--identity", metavar="NAME", help="Who may have signed, exactly; may be given several times."),
]
Issuer_ = Annotated[
    list[str] | None, typer.Option("--issuer", metavar="URL", help="The issuer of the identity, exactly.")
]
Root_ = Annotated[
    Path | None,
    typer.Option("--trusted-root", metavar="FILE", help="Keys of the Sigstore, offline [default: public Sigstore]."),
]
Key_ = Annotated[
    list[Path] | None, typer.Option("--key", metavar="FILE", help="Public key that may have signed, and no identity.")
]
MaxAge_ = Annotated[
    str | None, typer.Option("--max-age", metavar="TIME", help="How old the signature may be, such as 30d or 12h.")
]


@app.command()
def sign(
    tree: Annotated[Path, typer.Argument(help="The rendered tree.")] = Path("rendered"),
    rev: Rev_ = None,
    sequence: Annotated[
        int | None,
        typer.Option(
            "--sequence",
            metavar="N",
            min=1,
            max=2**53 - 1,
            help="Number of this signature [default: one more than the last].",
        ),
    ] = None,
    branches: Annotated[
        Path | None,
        typer.Option(
            "--branches",
            metavar="PLATFORM",
            help="Sign also what each branch of this platform's Delivery will hold, so that it can be verified there.",
        ),
    ] = None,
    trust_config: Config_ = None,
    identity_token: Token_ = None,
    browser: Annotated[bool, typer.Option("--browser", help="Get a token through a browser.")] = False,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Private key in PEM, for places without Sigstore.")
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """Sign a rendered tree: a list of its files, and its provenance."""
    from blueprint.attest import sign as signing
    from blueprint.attest.refusal import Refused
    from blueprint.attest.trust import trust_config as read_config

    started = time.monotonic()
    found = listing(tree, rev)
    rendered, findings = signing.to_sign(found, sequence=sequence)
    document: dict[str, Any] = {}
    if rendered is not None and not findings:
        try:
            if key:
                signer: signing.Signer = signing.WithKey(
                    signing.private_key(key), read_config(trust_config) if trust_config else None
                )
            else:
                config = read_config(trust_config)
                signer = signing.Keyless(config, signing.identity_token(config, identity_token, browser=browser))
            bundles = signing.sign(rendered, signer)
            for clusters in _parts(branches, rendered.made):
                bundles |= signing.sign(signing.part(found, rendered, clusters), signer, clusters)
            proof = signer.prover.prove(bundles[signing.RENDER_BUNDLE])
            written = signing.write(tree, bundles)
            document = _proven(proof, rendered.digest, rendered.sequence, len(rendered.files))
            document["written"] = [str(path) for path in written]
        except Refused as refused:
            findings = [refused.finding(found.where)]
    tell(output, findings, started, ("proven", document), partial(_lines, "signed"))


def _parts(platform: Path | None, held: Collection[str]) -> list[tuple[str, ...]]:
    """The clusters of each branch that does not get the whole tree."""
    if platform is None:
        return []
    from blueprint.deliver.stages import route
    from blueprint.spec.load import load

    way = route(load(platform).platform)
    return [clusters for clusters in way.by_branch(tuple(way.branches)).values() if set(clusters) != set(held)]


@app.command()
def verify(
    tree: Annotated[Path, typer.Argument(help="The rendered tree, with its signatures.")] = Path("rendered"),
    rev: Rev_ = None,
    identity: Identity_ = None,
    issuer: Issuer_ = None,
    key: Key_ = None,
    trusted_root: Root_ = None,
    max_age: MaxAge_ = None,
    cluster: Annotated[str, typer.Option("--cluster", help="The tree must be signed for this cluster.")] = "",
    after: Annotated[int, typer.Option("--after", metavar="N", help="Refuse a sequence below this one.", min=0)] = 0,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FOLDER", help="Ledger of what was verified: refuses replays and forked logs."),
    ] = None,
    ask_log: Annotated[
        bool, typer.Option("--ask-log", help="Ask the log to prove that it only grew since the ledger's last entry.")
    ] = False,
    rerender: Annotated[
        Path | None,
        typer.Option("--rerender", metavar="PATH", help="Render these specs, and compare with what was signed."),
    ] = None,
    cosign: Annotated[bool, typer.Option("--cosign", help="Have cosign verify the bundles as well.")] = False,
    output: Format = Output.TEXT,
) -> None:
    """Verify that a tree is what was signed, by whom and when."""
    from blueprint.attest import cosign as second
    from blueprint.attest.ledger import Ledger
    from blueprint.attest.refusal import Refused
    from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE
    from blueprint.attest.verify import Demands, unlike
    from blueprint.attest.verify import verify as judge

    started = time.monotonic()
    if ask_log and not log:
        raise UsageError("--ask-log needs --log, the ledger with what the log said before")
    allowed, proving = prover(identity, issuer, key, trusted_root)
    found = listing(tree, rev)
    ledger = Ledger.open(log) if log else None
    demands = Demands(duration(max_age), after, cluster=cluster, seen=ledger.highest if ledger else {})
    verdict = judge(found, proving, demands)
    findings, document = list(verdict.findings), {}
    if verdict.rendered and verdict.proof:
        rendered = verdict.rendered
        document = _proven(verdict.proof, rendered.digest, rendered.sequence, len(rendered.files))
        if rerender and verdict.holds:
            findings += unlike(rendered, _again(rerender), found)
        if cosign and verdict.holds:
            try:
                second.agree(found, allowed, trusted_root, key or ())
            except Refused as refused:
                findings.append(refused.finding(found.where))
        if ledger and not findings:
            for name in (RENDER_BUNDLE, PROVENANCE_BUNDLE):
                data = found.bundles[name]
                ledger.take(data, proving.prove(data))
            if ask_log:
                _grown(ledger, proving)
            findings += ledger.findings()
            if not findings:
                ledger.save(rendered.made.keys(), rendered.sequence, rendered.digest)
    tell(output, findings, started, ("proven", document), partial(_lines, "verified"))


def _grown(ledger: Ledger, proving: Prover) -> None:
    """Fetch what the ledger lacks. Raises EnvironmentLacks where a log does not answer: no proof is no proof."""
    from blueprint.attest.bundle import ByIdentity
    from blueprint.attest.growth import Log

    logs = proving.logs if isinstance(proving, ByIdentity) else {}
    for old, new in ledger.gaps():
        if address := logs.get(new.log):
            ledger.learn(old, new, Log(address, new.size, new.shard).proof(old.size))


def prover(
    names: list[str] | None, issuers: list[str] | None, keys: list[Path] | None, root: Path | None
) -> tuple[tuple[Identity, ...], Prover]:
    """Who may have signed: identities, or keys; never both, and never nobody."""
    from blueprint.attest.bundle import ByIdentity, ByKey
    from blueprint.attest.trust import identities, public_key, trusted_root

    if keys:
        if names or issuers:
            raise UsageError("--key and --identity exclude each other: the weaker one would decide")
        return (), ByKey([public_key(file) for file in keys], trusted_root(root) if root else None)
    allowed = identities(names or [], issuers or [])
    return allowed, ByIdentity(trusted_root(root), allowed)


def listing(tree: Path, rev: str | None) -> Listing:
    """What lies in a tree: on the disk, or in a commit."""
    from blueprint.attest.filelist import in_repository, of_commit, of_folder, top_of

    if rev is None:
        return replace(of_folder(tree), folder=in_repository(tree))
    top, folder = top_of(tree)
    return of_commit(top, rev, folder)


def _again(specs: Path) -> Listing:
    """What the specs give, rendered into a folder of its own."""
    import tempfile

    from blueprint.attest.filelist import of_folder
    from blueprint.pipeline import render_platform

    with tempfile.TemporaryDirectory(prefix="blueprint-") as folder:
        tree = Path(folder, "rendered")
        result = render_platform(specs, tree)
        if result.report.failed:
            raise UsageError("the specs do not render", where=str(specs), hint=f"blueprint render {specs} --check")
        return of_folder(tree)


def duration(text: str | None) -> timedelta | None:
    """A span of time as specs write it. Raises UsageError."""
    from pydantic import TypeAdapter, ValidationError

    from blueprint.spec.base import Duration

    if text is None:
        return None
    try:
        return TypeAdapter[timedelta](Duration).validate_python(text)
    except ValidationError:
        raise UsageError(f"{text!r} is no span of time", hint="write 30d, 12h or 90m") from None


def _proven(proof: Proof, digest: str, sequence: int, files: int) -> dict[str, Any]:
    """What a signature proves: the stable document of `-o json`."""
    logged = proof.logged
    return {
        "treeDigest": f"sha256:{digest}",
        "sequence": sequence,
        "files": files,
        "signer": proof.signer,
        "issuer": proof.issuer,
        "signedAt": proof.signed_at.strftime("%Y-%m-%dT%H:%M:%SZ") if proof.signed_at else None,
        "log": {"id": logged.log, "index": logged.index, "size": logged.size} if logged else None,
    }


def _lines(done: str, proven: dict[str, Any]) -> Iterator[str]:
    """The same for a person."""
    when = proven["signedAt"] or "at a time that no authority stamped"
    who = proven["signer"] + (f" (issuer {proven['issuer']})" if proven["issuer"] else "")
    entry = f"entry {proven['log']['index']} of log {proven['log']['id'][:16]}…" if proven["log"] else "not logged"
    yield f"{done}: {proven['files']:,} files, {proven['treeDigest']}, sequence {proven['sequence']}"
    yield f"        by {who}, {when}, {entry}"
    yield from proven.get("written", ())


def tell(
    output: Output,
    findings: Iterable[Finding],
    started: float,
    told: tuple[str, dict[str, Any]],
    lines: Callable[[dict[str, Any]], Iterable[str]],
) -> NoReturn:
    """Say why not, or what was proven: under the name of `told` in JSON, by `lines` for a person. Ends the verb."""
    report, (name, values) = Report.of(findings), told
    if output is Output.JSON:
        from blueprint.catalog.rules import rules
        from blueprint.report import json

        document = json.document(report, Totals(), rules())
        print(json.dump({**document, "holds": not report.findings, name: values or None}), end="")
    elif output is not Output.TEXT:
        write_as(output, report, Totals())
    elif report.findings:
        write_text(report, Totals(), time.monotonic() - started)
    else:
        for line in lines(values):
            print(line)
    raise typer.Exit(1 if report.findings else 0)
