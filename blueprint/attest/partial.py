"""Hold the signatures of parts to that of the whole: the same signer, the same sequence, the same files."""

from __future__ import annotations

from blueprint.attest.bundle import Proof, Prover
from blueprint.attest.filelist import Listing
from blueprint.attest.parts import bundle_of, rows_of
from blueprint.attest.refusal import Refused
from blueprint.attest.statement import Rendered, read_provenance, read_rendered
from blueprint.finding import Finding
from blueprint.tree.lock import NAME as LOCK
from blueprint.tree.lock import Lock, parse
from blueprint.tree.scan import SIGNATURES


def parts(listing: Listing, prover: Prover, whole: Rendered, proof: Proof) -> tuple[list[Finding], frozenset[str]]:
    """What is wrong with the bundles of parts that lie beside those of the whole; and the names that were judged."""
    findings: list[Finding] = []
    judged: set[str] = set()
    lock, _ = parse(listing.objects.get(LOCK, b""))
    for name in sorted(listing.bundles):
        if not name.startswith("render.") or name == bundle_of("render"):
            continue
        beside = name.replace("render.", "provenance.", 1)
        judged |= {name, beside}
        try:
            proofs = [prover.prove(listing.bundles.get(each, b"")) for each in (name, beside)]
            _hold(name, proofs, (whole, proof), lock)
        except Refused as refused:
            findings.append(refused.finding(f"{listing.where}/{SIGNATURES}/{name}"))
    return findings, frozenset(judged)


def _hold(name: str, proofs: list[Proof], whole: tuple[Rendered, Proof], lock: Lock) -> None:
    rendered, proof = whole
    if any((each.signer, each.issuer) != (proof.signer, proof.issuer) for each in proofs):
        raise Refused("SIG104", "a part is signed by somebody else than the whole")
    part = read_rendered(proofs[0].payload, proofs[0].payload_type)
    read_provenance(proofs[1].payload, proofs[1].payload_type, part, proofs[0].signer)
    clusters = part.made.keys()
    same = bundle_of("render", clusters) == name and clusters <= lock.clusters.keys()
    if not same or part.sequence != rendered.sequence or part.files != rows_of(rendered.files, lock, clusters):
        raise Refused("SIG109", "the list of a part is not that of the whole", fix="sign again, parts and whole")
