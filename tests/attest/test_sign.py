"""Signing: what is signed, what keeps a tree from being signed, and that nothing goes out unverified."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from sigstore.models import ClientTrustConfig

from blueprint.attest import sign as signing
from blueprint.attest.bundle import ByKey
from blueprint.attest.filelist import LARGEST_BUNDLE, of_commit, of_folder
from blueprint.attest.refusal import Refused, said
from blueprint.attest.statement import PROVENANCE, RENDER, render_statement
from blueprint.attest.verify import Demands, verify
from blueprint.cli import attesting
from blueprint.errors import EnvironmentLacks, UsageError
from tests.attest.world import FILES, RENDERER, Office, listing, rendered, write_tree
from tests.loopback import http_server


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    root = tmp_path / "rendered"
    root.mkdir()
    write_tree(root)
    return root


@pytest.mark.parametrize("rekor", [1, 2])
def test_signs_and_verifies_with_both_generations_of_the_log(office: Office, bare: Path, rekor: int) -> None:
    what = rendered(bare)
    signing.write(bare, signing.sign(what, office.signer(rekor=rekor)))
    verdict = verify(listing(bare), office.prover())
    assert verdict.findings == ()
    assert verdict.rendered == what
    assert verdict.proof is not None
    assert (verdict.proof.signer, verdict.proof.issuer) == (RENDERER, office.store.issuer)
    assert verdict.proof.signed_at is not None
    assert verdict.proof.logged is not None
    assert verdict.proof.logged.index > 0


def test_statements_say_what_was_rendered(bare: Path, office: Office) -> None:
    bundles = signing.sign(rendered(bare, sequence=3), office.signer())
    statements = {name: json.loads(office.prover().prove(data).payload) for name, data in bundles.items()}
    listed, provenance = statements[signing.RENDER_BUNDLE], statements[signing.PROVENANCE_BUNDLE]
    assert listed["subject"] == provenance["subject"]
    assert (listed["predicateType"], provenance["predicateType"]) == (RENDER, PROVENANCE)
    assert listed["predicate"]["sequence"] == 3
    assert listed["predicate"]["files"][0]["path"] == "blueprint.lock"
    assert listed["predicate"]["clusters"]["prod-a"]["schemas"] == "sha256:" + "2" * 64
    assert provenance["predicate"]["runDetails"]["builder"]["id"] == RENDERER
    assert {"uri": "blueprint:inputs", "digest": {"sha256": "1" * 64}} in (
        provenance["predicate"]["buildDefinition"]["resolvedDependencies"]
    )


def test_the_same_tree_has_the_same_statement(tmp_path: Path, bare: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write_tree(again)
    assert render_statement(rendered(bare)) == render_statement(rendered(again))


def test_sequence_counts_on(tree: Path, office: Office) -> None:
    what, findings = signing.to_sign(of_folder(tree))
    assert what is not None
    assert (what.sequence, what.previous, findings) == (8, what.digest, [])
    refused, why = signing.to_sign(of_folder(tree), sequence=7)
    assert refused is None
    assert [finding.code for finding in why] == ["SIG110"]


def test_a_number_that_nobody_counted_to_is_not_counted_on(bare: Path) -> None:
    """Whoever may push could otherwise end the stream: after the highest number no signature follows."""
    payload = {
        "predicateType": RENDER,
        "subject": [{"digest": {"sha256": "0" * 64}}],
        "predicate": {"sequence": 2**53 - 3},
    }
    envelope = {"dsseEnvelope": {"payload": base64.b64encode(json.dumps(payload).encode()).decode()}}
    (bare / ".attestations").mkdir()
    (bare / ".attestations" / signing.RENDER_BUNDLE).write_text(json.dumps(envelope))
    refused, why = signing.to_sign(of_folder(bare))
    assert refused is None
    assert [(finding.code, "--sequence" in finding.fix) for finding in why] == [("SIG110", True)]
    what, findings = signing.to_sign(of_folder(bare), sequence=9)
    assert what is not None
    assert (what.sequence, findings) == (9, [])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda root: (root / "prod-a/chat/service-chat.yaml").write_text("x: 1\n"), "TRE201"),
        (lambda root: (root / "prod-a/chat/service-chat.yaml").unlink(), "TRE202"),
        (lambda root: (root / "prod-a/chat/extra.yaml").write_text("x: 1\n"), "SIG203"),
        (lambda root: (root / "prod-a/chat/.argocd-source-chat.yaml").write_text("x: 1\n"), "SIG203"),
        (lambda root: (root / "prod-a/link.yaml").symlink_to("chat/service-chat.yaml"), "SIG205"),
        (lambda root: (root / ".gitattributes").write_text("*.yaml ident\n"), "SIG207"),
        (lambda root: (root / ".attestations").mkdir() or (root / ".attestations/a.yaml").write_text("x"), "SIG208"),
    ],
)
def test_a_tree_that_is_not_its_lock_is_not_signed(bare: Path, change: object, code: str) -> None:
    change(bare)  # type: ignore[operator]
    what, findings = signing.to_sign(of_folder(bare))
    assert what is None
    assert code in {finding.code for finding in findings}


def test_harmless_attributes_are_signed(bare: Path, office: Office) -> None:
    (bare / ".gitattributes").write_text("* -text\n# a comment with filter=x\n")
    signing.write(bare, signing.sign(rendered(bare), office.signer()))
    assert verify(listing(bare), office.prover()).holds


def test_no_lock_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no rendered tree"):
        signing.to_sign(of_folder(tmp_path))


def test_a_missing_time_stamp_is_an_error(bare: Path, office: Office) -> None:
    """sigstore-python only warns when the authority fails, and hands out a bundle without a time."""
    signer = office.signer(rekor=1)
    office.store.tsa.down = True
    try:
        with pytest.raises(Refused) as caught:
            signing.sign(rendered(bare), signer)
    finally:
        office.store.tsa.down = False
    assert caught.value.code == "SIG105"
    config = office.config(tsa=False)
    with pytest.raises(UsageError, match="no time stamp authority"):
        signing.Keyless(config, signing.identity_token(config, _token(bare, office)))


def test_a_service_that_is_away_is_the_environment(bare: Path, office: Office) -> None:
    elsewhere = json.loads(office.store.trust_config())
    elsewhere["signingConfig"]["caUrls"][0]["url"] = "http://127.0.0.1:9"
    config = ClientTrustConfig.from_json(json.dumps(elsewhere))
    with pytest.raises(EnvironmentLacks) as caught:
        signing.Keyless(config, signing.identity_token(config, _token(bare, office)))
    assert "eyJ" not in caught.value.diagnostics()


def _token(folder: Path, office: Office) -> Path:
    file = folder.parent / "token"
    file.write_text(office.store.token(RENDERER))
    return file


def test_the_identity_of_a_ci_job_signs(bare: Path, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of GitHub gets its token from an address that only it may ask; here that address is one of ours."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            data = json.dumps({"value": office.store.token(RENDERER)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    monkeypatch.delenv("SIGSTORE_ID_TOKEN", raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with http_server(Handler) as server:
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"http://127.0.0.1:{server.server_port}/token?version=2")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job")
        token = signing.identity_token(office.config())
    assert asked == [("/token?version=2&audience=sigstore", "bearer of-the-job")]
    signing.write(bare, signing.sign(rendered(bare), signing.Keyless(office.config(), token)))
    assert verify(listing(bare), office.prover()).holds
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    with pytest.raises(UsageError, match="of no use") as caught:
        signing.identity_token(office.config())
    assert "eyJ" not in caught.value.diagnostics()


def test_tokens_come_from_a_file_or_the_environment(
    bare: Path, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = office.config()
    assert signing.identity_token(config, _token(bare, office)).identity == RENDERER
    monkeypatch.setenv(signing.TOKEN, office.store.token("ci@example.com"))
    assert signing.identity_token(config).identity == "ci@example.com"
    monkeypatch.setenv(signing.TOKEN, "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.secret")
    with pytest.raises(UsageError) as caught:
        signing.identity_token(config)
    assert "secret" not in caught.value.diagnostics()
    monkeypatch.delenv(signing.TOKEN)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="no identity"):
        signing.identity_token(config)


def test_errors_repeat_no_secret() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"
    for text, secret in ((pem, pem.split()[3]), (token, token), ("Bearer abcdef", "abcdef"), (pem[:90], pem[60:90])):
        assert said(ValueError(f"before {text}")) == "before (secret left out)"
        assert secret not in said(ValueError(f"before {text} after"))


# --- keys


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    file = tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


def test_key_mode_verifies_without_time_and_log(bare: Path, key_file: Path) -> None:
    key = signing.private_key(key_file)
    signer = signing.WithKey(key)
    signing.write(bare, signing.sign(rendered(bare), signer))
    verdict = verify(listing(bare), ByKey([key.public_key()]))
    assert verdict.holds
    assert verdict.proof is not None
    assert (verdict.proof.signed_at, verdict.proof.logged) == (None, None)
    aged = verify(listing(bare), ByKey([key.public_key()]), Demands(max_age=timedelta(days=1)))
    assert [finding.code for finding in aged.findings] == ["SIG105"]


def test_key_mode_takes_time_stamps_where_there_is_an_authority(bare: Path, key_file: Path, office: Office) -> None:
    key = signing.private_key(key_file)
    signer = signing.WithKey(key, office.config())
    signing.write(bare, signing.sign(rendered(bare), signer))
    prover = ByKey([key.public_key()], office.root)
    verdict = verify(listing(bare), prover)
    assert verdict.holds
    assert verdict.proof is not None
    assert verdict.proof.signed_at is not None
    other = verify(listing(bare), ByKey([ec.generate_private_key(ec.SECP256R1()).public_key()]))
    assert [finding.code for finding in other.findings] == ["SIG104"]


def test_a_new_stamp_makes_an_old_signature_by_a_key_no_younger(bare: Path, key_file: Path, office: Office) -> None:
    """Anybody can have an old signature stamped again; only a certificate of minutes binds the time from both sides."""
    key = signing.private_key(key_file)
    bundles = signing.sign(rendered(bare), signing.WithKey(key))
    (authority,) = office.config().signing_config.get_tsas()
    for name, data in bundles.items():
        document = json.loads(data)
        signature = base64.b64decode(document["dsseEnvelope"]["signatures"][0]["sig"])
        stamp = base64.b64encode(authority.request_timestamp(signature).as_bytes()).decode()
        stamped = {"rfc3161Timestamps": [{"signedTimestamp": stamp}]}
        document["verificationMaterial"]["timestampVerificationData"] = stamped
        bundles[name] = json.dumps(document).encode()
    signing.write(bare, bundles)
    prover = ByKey([key.public_key()], office.root)
    assert verify(listing(bare), prover).holds
    aged = verify(listing(bare), prover, Demands(max_age=timedelta(days=1)))
    assert [finding.code for finding in aged.findings] == ["SIG105"]


def test_key_and_identity_never_stand_in_for_each_other(bare: Path, tree: Path, key_file: Path, office: Office) -> None:
    key = signing.private_key(key_file)
    signing.write(bare, signing.sign(rendered(bare), signing.WithKey(key)))
    assert [f.code for f in verify(listing(bare), office.prover()).findings] == ["SIG112"]
    assert [f.code for f in verify(listing(tree), ByKey([key.public_key()])).findings] == ["SIG112"]


def test_keys_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key.pem"
    file.write_text("-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n")
    with pytest.raises(UsageError) as caught:
        signing.private_key(file)
    assert "MIGH" not in caught.value.diagnostics()
    locked = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(locked.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"correct horse")))
    monkeypatch.setenv(signing.PASSWORD, "wrong battery")
    with pytest.raises(UsageError) as caught:
        signing.private_key(file)
    assert "battery" not in caught.value.diagnostics()
    monkeypatch.setenv(signing.PASSWORD, "correct horse")
    assert signing.private_key(file).public_key() == locked.public_key()
    monkeypatch.delenv(signing.PASSWORD)
    other = ec.generate_private_key(ec.SECP384R1())
    file.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(UsageError, match="P-256"):
        signing.private_key(file)


# --- commits


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(bare: Path) -> Path:
    top = bare.parent
    _git(top, "init", "-q", "-b", "main")
    _git(top, "add", "rendered")
    _git(top, "commit", "-q", "-m", "Render")
    return top


def test_a_commit_is_signed_whatever_the_checkout_did(repository: Path, bare: Path, office: Office) -> None:
    from_disk, from_commit = of_folder(bare), of_commit(repository, "HEAD", "rendered")
    assert from_disk.rows == from_commit.rows
    (bare / "prod-a/chat/service-chat.yaml").write_text("changed: after the commit\n")
    what, findings = signing.to_sign(of_commit(repository, "HEAD", "rendered"))
    assert what is not None, findings
    signing.write(bare, signing.sign(what, office.signer()))
    _git(repository, "add", "rendered/.attestations")
    _git(repository, "commit", "-q", "-m", "Sign")
    assert verify(of_commit(repository, "HEAD", "rendered"), office.prover()).holds
    assert [f.code for f in verify(listing(bare), office.prover()).findings] == ["SIG201"]


def test_a_commit_with_links_submodules_and_attributes(repository: Path, bare: Path) -> None:
    (bare / "link.yaml").symlink_to("/etc/passwd")
    (repository / ".gitattributes").write_text("*.png filter=lfs\n*.yaml eol=crlf\n")
    _git(repository, "add", "rendered", ".gitattributes")
    _git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},rendered/sub")
    _git(repository, "commit", "-q", "-m", "Trap")
    faults = of_commit(repository, "HEAD", "rendered").faults
    assert {fault.code for fault in faults} == {"SIG205", "SIG207"}
    assert [fault.path for fault in faults if fault.code == "SIG205"] == ["link.yaml", "sub"]
    assert ["eol=crlf" in fault.message for fault in faults if fault.code == "SIG207"] == [True]
    (bare / ".gitattributes").write_text("* -text\n")
    _git(repository, "add", "rendered")
    _git(repository, "commit", "-q", "-m", "Settle")
    assert {fault.code for fault in of_commit(repository, "HEAD", "rendered").faults} == {"SIG205"}


def test_revisions_that_are_not_there(repository: Path) -> None:
    for revision, folder in (("nowhere", "rendered"), ("HEAD", "elsewhere"), ("--help", "rendered")):
        with pytest.raises(UsageError):
            of_commit(repository, revision, folder)


def test_on_the_disk_too_an_application_may_not_take_in_the_signatures(tmp_path: Path, office: Office) -> None:
    """Where the tree lies in its repository is known there as it is of a commit."""
    root = tmp_path / "rendered"
    source = FILES["prod-a/argocd/application-chat.yaml"].replace("recurse: false", "recurse: true")
    for path, codes in (("rendered/prod-a/chat", []), ("elsewhere", []), ("rendered", ["SIG208"]), (".", ["SIG208"])):
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        text = source.replace("rendered/prod-a/chat", path)
        write_tree(root, {**FILES, "prod-a/argocd/application-chat.yaml": text})
        signing.write(root, signing.sign(rendered(root), office.signer()))
        if not (tmp_path / ".git").exists():
            assert attesting.listing(root, None).folder == ""
            subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        verdict = verify(attesting.listing(root, None), office.prover())
        assert [finding.code for finding in verdict.findings] == codes, path


def test_a_bundle_that_is_no_bundle_is_not_called_missing(tree: Path, office: Office) -> None:
    with (tree / ".attestations/render.sigstore.json").open("r+b") as file:
        file.truncate(LARGEST_BUNDLE + 1)
    (finding,) = verify(of_folder(tree), office.prover()).findings
    assert finding.code == "SIG101"
    assert "larger than 64 MiB" in finding.message
