"""A TUF repository with the trusted root in it: where Kyverno and other Go clients get their keys from.

Source: theupdateframework.github.io/specification v1.0.31; consistent snapshots, one key for all roles.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from tests.attest.sigstore.instance import Sigstore

TARGET = "trusted_root.json"


def write_repository(store: Sigstore, folder: Path) -> bytes:
    """Write the repository of an instance into a folder to be served; returns its root.json."""
    signer = CryptoSigner.generate_ecdsa()
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    target = json.dumps(store.trusted_root()).encode()
    (folder / "targets").mkdir(parents=True)
    listed = TargetFile.from_data(TARGET, target)
    (folder / "targets" / f"{listed.hashes['sha256']}.{TARGET}").write_bytes(target)
    root = Root(expires=ends, consistent_snapshot=True)
    for role in ("root", "timestamp", "snapshot", "targets"):
        root.add_key(signer.public_key, role)
    targets = Targets(expires=ends, targets={TARGET: listed})
    snapshot = Snapshot(expires=ends, meta={"targets.json": MetaFile(1)})
    timestamp = Timestamp(expires=ends, snapshot_meta=MetaFile(1))
    first = b""
    for name, signed in (("1.root", root), ("1.targets", targets), ("1.snapshot", snapshot), ("timestamp", timestamp)):
        metadata = Metadata(signed)
        metadata.sign(signer)
        data = metadata.to_bytes()
        (folder / f"{name}.json").write_bytes(data)
        first = first or data
    (folder / "root.json").write_bytes(first)
    return first
