"""cosign and we agree: on what the other signed, on blobs, statements and images, and on every forgery of a bundle."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from sigstore.models import Bundle
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity as ExactIdentity
from typer.testing import CliRunner

from blueprint.attest import cosign as second
from blueprint.attest import sign as signing
from blueprint.attest.bundle import MEDIA_TYPE, ByKey
from blueprint.attest.evidence import written
from blueprint.attest.filelist import as_dicts, canonical, of_folder
from blueprint.attest.imagelock import read_lock
from blueprint.attest.images import verify_image
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Registry as OurRegistry
from blueprint.attest.statement import PROVENANCE, RENDER, provenance_statement, render_statement
from blueprint.attest.trust import Identity
from blueprint.attest.verify import verify
from blueprint.cli import app
from tests.attest.conftest import foreign, office, signed_tree, tree  # noqa: F401 - fixtures
from tests.attest.forgery import Scene
from tests.attest.oci import INDEX, MANIFEST, provenance, signature
from tests.attest.test_tampering import ROWS, forgers  # noqa: F401 - a fixture
from tests.attest.world import MALLORY, RENDERER, Office, listing, rendered, write_tree
from tests.conformance.conftest import program

pytestmark = pytest.mark.conformance

EMPTY = "application/vnd.oci.empty.v1+json"


def digest_of(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


@dataclass
class Cosign:
    """cosign in a folder of its own, with the trusted root of one Sigstore, and without any of its own."""

    folder: Path
    office: Office

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program("cosign")), *map(str, arguments)],
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"], "COSIGN_PASSWORD": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def done(self, *arguments: str | Path) -> str:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    @property
    def trust(self) -> list[str]:
        (self.folder / "root.json").write_text(json.dumps(self.office.store.trusted_root()))
        return ["--trusted-root", "root.json"]

    @property
    def services(self) -> list[str]:
        (self.folder / "services.json").write_text(json.dumps(self.office.store.signing_config()))
        (self.folder / "token").write_text(self.office.store.token(RENDERER))
        return [*self.trust, "--signing-config", "services.json", "--identity-token", "token", "-y"]

    @property
    def signer(self) -> list[str]:
        return ["--certificate-identity", RENDERER, "--certificate-oidc-issuer", self.office.store.issuer]


@pytest.fixture
def cosign(tmp_path: Path, office: Office) -> Cosign:  # noqa: F811
    return Cosign(tmp_path, office)


@pytest.fixture
def root_file(tmp_path: Path, office: Office) -> Path:  # noqa: F811
    file = tmp_path / "trust.json"
    file.write_text(office.store.trust_config())
    return file


def test_cosign_accepts_what_we_sign(
    tree: Path,  # noqa: F811
    office: Office,  # noqa: F811
    root_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{program('cosign').parent}:{os.environ['PATH']}")
    before = len(office.store.requests)
    second.agree(listing(tree), [Identity(RENDERER, office.store.issuer)], root_file)
    assert len(office.store.requests) == before
    with pytest.raises(Refused, match="cosign refuses"):
        second.agree(listing(tree), [Identity(RENDERER, "https://elsewhere.example.com")], root_file)


def test_cosign_accepts_our_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "rendered"
    root.mkdir()
    write_tree(root)
    key = ec.generate_private_key(ec.SECP256R1())
    public = tmp_path / "key.pub"
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    signing.write(root, signing.sign(rendered(root), signing.WithKey(key)))
    monkeypatch.setenv("PATH", f"{program('cosign').parent}:{os.environ['PATH']}")
    second.agree(of_folder(root), (), None, (public,))
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    stranger = tmp_path / "other.pub"
    stranger.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    second.agree(of_folder(root), (), None, (stranger, public))
    with pytest.raises(Refused, match="cosign refuses"):
        second.agree(of_folder(root), (), None, (stranger,))


def test_we_accept_a_tree_that_cosign_signs(tmp_path: Path, cosign: Cosign, office: Office) -> None:  # noqa: F811
    root = tmp_path / "rendered"
    root.mkdir()
    write_tree(root)
    what = rendered(root)
    (tmp_path / "rendered-tree").write_bytes(canonical(as_dicts(what.files)))
    for statement, kind, name in (
        (render_statement(what), RENDER, signing.RENDER_BUNDLE),
        (provenance_statement(what, RENDERER), PROVENANCE, signing.PROVENANCE_BUNDLE),
    ):
        (tmp_path / "predicate.json").write_text(json.dumps(json.loads(statement)["predicate"]))
        given = ["--predicate", "predicate.json", "--type", kind, "--bundle", name]
        cosign.done("attest-blob", *cosign.services, *given, "rendered-tree")
        signing.write(root, {name: (tmp_path / name).read_bytes()})
    verdict = verify(listing(root), office.prover())
    assert verdict.findings == ()
    assert verdict.rendered == what


def test_blobs_both_ways(cosign: Cosign, office: Office, tmp_path: Path) -> None:  # noqa: F811
    blob = tmp_path / "blob"
    blob.write_bytes(b"some bytes")
    (tmp_path / "ours.json").write_bytes(office.blob(b"some bytes"))
    cosign.done("verify-blob", *cosign.trust, *cosign.signer, "--bundle", "ours.json", blob)
    cosign.done("sign-blob", *cosign.services, "--bundle", "theirs.json", blob)
    bundle = Bundle.from_json((tmp_path / "theirs.json").read_bytes())
    policy = ExactIdentity(identity=RENDERER, issuer=office.store.issuer)
    Verifier(trusted_root=office.root).verify_artifact(b"some bytes", bundle, policy)
    blob.write_bytes(b"other bytes")
    assert cosign.run("verify-blob", *cosign.trust, *cosign.signer, "--bundle", "ours.json", blob).returncode != 0


def test_our_own_key_verifies_what_cosign_signs_by_it(cosign: Cosign, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    cosign.done("import-key-pair", "--key", "key.pem", "-y")
    cosign.done("signing-config", "create", "--out", "none.json")
    (tmp_path / "rendered-tree").write_bytes(b"[]")
    (tmp_path / "predicate.json").write_text("{}")
    given = ["--predicate", "predicate.json", "--type", "https://example.com/x", "--bundle", "key.json"]
    cosign.done(
        "attest-blob", "--key", "import-cosign.key", "--signing-config", "none.json", "-y", *given, "rendered-tree"
    )
    proof = ByKey([key.public_key()]).prove((tmp_path / "key.json").read_bytes())
    assert json.loads(proof.payload)["subject"][0]["name"] == "rendered-tree"


CONCERNS_COSIGN = [row for row in ROWS if row.get("cosign")]


@pytest.mark.parametrize("row", CONCERNS_COSIGN, ids=[row["attack"] for row in CONCERNS_COSIGN])
def test_cosign_refuses_forgeries_too(
    row: dict[str, Any],
    tree: Path,  # noqa: F811
    office: Office,  # noqa: F811
    forgers: Any,  # noqa: F811
    root_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Scene(tree, forgers).run(dict(row["do"]))
    monkeypatch.setenv("PATH", f"{program('cosign').parent}:{os.environ['PATH']}")
    with pytest.raises(Refused, match="cosign refuses"):
        second.agree(listing(tree), [Identity(RENDERER, office.store.issuer)], root_file)


# --- images


@dataclass
class Registry:
    """A registry of go-containerregistry in a folder of memory, and images in it."""

    host: str
    folder: Path

    def image(self, name: str) -> str:
        """A new image with one layer; its reference by digest."""
        layer = self.folder / f"{name}.tar"
        with tarfile.open(layer, "w") as archive:
            archive.add(__file__, arcname=name)
        tag = f"{self.host}/serving/{name}:1"
        crane = [str(program("crane"))]
        subprocess.run(
            [*crane, "append", "--insecure", "--oci-empty-base", "-f", layer, "-t", tag],
            check=True,
            capture_output=True,
        )
        done = subprocess.run([*crane, "digest", "--insecure", tag], check=True, capture_output=True, text=True)
        return f"{self.host}/serving/{name}@{done.stdout.strip()}"

    def attach(self, image: str, *bundles: bytes) -> None:
        """Bundles as artifacts that refer to an image, as OCI 1.1 says and cosign 3 does."""
        repository, _, digest = image.removeprefix(f"{self.host}/").partition("@")
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [self._artifact(image, each) for each in bundles]}
        try:
            self._ask("GET", f"{repository}/referrers/{digest}")
        except HTTPError:
            # A registry without that API: clients keep an index under a tag (distribution-spec, "Referrers Tag").
            self._ask("PUT", f"{repository}/manifests/{digest.replace(':', '-')}", json.dumps(index).encode(), INDEX)

    def _artifact(self, image: str, bundle: bytes) -> dict[str, Any]:
        repository, _, digest = image.removeprefix(f"{self.host}/").partition("@")
        rows = [self._blob(repository, data, kind) for data, kind in ((b"{}", EMPTY), (bundle, MEDIA_TYPE))]
        subject = {
            "mediaType": MANIFEST,
            "digest": digest,
            "size": len(self._ask("GET", f"{repository}/manifests/{digest}")),
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": MEDIA_TYPE,
            "config": rows[0],
            "layers": [rows[1]],
            "subject": subject,
        }
        data = json.dumps(manifest).encode()
        row = {"mediaType": MANIFEST, "digest": digest_of(data), "size": len(data), "artifactType": MEDIA_TYPE}
        self._ask("PUT", f"{repository}/manifests/{row['digest']}", data, MANIFEST)
        return row

    def _blob(self, repository: str, data: bytes, kind: str) -> dict[str, Any]:
        self._ask("POST", f"{repository}/blobs/uploads/?digest={digest_of(data)}", data, "application/octet-stream")
        return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}

    def _ask(self, method: str, path: str, data: bytes | None = None, kind: str = "") -> bytes:
        headers = {"Content-Type": kind} if kind else {"Accept": MANIFEST}
        request = Request(f"http://{self.host}/v2/{path}", data, headers, method=method)
        with urlopen(request, timeout=10) as answer:
            return bytes(answer.read())


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with serving(tmp_path) as running:
        yield running


@contextmanager
def serving(folder: Path) -> Iterator[Registry]:
    """A registry on loopback, until the context ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(program("crane")), "registry", "serve", "--address", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Registry(f"127.0.0.1:{port}", folder)
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_images_that_sigstore_python_signs_pass_cosign_and_our_gate(
    cosign: Cosign,
    office: Office,  # noqa: F811
    registry: Registry,
) -> None:
    """Whoever builds images signs them, with the library that we use as well as with cosign: one form, two readers."""
    plain = ["--allow-insecure-registry", "--allow-http-registry"]
    client = OurRegistry(plain=[registry.host])
    good, other, twice = (registry.image(name) for name in ("ours", "other", "twice"))
    registry.attach(good, signature(office, good), provenance(office, good))
    registry.attach(other, signature(office, good))
    digests = tuple(image.rpartition(":")[2] for image in (twice, good))
    registry.attach(twice, signature(office, twice, predicate="https://slsa.dev/provenance/v1", digests=digests))
    cosign.done("verify", *cosign.trust, *cosign.signer, *plain, good)
    assert verify_image(good, client, office.prover(), max_age=timedelta(hours=1)).identity == RENDERER
    assert cosign.run("verify", *cosign.trust, *cosign.signer, *plain, other).returncode != 0
    # Here we are stricter: cosign 3.1.3 takes any statement that names the image for its signature.
    assert cosign.run("verify", *cosign.trust, *cosign.signer, *plain, twice).returncode == 0
    for image, code in ((other, "SIG108"), (twice, "SIG403")):
        with pytest.raises(Refused) as caught:
            verify_image(image, client, office.prover())
        assert caught.value.code == code
    somebody = ["--certificate-identity", MALLORY, "--certificate-oidc-issuer", office.store.issuer]
    assert cosign.run("verify", *cosign.trust, *somebody, *plain, good).returncode != 0


def test_the_lock_takes_images_that_either_signs(
    cosign: Cosign,
    office: Office,  # noqa: F811
    registry: Registry,
    root_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`blueprint images lock` over a real registry: signed by cosign, signed by sigstore-python, and by nobody."""
    theirs, ours, nobody = (registry.image(name) for name in ("theirs", "ours", "nobody"))
    cosign.done("sign", *cosign.services, "--allow-insecure-registry", "--allow-http-registry", theirs)
    registry.attach(ours, signature(office, ours))
    monkeypatch.chdir(cosign.folder)
    who = ["--identity", RENDERER, "--issuer", office.store.issuer, "--trusted-root", str(root_file)]
    given = [*who, "--plain-http", registry.host]
    tags = [f"{registry.host}/serving/{name}:1" for name in ("theirs", "ours")]
    done = CliRunner().invoke(app, ["images", "lock", *tags, *given])
    assert done.exit_code == 0, done.output
    assert {row.digest for row in read_lock(Path("images.lock")).values()} == {
        image.partition("@")[2] for image in (theirs, ours)
    }
    refused = CliRunner().invoke(app, ["images", "lock", nobody, *given])
    assert (refused.exit_code, "SIG403" in refused.output) == (1, True)


def test_images_that_cosign_signs_pass_our_gate(cosign: Cosign, office: Office, registry: Registry) -> None:  # noqa: F811
    good, unsigned = registry.image("good"), registry.image("unsigned")
    plain = ["--allow-insecure-registry", "--allow-http-registry"]
    cosign.done("sign", *cosign.services, *plain, good)
    cosign.done("verify", *cosign.trust, *cosign.signer, *plain, good)
    client = OurRegistry(plain=[registry.host])
    found = verify_image(good, client, office.prover())
    assert (found.identity, found.issuer, found.built_at) == (RENDERER, office.store.issuer, None)
    finished = written(datetime.now(UTC) - timedelta(minutes=30))
    says = {"buildDefinition": {}, "runDetails": {"builder": {"id": RENDERER}, "metadata": {"finishedOn": finished}}}
    (cosign.folder / "predicate.json").write_text(json.dumps(says))
    given = ["--predicate", "predicate.json", "--type", "slsaprovenance1"]
    cosign.done("attest", *cosign.services, *plain, *given, good)
    assert verify_image(good, client, office.prover(), max_age=timedelta(hours=1)).built_at is not None
    for image, prover, code in (
        (unsigned, office.prover(), "SIG403"),
        (good, office.prover("somebody@example.com"), "SIG104"),
        (good.partition("@")[0] + ":1", office.prover(), "SIG401"),
    ):
        with pytest.raises(Refused) as caught:
            verify_image(image, client, prover)
        assert caught.value.code == code
