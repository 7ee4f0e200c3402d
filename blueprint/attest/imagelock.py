"""The lock of images: what names were resolved to and who signed it, so that a bad image is found before the cluster.

Specs name images by digest; a person knows them by tags. The lock holds both, and what was verified of each when the
registry was asked, so that a check without a network can still tell an image that nobody has seen a signature of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from blueprint.attest.bundle import Prover
from blueprint.attest.evidence import moment, written
from blueprint.attest.images import recent, verify_image
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Registry, named, parts, reference, resolve
from blueprint.check.imaged import images
from blueprint.check.shapes import items, mapping
from blueprint.errors import UsageError
from blueprint.finding import Finding
from blueprint.objects import Manifest
from blueprint.spec.images import once


@dataclass(frozen=True, slots=True)
class Locked:
    """A row of images.lock: the digest that a name was resolved to, and who signed it and when."""

    digest: str
    identity: str
    issuer: str
    signed_at: datetime
    log_index: int | None = None
    built_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """The row as the lock has it."""
        return {
            "digest": self.digest,
            "identity": self.identity,
            "issuer": self.issuer,
            "signedAt": written(self.signed_at),
            "logIndex": self.log_index,
            "builtAt": None if self.built_at is None else written(self.built_at),
        }


def lock(
    names: Collection[str], registry: Registry, prover: Prover, *, max_age: timedelta | None = None
) -> tuple[dict[str, dict[str, Any]], list[Finding]]:
    """Resolve names (`registry/name:tag`, or with a digest) and verify each: rows of the lock, and findings."""
    rows: dict[str, dict[str, Any]] = {}
    findings = []
    for name in sorted(names):
        try:
            host, repository, tag, digest = parts(name)
            if not digest:
                with registry.conversation() as asked:
                    digest = resolve(asked, host, repository, tag or "latest")
            signature = verify_image(f"{host}/{repository}@{digest}", registry, prover, max_age=max_age)
            rows[name] = signature.document()
        except Refused as refused:
            findings.append(refused.finding(name))
    return rows, findings


def dump_lock(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The one spelling of a lock."""
    return json.dumps({"version": 1, "images": rows}, indent=2, sort_keys=True) + "\n"


def read_lock(file: Path) -> dict[str, Locked]:
    """Name → row. Raises UsageError for what `dump_lock` does not write."""
    try:
        document = json.loads(file.read_bytes(), object_pairs_hook=once)
        if document["version"] != 1:
            raise ValueError("another version")
        rows = {}
        for name, row in document["images"].items():
            signed_at = moment(row["signedAt"])
            if signed_at is None or not re.fullmatch("sha256:[0-9a-f]{64}", row["digest"]):
                raise ValueError(name)
            _, _, _, digest = parts(name)
            if digest not in ("", row["digest"]):
                raise ValueError(f"{name} has another digest than its own")
            who = str(row["identity"]), str(row["issuer"])
            rows[name] = Locked(row["digest"], *who, signed_at, row.get("logIndex"), moment(row.get("builtAt")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        raise UsageError(f"this is no lock of images: {error}", where=str(file)) from None
    return rows


def check_images(
    manifests: Collection[Manifest],
    locked: Mapping[str, Locked],
    prefixes: Collection[str],
    signers: Collection[tuple[str, str]],
    *,
    max_age: timedelta | None = None,
    now: datetime | None = None,
) -> Iterator[Finding]:
    """Every image under one of the prefixes must be in the lock, by its digest, and signed by one of the signers.

    Signatures lie beside the image: what was seen of one repository says nothing of a copy in another, where the gate
    in the cluster finds none. Names may be several for one image; one row that holds is enough.
    """
    now = now or datetime.now(UTC)
    rows: dict[tuple[str, str], list[Locked]] = {}
    for name, row in locked.items():
        host, repository, _, _ = parts(name)
        rows.setdefault((named(f"{host}/{repository}"), row.digest), []).append(row)
    for manifest, path, text in used(manifests):
        if not any(named(text).startswith(named(prefix)) for prefix in prefixes):
            continue
        try:
            image = reference(text)
            found = rows.get((named(f"{image.host}/{image.repository}"), image.digest), [])
            _hold(text, found, signers, max_age, now)
        except Refused as refused:
            yield Finding(
                refused.code, refused.message, manifest.source, object=manifest.ref, path=path, fix=refused.fix
            )


def _hold(
    text: str,
    rows: Collection[Locked],
    signers: Collection[tuple[str, str]],
    max_age: timedelta | None,
    now: datetime,
) -> None:
    """Hold an image to its rows: one must be of a signer, and the newest build in time. Raises Refused."""
    if not rows:
        raise Refused("SIG403", f"{text} is not in the lock: nobody has seen a signature of it there")
    ours = [row for row in rows if (row.identity, row.issuer) in signers]
    if not ours:
        row = next(iter(rows))
        raise Refused("SIG104", f"{text} is signed by {row.identity} (issuer {row.issuer}), who may not")
    recent(text, max((row.built_at for row in ours if row.built_at), default=None), max_age, now)


def gates(manifests: Collection[Manifest]) -> Iterator[tuple[list[str], set[tuple[str, str]], timedelta | None]]:
    """Prefixes, signers and largest age of every image gate that a tree renders for Gatekeeper or Kyverno."""
    for manifest in manifests:
        spec = mapping(manifest.body.get("spec"))
        given = mapping(spec.get("parameters"))
        if manifest.ref.group == "constraints.gatekeeper.sh" and "signers" in given:
            age = given.get("maxAgeSeconds")
            window = timedelta(seconds=age) if isinstance(age, int) else None
            yield [str(prefix) for prefix in items(given.get("prefixes"))], _people(given["signers"]), window
        elif manifest.kind == "ImageValidatingPolicy":
            globs = [mapping(row).get("glob") for row in items(spec.get("matchImageReferences"))]
            keyless = [_keyless(attestor) for attestor in items(spec.get("attestors"))]
            people = {person for row in keyless for person in _people(row.get("identities"))}
            ages = [int(age) for row in items(spec.get("validations")) for age in _ages(row)]
            window = timedelta(seconds=min(ages)) if ages else None
            yield [glob.removesuffix("*") for glob in globs if isinstance(glob, str)], people, window


def _ages(validation: object) -> list[str]:
    """The largest ages in a rule of ours for Kyverno, in seconds (`blueprint.render.images`)."""
    return re.findall(r"time\.now\(\) - duration\('(\d{1,12})s'\)", str(mapping(validation).get("expression")))


def _people(rows: object) -> set[tuple[str, str]]:
    return {(str(one.get("subject")), str(one.get("issuer"))) for one in map(mapping, items(rows))}


def _keyless(attestor: object) -> Mapping[str, Any]:
    return mapping(mapping(mapping(attestor).get("cosign")).get("keyless"))


def used(manifests: Collection[Manifest]) -> Iterator[tuple[Manifest, str, str]]:
    """Every image of every container, init and ephemeral ones, image volumes and custom kinds too, with its path."""
    for manifest in manifests:
        for one in images(manifest):
            yield manifest, one.path, one.text
