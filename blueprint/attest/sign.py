"""Sign statements: by an identity through Sigstore, or by a key of one's own. What is signed is verified at once."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from blueprint.attest.bundle import MEDIA_TYPE, ByIdentity, ByKey, Proof, Prover, pae
from blueprint.attest.filelist import Listing, canonical
from blueprint.attest.parts import bundle_of, rows_of
from blueprint.attest.refusal import Refused, said
from blueprint.attest.statement import HIGHEST, PAYLOAD_TYPE, RENDER, Rendered, provenance_statement, render_statement
from blueprint.attest.trust import Identity, key_hint
from blueprint.errors import BlueprintError, EnvironmentLacks, UsageError
from blueprint.finding import Finding
from blueprint.tree import lock as locks
from blueprint.tree.scan import SIGNATURES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityToken

RENDER_BUNDLE: Final = bundle_of("render")
_BELIEVED: Final = 2**31
"""A signature a second for 68 years: what an unverified file says above is no count, and would be the last one."""
PROVENANCE_BUNDLE: Final = bundle_of("provenance")
TOKEN: Final = "SIGSTORE_ID_TOKEN"  # noqa: S105 - the name of a variable, as cosign calls it
PASSWORD: Final = "BLUEPRINT_KEY_PASSWORD"  # noqa: S105 - likewise


class Signer(Protocol):
    """What signs statements, and proves what it signed. `name` is who signs, as a proof tells it."""

    name: str
    prover: Prover

    def sign(self, statement: bytes) -> bytes:
        """The bundle of a statement."""


class Keyless:
    """Signs by the identity of a token, with a short-lived certificate; each signature is logged and time-stamped."""

    def __init__(self, config: ClientTrustConfig, token: IdentityToken) -> None:
        from sigstore.sign import Signer as Session
        from sigstore.sign import SigningContext

        if not config.signing_config.get_tsas():
            hint = "add tsaUrls to the signing config: without a trusted time nobody can tell when it was signed"
            raise UsageError("the signing config names no time stamp authority", hint=hint)
        self.name = token.identity
        self.prover: Prover = ByIdentity(config.trusted_root, (Identity(token.identity, token.issuer),))
        with _services():
            self._session = Session(token, SigningContext.from_trust_config(config))

    def sign(self, statement: bytes) -> bytes:
        """Raises EnvironmentLacks where a service does not answer."""
        from sigstore.dsse import Statement

        with _services():
            return self._session.sign_dsse(Statement(statement)).to_json().encode()


class WithKey:
    """Signs by an ECDSA P-256 key, for places without any Sigstore; with a trust config its time stamps are added."""

    def __init__(self, key: EllipticCurvePrivateKey, config: ClientTrustConfig | None = None) -> None:
        self._key = key
        self._times = config.signing_config.get_tsas() if config else []
        self._hint = key_hint(key.public_key())
        self.name = f"key:{self._hint}"
        self.prover: Prover = ByKey((key.public_key(),), config.trusted_root if config else None)

    def sign(self, statement: bytes) -> bytes:
        """The form that `cosign verify-blob-attestation --key` reads, too."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256

        signature = self._key.sign(pae(PAYLOAD_TYPE, statement), ec.ECDSA(SHA256()))
        material: dict[str, Any] = {"publicKey": {"hint": self._hint}, "tlogEntries": []}
        if self._times:
            with _services():
                stamps = [_b64(authority.request_timestamp(signature).as_bytes()) for authority in self._times]
            stamped = [{"signedTimestamp": stamp} for stamp in stamps]
            material["timestampVerificationData"] = {"rfc3161Timestamps": stamped}
        envelope = {
            "payload": _b64(statement),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": _b64(signature)}],
        }
        return canonical({"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope})


def identity_token(config: ClientTrustConfig, file: Path | None = None, *, browser: bool = False) -> IdentityToken:
    """The token to sign with: of a file, of $SIGSTORE_ID_TOKEN, of the CI that runs this, or through a browser.

    Never of the command line, where every process could read it. Raises UsageError where there is none.
    """
    from sigstore.oidc import IdentityError, IdentityToken, Issuer, IssuerError, detect_credential

    try:
        raw = file.read_text("utf-8").strip() if file else os.environ.get(TOKEN, "").strip()
        raw = raw or detect_credential() or ""
        if raw:
            return IdentityToken(raw)
        if browser:
            with _services():
                return Issuer(config.signing_config.get_oidc_url()).identity_token()
    except (IdentityError, IssuerError, UnicodeDecodeError) as error:
        raise UsageError(f"the identity token is of no use: {said(error)}") from None
    hint = f"run it in CI with an OIDC identity, set {TOKEN}, or use --identity-token FILE or --browser"
    raise UsageError("there is no identity to sign with", hint=hint)


def private_key(file: Path) -> EllipticCurvePrivateKey:
    """A key in PEM (PKCS #8), with its password in $BLUEPRINT_KEY_PASSWORD. Raises UsageError for anything else."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    hint = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem"
    password = os.environ.get(PASSWORD)
    try:
        key = load_pem_private_key(file.read_bytes(), password.encode() if password else None)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"this is no private key that can be read: {said(error)}", where=str(file), hint=hint
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise UsageError("this is no ECDSA P-256 key", where=str(file), hint=hint)
    return key


def to_sign(listing: Listing, *, sequence: int | None = None) -> tuple[Rendered | None, list[Finding]]:
    """What a tree's statement says, or the findings that keep it from being signed.

    A tree is signed only if it is what its lock says and nothing else. The sequence is one more than that of the bundle
    that lies there, 1 without one; a lower one than asked for is a finding, too.
    """
    findings = [listing.finding(fault.code, fault.path, fault.message) for fault in listing.faults]
    data = listing.objects.get(locks.NAME)
    if data is None:
        hint = "sign the folder that `blueprint render` writes"
        raise UsageError(f"no {locks.NAME} here: this is no rendered tree", where=listing.where, hint=hint)
    lock, problems = locks.parse(data, f"{listing.where}/{locks.NAME}")
    if problems:
        return None, [*findings, *problems]
    present = {row.path: f"sha256:{row.sha256}" for row in listing.rows}
    owned = lock.files()
    for path in sorted(owned.keys() | present.keys()):
        if path not in present:
            findings.append(listing.finding("TRE202", path, "was deleted by hand", fix="render again"))
        elif path not in owned and path not in (locks.NAME, ".gitattributes"):
            message = "was rendered by nobody: a signature would vouch for it"
            findings.append(listing.finding("SIG203", path, message, fix="move it out of the tree"))
        elif path in owned and owned[path] != present[path]:
            findings.append(listing.finding("TRE201", path, "was edited by hand", fix="render again"))
    before, previous = _before(listing, RENDER_BUNDLE)
    if before > _BELIEVED and sequence is None:
        message = (
            f"the sequence {before} of what lies there counts no signatures: nobody verified it, nor goes on from it"
        )
        fix = "say the number of this signature, one more than the ledger holds (--sequence), or take the bundle away"
        findings.append(listing.finding("SIG110", "", message, fix=fix))
    elif sequence is not None and sequence <= before <= _BELIEVED:
        message = f"the sequence {sequence} does not follow {before}, which lies there: it would be refused as a replay"
        findings.append(listing.finding("SIG110", "", message))
    if findings:
        return None, findings
    made = {name: part.made for name, part in lock.clusters.items()}
    return Rendered(listing.rows, made, before + 1 if sequence is None else sequence, previous), []


def part(listing: Listing, whole: Rendered, clusters: Collection[str]) -> Rendered:
    """What the statement about a part of a tree says: the part of some clusters, as a branch holds it that is theirs.

    Raises UsageError for a cluster that the tree does not hold.
    """
    lock, _ = locks.parse(listing.objects[locks.NAME])
    if missing := sorted(set(clusters) - set(lock.clusters)):
        raise UsageError(f"nothing is rendered for {', '.join(missing)}", where=listing.where, hint="render again")
    previous = _before(listing, bundle_of("render", clusters))[1]
    made = {name: whole.made[name] for name in sorted(clusters)}
    return Rendered(rows_of(whole.files, lock, clusters), made, whole.sequence, previous)


def sign(rendered: Rendered, signer: Signer, clusters: Collection[str] | None = None) -> dict[str, bytes]:
    """Both bundles of a tree (file name → bytes), each verified right after it was signed; Refused where one fails.

    `clusters` are those of a part: its bundles have names of their own.
    """
    return {
        bundle_of("render", clusters): signed(render_statement(rendered), signer)[0],
        bundle_of("provenance", clusters): signed(provenance_statement(rendered, signer.name), signer)[0],
    }


def signed(statement: bytes, signer: Signer) -> tuple[bytes, Proof]:
    """The bundle of one statement, and the proof that it holds: an outage of the authority must not go unnoticed."""
    data = signer.sign(statement)
    proof = signer.prover.prove(data)
    if proof.payload != statement:
        raise Refused("SIG103", "what was signed is not what was given to sign")
    return data, proof


def write(root: Path, bundles: Mapping[str, bytes]) -> list[Path]:
    """Put bundles beside the tree, each in one step. Raises UsageError where their folder is a link."""
    folder = root / SIGNATURES
    if folder.is_symlink():
        raise UsageError("this is a link: what it leads to is no part of the tree", where=str(folder))
    folder.mkdir(exist_ok=True)
    written = []
    for name, data in bundles.items():
        partial = folder / f".{name}.{os.getpid()}"
        partial.write_bytes(data)
        partial.replace(folder / name)
        written.append(folder / name)
    return written


def _before(listing: Listing, bundle: str) -> tuple[int, str]:
    """Sequence and digest of the statement that lies there, unverified: it only says where to count on from."""
    try:
        envelope = json.loads(listing.bundles[bundle])["dsseEnvelope"]
        statement = json.loads(base64.b64decode(envelope["payload"]))
        sequence = int(statement["predicate"]["sequence"])
        if statement["predicateType"] == RENDER and 0 < sequence < HIGHEST:
            return sequence, str(statement["subject"][0]["digest"]["sha256"])
    except (KeyError, ValueError, TypeError, IndexError, RecursionError):
        pass
    return 0, ""


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@contextmanager
def _services() -> Iterator[None]:
    """Turn what the libraries raise, when a service fails, into one error without the secrets that they may repeat."""
    try:
        yield
    except BlueprintError:
        raise
    except Exception as error:
        raise EnvironmentLacks(f"a service of Sigstore failed: {said(error)}") from None
