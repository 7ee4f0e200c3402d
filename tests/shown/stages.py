"""The places in which sessions of pages are typed, made anew for each."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from blueprint.attest import sign as signing
from blueprint.attest.credential import Cluster, credential_statement
from blueprint.attest.evidence import World
from blueprint.attest.filelist import of_folder
from blueprint.attest.images import verify_image
from blueprint.attest.policy_evidence import policies_of
from blueprint.attest.registry import Registry
from blueprint.attest.statement import CREDENTIAL, Rendered, provenance_statement, render_statement, statement
from blueprint.attest.verify import credential_bundle, verify
from blueprint.conform.run import Outcome
from blueprint.conform.stage import Case, Record
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from blueprint.runtime.gate import Gate
from blueprint.runtime.gateconfig import GateConfig
from tests.attest.deployment import NOW, Deployment, ago, as_seen
from tests.attest.forgers import Forgers
from tests.attest.oci import FakeRegistry, signature
from tests.attest.sigstore.merkle import Tree
from tests.attest.sigstore.pki import new_key
from tests.attest.world import MALLORY, RENDERER, Office, rendered
from tests.shown.forms import PLATFORM
from tests.shown.sessions import Stage

POLICY = Path(__file__).parents[2] / "policies" / "no-token-secrets.yaml"
COSIGN = Path(__file__).parents[2] / ".tools" / "bin" / "cosign"
SEQUENCE = 7
"""The number of the signature that a signed tree has."""


class Stages:
    """Makes stages; what is dear is made once and copied."""

    def __init__(self, folder: Path, office: Office, foreign: Office, registry: FakeRegistry) -> None:
        self.folder, self.office, self.foreign, self.registry = folder, office, foreign, registry

    @classmethod
    @contextmanager
    def running(cls, folder: Path, office: Office, foreign: Office) -> Iterator[Stages]:
        """With a registry of images, until the context ends."""
        with FakeRegistry.running() as registry:
            image = registry.image("serving/vllm", "0.33.0")
            registry.refer(image, signature(office, image))
            forked = registry.image("serving/fork", "1")
            registry.refer(forked, signature(office, forked, MALLORY))
            registry.image("serving/unsigned", "1")
            yield cls(folder, office, foreign, registry)

    def make(self, form: str, folder: Path) -> Stage:
        """The stage of a form, in a folder that is not there yet."""
        folder.mkdir(parents=True)
        place = folder / "platform"
        match form:
            case "shell":
                place.mkdir()
            case "evidence":
                place.mkdir()
                for name, cases in _RUNS.items():
                    run = Outcome("lab", f"sha256:{'a' * 64}", Record(list(cases), {"order/pod.yaml": "kind: Pod\n"}))
                    run.components["etcd"] = {"version": "v3.7.3", "sha256": f"sha256:{'b' * 64}"}
                    run.logs["etcd.log"] = b"started\n"
                    run.write(place / name)
            case "platform":
                shutil.copytree(PLATFORM, place)
            case "tree":
                shutil.copytree(self._rendered, place, symlinks=True)
            case "signed":
                return self._signed_stage(folder)
            case _:
                raise KeyError(form)
        return Stage(place, hidden=f"{folder}/")

    @cached_property
    def _rendered(self) -> Path:
        place = self._render("plain", None)
        _commit(place)
        return place

    @cached_property
    def _signed(self) -> Path:
        """A platform with a policy, rendered and signed, and beside it what others would put in its place."""
        place = self._render("signed", POLICY)
        tree = place / "rendered"
        signing.write(tree, signing.sign(rendered(tree, SEQUENCE), self.office.signer()))
        self._forge(tree, place.parent / "found")
        self._credentials(place, place.parent / "found")
        _commit(place)
        key = new_key()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (place.parent / "key.pem").write_bytes(private)
        (place.parent / "key.pub").write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        return place

    def _render(self, name: str, policy: Path | None) -> Path:
        place = self.folder / name / "platform"
        copy_example("minimal", place)
        if policy is not None:
            native = re.sub(r"engines: \[.*\]", "engines: [ValidatingAdmissionPolicy]", policy.read_text())
            (place / "policies").mkdir(exist_ok=True)
            (place / "policies" / policy.name).write_text(native)
        assert not render_platform(place, place / "rendered").report.failed
        return place

    def _forge(self, tree: Path, found: Path) -> None:
        """Bundles that hold in themselves: `found/NAME.json` for the list, `found/NAME/` for list and provenance."""
        (self.folder / "forgers").mkdir()
        forgers = Forgers(tree, self.office, self.foreign, self.folder / "forgers")
        found.mkdir()
        for name in ("blob", "future", "first-log-without-stamp", "expired-certificate"):
            (found / f"{name}.json").write_bytes(forgers.bundle(name))
        for name in ("other-list", "newer-schema", "other-predicate"):
            (found / f"{name}.json").write_bytes(forgers.statement(name))
        allowed = self.office.sign(statement("0" * 64, CREDENTIAL, {}))
        (found / credential_bundle("lab")).write_bytes(allowed)
        own = json.loads((tree / ".attestations" / signing.RENDER_BUNDLE).read_bytes())
        own["verificationMaterial"]["tlogEntries"] = []
        (found / "without-log-entry.json").write_text(json.dumps(own))
        later = rendered(tree, SEQUENCE + 1)
        for name, bundles in (
            ("other-issuer", forgers.bundles("other-issuer")),
            ("foreign-sigstore", forgers.bundles("foreign-sigstore")),
            ("twenty-days-ago", self._long_ago(later, forgers)),
            ("forked-log", self._forked(later)),
        ):
            (found / name).mkdir()
            for file, data in bundles.items():
                (found / name / file).write_bytes(data)

    def _long_ago(self, what: Rendered, forgers: Forgers) -> dict[str, bytes]:
        """Both bundles, as they were signed and stamped twenty days ago: sigstore-python would not sign in the past."""
        store = self.office.store
        store.tsa.offset = store.fulcio.offset = timedelta(days=-20)
        try:
            return {
                signing.RENDER_BUNDLE: forgers._unverified(render_statement(what)),
                signing.PROVENANCE_BUNDLE: forgers._unverified(provenance_statement(what, RENDERER)),
            }
        finally:
            store.tsa.offset = store.fulcio.offset = timedelta(0)

    def _forked(self, what: Rendered) -> dict[str, bytes]:
        """Both bundles, in a log that now has other entries before them."""
        log = self.office.store.rekor2
        honest, log.tree = log.tree, Tree()
        try:
            for number in range(5):
                log.tree.add(f"another story {number}".encode())
            return self.office.both(what)
        finally:
            log.tree = honest

    def _signed_stage(self, folder: Path) -> Stage:
        shutil.copytree(self._signed.parent, folder, symlinks=True, dirs_exist_ok=True)
        store = self.office.store
        (folder / "trust.json").write_text(store.trust_config())
        (folder / "root.json").write_text(json.dumps(store.trusted_root()))
        (folder / "token").write_text(store.token(RENDERER))
        (folder / "token-of-a-fork").write_text(store.token(MALLORY))
        self._evidence(folder)
        self._serving(folder / "platform")
        (folder / "cosign-3.1").mkdir()
        if COSIGN.exists():
            (folder / "cosign-3.1" / "cosign").symlink_to(COSIGN)
        issuer = "https://token.example.com"
        who = f"--identity {RENDERER} --issuer {issuer} --trusted-root ../root.json"
        short = {
            "WHO": who,
            "WITH": "--trust-config ../trust.json --identity-token ../token",
            "RENDERER": f"--identity {RENDERER} --issuer {issuer}",
        }
        names = {store.issuer: issuer, self.registry.host: "registry.example.com"}
        return Stage(folder / "platform", short, names, hidden=f"{folder}/", gate=self._gate(folder))

    def _gate(self, folder: Path) -> Gate:
        """The gate that a cluster asks about images; pages ask it without its TLS."""
        client, prover = Registry(plain=[self.registry.host]), self.office.prover()
        root = str(folder / "root.json")
        config = GateConfig.model_validate(
            {
                "tls": {"certificate": root, "key": root},
                "trustedRoot": root,
                "signers": [{"subject": RENDERER, "issuer": self.office.store.issuer}],
                "prefixes": [f"{self.registry.host}/"],
            },
            strict=False,
        )
        return Gate(config, lambda image: verify_image(image, client, prover))

    def _serving(self, place: Path) -> None:
        """A gate of images, a pod whose image is signed, and the lock that knows it."""
        image, signer = (
            self.registry.image("serving/vllm", "0.33.0"),
            {"subject": RENDERER, "issuer": self.office.store.issuer},
        )
        gate = {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": "BlueprintSignedImages",
            "metadata": {"name": "signed-images"},
            "spec": {"parameters": {"prefixes": [f"{self.registry.host}/"], "signers": [signer]}},
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "chat", "namespace": "search"},
            "spec": {"containers": [{"name": "vllm", "image": image}]},
        }
        (place / "serving").mkdir()
        for name, body in (("gate", gate), ("pod", pod)):
            (place / "serving" / f"{name}.yaml").write_text(yaml.safe_dump(body, sort_keys=False, width=200))

    def _evidence(self, folder: Path) -> None:
        """What a sound cluster says of itself, a list of each kind, and the store of its backups."""
        deployment = self._deployment(folder / "platform", folder / "store")
        deployment.write_store()
        deployment.dump(folder / "cluster")

    def _deployment(self, place: Path, store: Path) -> Deployment:
        """A sound cluster with the policies of a rendered platform."""
        deployment = Deployment(store)
        policies = policies_of(World.read([place / "rendered/lab"]))
        deployment.objects = {name: body for name, body in deployment.objects.items() if name not in _OTHERS}
        deployment.objects |= {policy.ref.name + policy.kind: as_seen(dict(policy.body)) for policy in policies}
        deployment.tree = [dict(policy.body) for policy in policies]
        return deployment

    def _credentials(self, place: Path, found: Path) -> None:
        """Credentials of this tree that its pipeline signed and that say what none may say."""
        verdict = verify(of_folder(place / "rendered"), self.office.prover())
        assert verdict.proof is not None
        assert verdict.rendered is not None
        world, policies, backup = self._deployment(place, self.folder / "store").judge()
        here, span = Cluster("lab", world.cluster_uid()), timedelta(days=7)
        made = credential_statement(verdict.proof, verdict.rendered.digest, here, policies, backup, NOW, span)
        for name, change in _CHANGES.items():
            document = json.loads(made)
            change(document["predicate"])
            (found / f"{name}.json").write_bytes(self.office.sign(json.dumps(document).encode()))


def _commit(place: Path) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Render and sign"]):
        subprocess.run(["git", *who, *arguments], cwd=place, check=True, capture_output=True)


_GREEN = Case("order", "waves sync in their order", said="41 objects", seconds=1.5)
_RED = Case("admission", "a Pod in default", negative=True, passed=False, said="it is accepted", seconds=0.5)
_REFUSED = Case("admission", "a Pod in default", negative=True, said="it is refused", seconds=0.5)
_RUNS = {"good": (_GREEN, _REFUSED), "red": (_GREEN, _RED)}
"""What two runs saw: their evidence is written as every run writes it."""

_CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "credential-that-denies": lambda said: said.update(decision="deny"),
    "credential-that-ended": lambda said: said.update(notAfter=ago(minutes=30)),
    "credential-from-later-evidence": lambda said: said["policyEvidence"].update(newest=ago(hours=-1)),
}
_OTHERS = ("validating", "gate", "native", "constraint", "report")
"""Objects of policies that the smallest platform does not have; Kubernetes' own policies leave no report."""
