"""Argo CD's plugin: emit an application's manifests only from a tree that is what was signed.

The repository server sends the repository, and runs this in the application's folder (argo-cd v3.6.1
cmpserver/plugin/plugin.go `generateManifest`). Whatever is not proven ends with 1 and no output, which Argo CD shows as
a ComparisonError, and syncs nothing.

    python -m blueprint.runtime.plugin

Who may have signed comes from a file of the sidecar ($BLUEPRINT_PLUGIN, by default /etc/blueprint/plugin.yaml), never
from the repository or from the Application: either could be the attacker's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import Field

from blueprint.attest.bundle import ByIdentity
from blueprint.attest.filelist import Listing, Row, of_folder
from blueprint.attest.ledger import Ledger
from blueprint.attest.refusal import Refused, said
from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE
from blueprint.attest.trust import Identity as Signer
from blueprint.attest.trust import trusted_root
from blueprint.attest.verify import Demands, Verdict, verify
from blueprint.errors import BlueprintError, EnvironmentLacks
from blueprint.runtime.configuration import load
from blueprint.spec.base import Duration, Model, RelativePath
from blueprint.spec.policy import Identity

CONFIG: Final = "BLUEPRINT_PLUGIN"
_DEFAULT: Final = "/etc/blueprint/plugin.yaml"
_PATH: Final = "ARGOCD_APP_SOURCE_PATH"
_MANIFESTS: Final = (".yaml", ".yml", ".json")


class PluginConfig(Model):
    """What the sidecar asks of a tree."""

    trusted_root: str = Field(min_length=1)
    """Keys of the Sigstore, as a file: nothing is fetched."""
    signers: tuple[Identity, ...] = Field(min_length=1)
    """Who may have signed the tree, both exact."""
    tree: RelativePath = "rendered"
    """Folder of the tree in the repository."""
    clusters: tuple[str, ...] = ()
    """Clusters whose applications are emitted; all of the tree's without it."""
    max_age: Duration | None = None
    """How old the signature may be."""
    ledger: str = ""
    """A folder that outlives the pod, in which the highest sequence is kept: older trees are then refused."""


def emit(folder: Path, environment: Mapping[str, str], config: PluginConfig) -> bytes:
    """The manifests of the application in `folder`, as one stream of YAML. Raises Refused for what is not proven."""
    top, inside = _place(folder, environment.get(_PATH, ""), config.tree)
    cluster = inside.partition("/")[0]
    if config.clusters and cluster not in config.clusters:
        raise Refused("SIG111", f"this Argo CD does not take applications of {cluster}")
    listing = of_folder(top)
    listing = Listing(listing.where, listing.rows, listing.faults, listing.bundles, config.tree, listing.objects)
    prover = ByIdentity(
        trusted_root(Path(config.trusted_root)), [Signer(one.subject, one.issuer) for one in config.signers]
    )
    ledger = Ledger.open(Path(config.ledger)) if config.ledger else None
    demands = Demands(config.max_age, cluster=cluster, seen=ledger.highest if ledger else {})
    verdict = verify(listing, prover, demands)
    if not verdict.holds or verdict.rendered is None:
        first, *others = verdict.findings
        more = f" (and {len(others)} more)" if others else ""
        raise Refused(first.code, f"{first.message}{more}")
    if ledger is not None:
        _remember(ledger, listing, prover, verdict)
    rows = [row for row in verdict.rendered.files if _belongs(row.path, inside)]
    if not rows:
        raise Refused("SIG202", f"the signed tree has no manifests in {inside}")
    return b"".join(_documents(top, rows))


def _place(folder: Path, path: str, tree: str) -> tuple[Path, str]:
    """The tree's folder, and the application's path in it. Raises Refused where the application is elsewhere."""
    parts = Path(path).parts
    if not parts or ".." in parts or folder.parts[-len(parts) :] != parts:
        raise Refused("SIG101", f"the application's folder is not the source path {path!r}")
    repository = Path(*folder.parts[: -len(parts)])
    top = repository / tree
    if not folder.is_relative_to(top) or folder == top:
        raise Refused("SIG101", f"{path} does not lie in the signed tree {tree}")
    return top, folder.relative_to(top).as_posix()


def _remember(ledger: Ledger, listing: Listing, prover: ByIdentity, verdict: Verdict) -> None:
    """Keep what was verified; a log that contradicts what is kept refuses the tree."""
    for name in (RENDER_BUNDLE, PROVENANCE_BUNDLE):
        ledger.take(listing.bundles[name], prover.prove(listing.bundles[name]))
    if found := ledger.findings():
        raise Refused(found[0].code, found[0].message)
    if verdict.rendered is not None:
        ledger.save(verdict.rendered.made.keys(), verdict.rendered.sequence, verdict.rendered.digest)


def _belongs(path: str, inside: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == inside and name.endswith(_MANIFESTS)


def _documents(top: Path, rows: list[Row]) -> Iterator[bytes]:
    """The files again, each held to the digest that was signed: nothing is emitted that was read at another time."""
    for row in rows:
        data = (top / row.path).read_bytes()
        if sha256(data).hexdigest() != row.sha256:
            raise Refused("SIG201", f"{row.path} was changed while it was read")
        yield b"---\n" + data + b"\n" * (not data.endswith(b"\n"))


def run(folder: Path, environment: Mapping[str, str]) -> tuple[int, bytes, str]:
    """Exit code, output and words: 0 with manifests, 1 for a tree that is not proven, 2 or 3 for a wrong sidecar."""
    try:
        config = load(PluginConfig, Path(environment.get(CONFIG, _DEFAULT)))
        return 0, emit(folder, environment, config), ""
    except Refused as refused:
        return 1, b"", f"{refused.code}: {refused.message}"
    except BlueprintError as error:
        return error.exit_code, b"", error.diagnostics()
    except OSError as error:
        return EnvironmentLacks.exit_code, b"", f"the tree or the ledger cannot be read: {said(error)}"


def main() -> int:
    """Emit to the standard output, or say why not."""
    code, manifests, words = run(Path.cwd(), os.environ)
    sys.stdout.buffer.write(manifests)
    if words:
        print(words, file=sys.stderr)  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
