"""Bundles that are valid in themselves, and must not be taken for the renderer's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID

from blueprint.attest.bundle import MEDIA_TYPE, pae
from blueprint.attest.filelist import Row, canonical
from blueprint.attest.parts import rows_of
from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE, WithKey
from blueprint.attest.statement import PAYLOAD_TYPE, Rendered, provenance_statement, render_statement
from blueprint.tree import lock as locks
from tests.attest.sigstore.fulcio import Fulcio
from tests.attest.sigstore.pki import b64, certify, der, new_key
from tests.attest.world import FILES, MADE, MALLORY, RENDERER, Office, rendered, write_tree


class Forgers:
    """Everybody who signs something for the tree at `root`; `office` is trusted, `foreign` is not."""

    def __init__(self, root: Path, office: Office, foreign: Office, place: Path) -> None:
        self.root, self.office, self.foreign, self.place = root, office, foreign, place
        self.what = rendered(root, sequence=8)
        self.what = Rendered(self.what.files, self.what.made, 7)
        self.older_files: Mapping[str, str] = {**FILES, "prod-a/queues/clusterqueue-a.yaml": "kind: ClusterQueue\n"}
        self._cache: dict[tuple[str, str], Any] = {}

    @cached_property
    def older_tree(self) -> Rendered:
        root = self.place / "older"
        root.mkdir()
        write_tree(root, self.older_files)
        return rendered(root, sequence=6)

    def older(self) -> dict[str, bytes]:
        """Both bundles of the tree before."""
        return self._once("bundles", "older", lambda: self.office.both(self.older_tree))

    def _once(self, kind: str, name: str, make: Any) -> Any:
        key = (kind, name)
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    # --- both bundles

    def bundles(self, name: str) -> dict[str, bytes]:
        match name:
            case "other-identity":
                return self.office.both(self.what, MALLORY)
            case "longer-identity":
                return self.office.both(self.what, f"{RENDERER}-2")
            case "upper-identity":
                return self.office.both(self.what, RENDERER.upper())
            case "other-issuer":
                with _issuer(self.office.store.fulcio, "https://token.example.net"):
                    return self.office.both(self.what)
            case "foreign-sigstore":
                return self.foreign.both(self.what)
            case "shorter-list":
                return self._listing(tuple(row for row in self.what.files if "policy" not in row.path))
            case "outside-row":
                return self._listing((*self.what.files, self.what.files[-1]._replace(path="../outside.yaml")))
            case "signature-row":
                return self._listing((*self.what.files, self.what.files[-1]._replace(path=".attestations/x.yaml")))
            case "empty-list":
                return self._listing(())
            case "another-cluster":
                return self._for({**self.what.made, "prod-z": MADE})
            case "fewer-clusters":
                return self._for({"prod-a": MADE})
            case "no-cluster":
                return self._for({})
            case "other-made":
                return self._for(dict.fromkeys(self.what.made, replace(MADE, inputs="sha256:" + "9" * 64)))
            case "key":
                signer = WithKey(new_key(), self.office.config())
                return {
                    RENDER_BUNDLE: signer.sign(render_statement(self.what)),
                    PROVENANCE_BUNDLE: signer.sign(provenance_statement(self.what, signer.name)),
                }
        raise KeyError(name)

    def _listing(self, files: tuple[Row, ...]) -> dict[str, bytes]:
        return self.office.both(Rendered(files, self.what.made, 7))

    def _for(self, made: Mapping[str, Any]) -> dict[str, bytes]:
        return self.office.both(Rendered(self.what.files, made, 7))

    # --- the bundles of a part

    def part(self, name: str) -> dict[str, bytes]:
        """Those of the part of prod-a, all but rightly; rightly where there is no such name."""
        lock, _ = locks.parse((self.root / locks.NAME).read_bytes())
        files, signer, sequence, called = rows_of(self.what.files, lock, {"prod-a"}), RENDERER, 7, "prod-a"
        match name:
            case "other-files":
                files = files[:-1]
            case "other-sequence":
                sequence = 6
            case "other-identity":
                signer = MALLORY
            case "other-name":
                called = "prod-b"
            case "whole":
                files = self.what.files
        what = Rendered(files, {"prod-a": MADE}, sequence)
        both = {key.replace(".", f".{called}.", 1): data for key, data in self.office.both(what, signer).items()}
        return {key: data for key, data in both.items() if name != "alone" or key.startswith("render")}

    # --- the list's bundle

    def bundle(self, name: str) -> bytes:
        statement, store = render_statement(self.what), self.office.store
        match name:
            case "blob":
                return self.office.blob(statement)
            case "first-log-without-stamp":
                return self.office.sign(statement, rekor=1, tsa=False)
            case "first-log-with-foreign-stamp":
                one, other = (json.loads(self.office.sign(statement, rekor=1)) for _ in range(2))
                stamps = other["verificationMaterial"]["timestampVerificationData"]
                one["verificationMaterial"]["timestampVerificationData"] = stamps
                return json.dumps(one).encode()
            case "expired-certificate" | "early-certificate":
                store.tsa.offset = timedelta(hours=1 if name.startswith("expired") else -1)
                try:
                    return self.office.sign(statement)
                finally:
                    store.tsa.offset = timedelta(0)
            case "future":
                store.tsa.offset = store.fulcio.offset = timedelta(hours=2)
                try:
                    return self.office.sign(statement)
                finally:
                    store.tsa.offset = store.fulcio.offset = timedelta(0)
            case "two-identities":
                with _extension(store.fulcio, _two_names):
                    return self.office.sign(statement)
            case "other-usage":
                with _extension(store.fulcio, _client_usage):
                    return self.office.sign(statement)
            case "no-sct":
                return self._without_sct(statement)
            case "other-authority":
                real = store.fulcio.intermediate
                store.fulcio.intermediate = certify(
                    "fulcio", by=certify("root"), usage=ExtendedKeyUsageOID.CODE_SIGNING
                )
                try:
                    return self._unverified(statement)
                finally:
                    store.fulcio.intermediate = real
        raise KeyError(name)

    def _without_sct(self, statement: bytes) -> bytes:
        fulcio = self.office.store.fulcio
        real = fulcio.ct_key
        fulcio.ct_key = new_key()
        try:
            return self._unverified(statement)
        finally:
            fulcio.ct_key = real

    def _unverified(self, statement: bytes) -> bytes:
        """As an attacker's own client signs: sigstore-python would refuse the certificate before it signs by it."""
        store, key = self.office.store, new_key()
        certificate = store.fulcio.issue(key.public_key(), RENDERER, store.issuer)
        signed = pae(PAYLOAD_TYPE, statement)
        signature = key.sign(signed, ec.ECDSA(SHA256()))
        verifier = {"x509Certificate": {"rawBytes": b64(der(certificate))}, "keyDetails": "PKIX_ECDSA_P256_SHA_256"}
        entry = store.rekor2.answer(
            {
                "hashedRekordRequestV002": {
                    "digest": b64(sha256(signed).digest()),
                    "signature": {"content": b64(signature), "verifier": verifier},
                }
            }
        )
        (authority,) = self.office.config().signing_config.get_tsas()
        stamp = b64(authority.request_timestamp(signature).as_bytes())
        return canonical(
            {
                "mediaType": MEDIA_TYPE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": b64(der(certificate))},
                    "tlogEntries": [entry],
                    "timestampVerificationData": {"rfc3161Timestamps": [{"signedTimestamp": stamp}]},
                },
                "dsseEnvelope": {
                    "payload": b64(statement),
                    "payloadType": PAYLOAD_TYPE,
                    "signatures": [{"sig": b64(signature)}],
                },
            }
        )

    # --- other statements of the renderer

    def statement(self, name: str) -> bytes:
        document = json.loads(render_statement(self.what))
        predicate = document["predicate"]
        match name:
            case "other-predicate":
                document["predicateType"] = "https://example.com/other/v1"
            case "two-subjects":
                document["subject"].append({"name": "rendered-tree", "digest": {"sha256": "0" * 64}})
            case "no-subject":
                document["subject"] = [{"name": "rendered-tree", "digest": {"sha512": "0" * 128}}]
            case "other-name":
                document["subject"][0]["name"] = "deployment"
            case "other-digest":
                document["subject"][0]["digest"] = {"sha384": "0" * 96}
            case "other-list":
                predicate["files"][1]["sha256"] = "0" * 64
            case "repeated-row":
                files = (*self.what.files, self.what.files[-1])
                return self.office.sign(render_statement(Rendered(files, self.what.made, 7)))
            case "wider-row":
                predicate["files"][0]["note"] = "x"
            case "newer-schema":
                predicate["schema"] = 2
            case "no-sequence":
                del predicate["sequence"]
            case "sequence-zero":
                predicate["sequence"] = 0
            case "true-schema":
                predicate["schema"] = True
            case "fraction-sequence":
                predicate["sequence"] = 7.5
            case "huge-sequence":
                predicate["sequence"] = 2**53
            case "negative-size":
                predicate["files"][0]["size"] = -1
            case "upper-digest":
                predicate["files"][0]["sha256"] = "A" * 64
            case "two-digests":
                document["subject"][0]["digest"]["sha512"] = "0" * 128
            case "no-statement":
                subject = [{"name": "rendered-tree", "digest": {"sha256": "00"}}]
                document = {"_type": document["_type"], "subject": subject, "predicateType": ""}
            case _:
                raise KeyError(name)
        return self.office.sign(canonical(document))

    def provenance(self, name: str) -> bytes:
        match name:
            case "other-identity":
                return self.office.sign(provenance_statement(self.what, MALLORY), MALLORY)
            case "other-inputs":
                made = dict.fromkeys(self.what.made, replace(MADE, inputs="sha256:" + "9" * 64))
                return self.office.sign(provenance_statement(Rendered(self.what.files, made, 7), RENDERER))
            case "other-builder":
                return self.office.sign(provenance_statement(self.what, MALLORY))
            case "other-tree":
                return self.older()[PROVENANCE_BUNDLE]
        raise KeyError(name)


@contextmanager
def _issuer(fulcio: Fulcio, issuer: str) -> Iterator[None]:
    """Have the authority write another issuer, as it does for tokens of another provider."""
    real = fulcio.issue
    fulcio.issue = lambda public, identity, _: real(public, identity, issuer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        del fulcio.issue  # type: ignore[method-assign]


@contextmanager
def _extension(fulcio: Fulcio, change: Any) -> Iterator[None]:
    """Have the authority write another extension."""
    real = fulcio._builder
    fulcio._builder = lambda *given: change(real(*given))  # type: ignore[method-assign]
    try:
        yield
    finally:
        del fulcio._builder  # type: ignore[method-assign]


def _without(builder: x509.CertificateBuilder, kind: type[x509.ExtensionType]) -> x509.CertificateBuilder:
    kept = [extension for extension in builder._extensions if not isinstance(extension.value, kind)]
    builder._extensions = kept
    return builder


def _two_names(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    names = [x509.UniformResourceIdentifier(RENDERER), x509.UniformResourceIdentifier(MALLORY)]
    names_of = x509.SubjectAlternativeName(names)
    return _without(builder, x509.SubjectAlternativeName).add_extension(names_of, critical=True)


def _client_usage(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _without(builder, x509.ExtendedKeyUsage).add_extension(usage, critical=False)
