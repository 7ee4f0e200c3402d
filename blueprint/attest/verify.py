"""Verify a tree: first whether the signature holds, by whom and when; only then whether the files are its list's.

Authenticity comes first because a list that nobody signed says nothing about files, and a message about a file that is
led by a forged list misleads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from blueprint.attest.bundle import Proof, Prover, claimed
from blueprint.attest.filelist import SUFFIX, Listing, Row
from blueprint.attest.order import Seen, in_order
from blueprint.attest.partial import parts
from blueprint.attest.reach import reached
from blueprint.attest.refusal import Refused
from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE
from blueprint.attest.statement import CREDENTIAL, Rendered, read_provenance, read_rendered
from blueprint.finding import Finding
from blueprint.tree import lock as locks
from blueprint.tree.scan import SIGNATURES

_SKEW: Final = timedelta(minutes=5)
"""How far ahead the authority's clock may be."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a verifier asks for beyond a signature that holds.

    `max_age` is of the verified time; `after` is the highest sequence that was seen, with the digest that it had, and
    `seen` the same for the clusters of a ledger. `cluster` must be among those of the statement. `now` is the
    verifier's clock.
    """

    max_age: timedelta | None = None
    after: int = 0
    after_digest: str = ""
    cluster: str = ""
    seen: Seen = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Findings (none: the tree is what was signed), and what was proven where the signature held."""

    findings: tuple[Finding, ...]
    rendered: Rendered | None = None
    proof: Proof | None = None

    @property
    def holds(self) -> bool:
        """Whether the tree may be used."""
        return not self.findings


def verify(listing: Listing, prover: Prover, demands: Demands | None = None) -> Verdict:
    """Judge a tree by the bundles that lie in it."""
    demands = demands or Demands()
    place = f"{listing.where}/{SIGNATURES}"
    try:
        proofs = [prover.prove(_bundle(listing, name)) for name in (RENDER_BUNDLE, PROVENANCE_BUNDLE)]
        rendered = read_rendered(proofs[0].payload, proofs[0].payload_type)
        if proofs[0].signer != proofs[1].signer or proofs[0].issuer != proofs[1].issuer:
            raise Refused("SIG104", "the list and the provenance are signed by different identities")
        read_provenance(proofs[1].payload, proofs[1].payload_type, rendered, proofs[0].signer)
        for proof in proofs:
            in_time(proof, demands.max_age, demands.now)
        _in_order(rendered, demands)
    except Refused as refused:
        return Verdict((refused.finding(place),))
    different = list(differences(rendered.files, listing))
    if not different and (wrong := _other_clusters(rendered, listing)):
        return Verdict((wrong,))
    found, judged = parts(listing, prover, rendered, proofs[0])
    foreign = _foreign(listing, rendered.made, judged)
    findings = [*different, *found, *foreign, *reached(listing)]
    return Verdict(tuple(findings), rendered, proofs[0])


def _other_clusters(rendered: Rendered, listing: Listing) -> Finding | None:
    """SIG109 where the statement is for clusters that the tree's lock does not hold, or for fewer."""
    lock, problems = locks.parse(listing.objects.get(locks.NAME, b""))
    made = {name: part.made for name, part in lock.clusters.items()}
    if problems or made == dict(rendered.made):
        return None  # a lock that cannot be read is not what was signed
    words = f"holds other clusters than the signature is for ({', '.join(sorted(rendered.made)) or 'none'})"
    return listing.finding("SIG109", locks.NAME, words, fix="render and sign again")


def in_time(proof: Proof, max_age: timedelta | None, now: datetime) -> None:
    """Hold the verified time to a window. Raises Refused (SIG105, SIG106).

    A certificate binds the time from both sides: it is valid for minutes. Over a signature by a key anybody can have a
    new stamp made at any time, so that it says "not later" and nothing of age.
    """
    if max_age is not None and (proof.signed_at is None or not proof.issuer):
        message = "nothing says how old a signature by a key is, and a largest age is asked for"
        raise Refused("SIG105", message, fix="sign by an identity, or ask for no --max-age")
    if proof.signed_at is None:
        return
    if proof.signed_at > now + _SKEW:
        raise Refused("SIG106", f"signed at {proof.signed_at:%Y-%m-%d %H:%M:%SZ}, which is in the future")
    if max_age is not None and now - proof.signed_at > max_age:
        raise Refused("SIG106", f"signed at {proof.signed_at:%Y-%m-%d %H:%M:%SZ}, more than {max_age} ago")


def differences(signed: Sequence[Row], listing: Listing) -> Iterator[Finding]:
    """Every way in which the files are not those of a list that was signed."""
    if tuple(signed) == listing.rows and not listing.faults:
        return
    for fault in listing.faults:
        yield listing.finding(fault.code, fault.path, fault.message)
    wanted, present = ({row.path: row for row in rows} for rows in (signed, listing.rows))
    faulty = {fault.path for fault in listing.faults}
    for path in sorted(wanted.keys() | present.keys()):
        row, here = wanted.get(path), present.get(path)
        if row is None:
            yield listing.finding("SIG203", path, "was not signed")
        elif here is None:
            if path not in faulty:
                yield listing.finding("SIG202", path, "was signed, and is missing")
        elif (here.sha256, here.size) != (row.sha256, row.size):
            yield listing.finding("SIG201", path, f"is not what was signed ({here.size} bytes, signed {row.size})")
        elif here.mode != row.mode:
            yield listing.finding("SIG204", path, f"has mode {here.mode}, signed {row.mode}")


def unlike(rendered: Rendered, again: Listing, listing: Listing) -> Iterator[Finding]:
    """SIG209: every way in which specs, rendered `again`, do not give what was signed.

    `.gitattributes` at the top is signed and rendered by nobody: it keeps line ends as they are.
    """
    lock, _ = locks.parse(again.objects.get(locks.NAME, b"{}"), again.where)
    for cluster, made in sorted(rendered.made.items()):
        part = lock.clusters.get(cluster)
        if part is not None and part.made.blueprint != made.blueprint:
            words = f"{cluster} was rendered by blueprint {made.blueprint}, and this is {part.made.blueprint}"
            yield listing.finding("SIG209", "", words, fix="verify with the version that rendered it")
    signed = {row.path: row for row in rendered.files if row.path != ".gitattributes"}
    given = {row.path: row for row in again.rows}
    for path in sorted(signed.keys() | given.keys()):
        if path not in given:
            yield listing.finding("SIG209", path, "was signed, and these specs do not give it")
        elif path not in signed:
            yield listing.finding("SIG209", path, "is what these specs give, and was not signed")
        elif signed[path] != given[path]:
            yield listing.finding("SIG209", path, "is not what these specs give")


def _bundle(listing: Listing, name: str) -> bytes:
    try:
        return listing.bundles[name]
    except KeyError:
        for fault in listing.faults:
            if fault.path == f"{SIGNATURES}/{name}":
                raise Refused("SIG101", f"{name} {fault.message}: this tree is not signed") from None
        raise Refused("SIG101", f"{name} is missing: this tree is not signed", fix="blueprint sign") from None


def _in_order(rendered: Rendered, demands: Demands) -> None:
    """Hold a statement to the cluster and to what was seen before. Raises Refused (SIG110, SIG111)."""
    if demands.cluster and demands.cluster not in rendered.made:
        signed = ", ".join(sorted(rendered.made)) or "none"
        raise Refused("SIG111", f"signed for other clusters ({signed}), not for {demands.cluster}")
    if rendered.sequence < demands.after:
        raise Refused("SIG110", f"an older tree: its sequence is {rendered.sequence}, {demands.after} was seen before")
    if rendered.sequence == demands.after and demands.after_digest not in ("", rendered.digest):
        raise Refused("SIG110", f"another tree with the sequence {rendered.sequence} was seen before")
    in_order(demands.seen, rendered.made.keys(), rendered.sequence, rendered.digest)


def credential_bundle(cluster: str) -> str:
    """The file of a cluster's deployment credential among the signatures."""
    return f"credential-{cluster}{SUFFIX}"


def _foreign(listing: Listing, clusters: Collection[str], judged: Collection[str]) -> Iterator[Finding]:
    """Bundles that nobody here judges. Credentials have their own verb: here they only must be what they are called."""
    known = {RENDER_BUNDLE, PROVENANCE_BUNDLE, *judged}
    credentials = {credential_bundle(cluster) for cluster in clusters}
    for name in sorted(listing.bundles.keys() - known):
        path = f"{SIGNATURES}/{name}"
        if name not in credentials:
            words = f"is none of {RENDER_BUNDLE}, {PROVENANCE_BUNDLE}, {credential_bundle('<cluster>')}"
            yield listing.finding("SIG208", path, words)
        elif why := _no_credential(listing.bundles[name]):
            yield listing.finding("SIG208", path, f"is no credential: {why}")


def _no_credential(data: bytes) -> str:
    try:
        kind = claimed(data)
    except Refused as refused:
        return refused.message
    return "" if kind == CREDENTIAL else f"it holds a {kind}"
