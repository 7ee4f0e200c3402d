"""cosign as a second, independent verifier of the same bundles, where it is installed.

It is given only what it can judge: signature, identity, issuer, log and time of one bundle against the list's digest.
Source: cosign v3.1.3 cmd/cosign/cli/verify.go (verify-blob-attestation).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from blueprint.attest.filelist import Listing, as_dicts, canonical
from blueprint.attest.refusal import Refused, said
from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE
from blueprint.attest.statement import PROVENANCE, RENDER
from blueprint.attest.trust import Identity
from blueprint.errors import EnvironmentLacks

_TYPES: Final = {RENDER_BUNDLE: RENDER, PROVENANCE_BUNDLE: PROVENANCE}
_SECONDS: Final = 60


def agree(listing: Listing, identities: Sequence[Identity], root: Path | None, keys: Sequence[Path] = ()) -> None:
    """Have cosign verify both bundles of a tree. Raises Refused (SIG303), EnvironmentLacks where there is no cosign."""
    program = shutil.which("cosign")
    if program is None:
        raise EnvironmentLacks("cosign is not installed", hint="install cosign 3.1 or newer, or leave --cosign out")
    with tempfile.TemporaryDirectory(prefix="blueprint-") as folder:
        blob = Path(folder, "list.json")
        blob.write_bytes(canonical(as_dicts(listing.rows)))
        trust = Path(folder, "trusted_root.json")
        if root:
            document = json.loads(root.read_bytes())
            trust.write_text(json.dumps(document.get("trustedRoot", document)), "utf-8")
        for name, kind in _TYPES.items():
            bundle = Path(folder, name)
            bundle.write_bytes(listing.bundles.get(name, b""))
            given = ["--bundle", str(bundle), "--type", kind]
            _one_of(program, given, str(blob), identities, trust if root else None, keys)


def _one_of(
    program: str, given: list[str], blob: str, identities: Sequence[Identity], root: Path | None, keys: Sequence[Path]
) -> None:
    trust = ["--trusted-root", str(root)] if root else []
    # With a key there is no log; cosign is told so, and would ask the public one otherwise.
    ways = [["--key", str(key), "--insecure-ignore-tlog"] for key in keys]
    if not keys:
        ways = [["--certificate-identity", one.name, "--certificate-oidc-issuer", one.issuer] for one in identities]
    reason = ""
    for way in ways:
        command = [program, "verify-blob-attestation", *given, *trust, *way, blob]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise Refused("SIG303", f"cosign did not answer within {_SECONDS} s") from None
        if done.returncode == 0:
            return
        reason = said(RuntimeError(done.stderr))
    raise Refused("SIG303", f"cosign refuses it: {reason}")
