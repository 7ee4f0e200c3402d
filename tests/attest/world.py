"""A small rendered tree and whoever signs it, honestly or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sigstore.dsse import Statement
from sigstore.models import ClientTrustConfig, TrustedRoot
from sigstore.oidc import IdentityToken
from sigstore.sign import SigningContext

from blueprint.attest import sign as signing
from blueprint.attest.bundle import ByIdentity
from blueprint.attest.filelist import Listing, of_folder
from blueprint.attest.statement import Rendered, provenance_statement, render_statement
from blueprint.attest.trust import Identity
from blueprint.tree import lock as locks
from tests.attest.sigstore import Sigstore

RENDERER = "https://git.example.com/platform/gitops/.github/workflows/render.yml@refs/heads/main"
MALLORY = "https://git.example.com/mallory/fork/.github/workflows/render.yml@refs/heads/main"

MADE = locks.Made("0.1.0", "sha256:" + "1" * 64, "sha256:" + "2" * 64, "sha256:" + "3" * 64)

FILES: Mapping[str, str] = {
    "prod-a/chat/deployment-chat.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: chat\n",
    "prod-a/chat/service-chat.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: chat\n",
    "prod-a/queues/clusterqueue-a.yaml": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n",
    "prod-a/policies/policy-signed.yaml": "apiVersion: policies.kyverno.io/v1\nkind: ImageValidatingPolicy\n",
    "prod-a/argocd/application-chat.yaml": (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: chat\n"
        "spec:\n  source:\n    path: rendered/prod-a/chat\n    directory:\n      recurse: false\n"
    ),
    "prod-b/chat/deployment-chat.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: chat-b\n",
}


def write_tree(root: Path, files: Mapping[str, str] = FILES, made: locks.Made = MADE) -> None:
    """A tree with its lock, as rendering leaves it."""
    parts: dict[str, dict[str, str]] = {}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        parts.setdefault(path.partition("/")[0], {})[path] = locks.digest(text.encode())
    lock = locks.Lock({name: locks.Part(made, rows) for name, rows in parts.items()})
    (root / locks.NAME).write_bytes(locks.dump(lock))


def listing(root: Path) -> Listing:
    """The list of a tree; its folder in the repository is `rendered`."""
    found = of_folder(root)
    return Listing(found.where, found.rows, found.faults, found.bundles, "rendered", found.objects)


def rendered(root: Path, sequence: int = 1) -> Rendered:
    """What a tree's statement would say."""
    found, findings = signing.to_sign(of_folder(root), sequence=sequence)
    assert found is not None, findings
    return found


class Office:
    """A Sigstore and its customers."""

    def __init__(self, store: Sigstore) -> None:
        self.store = store

    @property
    def root(self) -> TrustedRoot:
        return self.config().trusted_root

    def config(self, rekor: int = 2, tsa: bool = True) -> ClientTrustConfig:
        return ClientTrustConfig.from_json(self.store.trust_config(rekor=rekor, tsa=tsa))

    def signer(self, identity: str = RENDERER, rekor: int = 2) -> signing.Keyless:
        return signing.Keyless(self.config(rekor), IdentityToken(self.store.token(identity)))

    def prover(self, identity: str = RENDERER) -> ByIdentity:
        return ByIdentity(self.root, [Identity(identity, self.store.issuer)])

    def sign(self, statement: bytes, identity: str = RENDERER, *, rekor: int = 2, tsa: bool = True) -> bytes:
        """A bundle as sigstore-python makes it, whatever the statement says."""
        context = SigningContext.from_trust_config(self.config(rekor, tsa))
        with context.signer(IdentityToken(self.store.token(identity))) as session:
            return session.sign_dsse(Statement(statement)).to_json().encode()

    def blob(self, data: bytes, identity: str = RENDERER) -> bytes:
        """A bundle over bytes instead of a statement."""
        context = SigningContext.from_trust_config(self.config())
        with context.signer(IdentityToken(self.store.token(identity))) as session:
            return session.sign_artifact(data).to_json().encode()

    def both(self, what: Rendered, identity: str = RENDERER) -> dict[str, bytes]:
        """The two bundles of a tree."""
        return {
            signing.RENDER_BUNDLE: self.sign(render_statement(what), identity),
            signing.PROVENANCE_BUNDLE: self.sign(provenance_statement(what, identity), identity),
        }


@cache
def parsed(data: bytes) -> Any:
    """A bundle as JSON; do not change it."""
    return json.loads(data)
