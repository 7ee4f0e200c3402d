"""`blueprint sign` and `blueprint verify` as a person meets them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import policies_of
from blueprint.cli import app
from blueprint.errors import BlueprintError
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from tests.attest.deployment import UID, Deployment, as_seen
from tests.attest.oci import FakeRegistry, signature
from tests.attest.sigstore.merkle import Tree
from tests.attest.world import MALLORY, RENDERER, Office
from tests.render.worlds import DELIVERY, PLAIN, cluster, job, team

CLUSTER_POLICIES = ("validating", "gate", "native", "constraint")


class Shell:
    """A platform that was rendered, with the files by which its tree is signed and verified."""

    def __init__(self, folder: Path, office: Office, platform: Path) -> None:
        self.folder, self.office = folder, office
        shutil.copytree(platform, folder / "platform")
        (folder / "trust.json").write_text(office.store.trust_config())
        (folder / "root.json").write_text(json.dumps(office.store.trusted_root()))
        (folder / "token").write_text(office.store.token(RENDERER))
        self.who = ["--identity", RENDERER, "--issuer", office.store.issuer, "--trusted-root", "root.json"]

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a call says, in this process, for it is quicker; `test_the_program…` runs it as its own."""
        with chdir(self.folder):
            result = CliRunner().invoke(app, arguments, env={"NO_COLOR": "1", "COLUMNS": "120"})
        said, ended = result.output, result.exit_code
        if isinstance(result.exception, BlueprintError):
            said, ended = said + result.exception.diagnostics(), result.exception.exit_code
        assert result.exception is None or isinstance(result.exception, BlueprintError | SystemExit), result.exception
        assert "eyJ" not in said, "a token was repeated"
        assert ended == code, said
        return said

    def sign(self, *more: str) -> str:
        return self.run("sign", "platform/rendered", "--trust-config", "trust.json", "--identity-token", "token", *more)

    def verify(self, *more: str, code: int = 0) -> str:
        return self.run("verify", "platform/rendered", *self.who, *more, code=code)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest platform, rendered."""
    folder = tmp_path_factory.mktemp("minimal") / "platform"
    copy_example("minimal", folder)
    assert not render_platform(folder, folder / "rendered").report.failed
    return folder


@pytest.fixture
def shell(tmp_path: Path, office: Office, platform: Path) -> Shell:
    return Shell(tmp_path, office, platform)


def test_a_platform_is_signed_and_verified(shell: Shell) -> None:
    signed = shell.sign()
    assert re.match(r"signed: \d+ files, sha256:[0-9a-f]{64}, sequence 1\n", signed)
    assert "sequence 1" in signed
    verified = shell.verify("--cluster", "lab", "--max-age", "1h", "--rerender", "platform", "--log", "ledger")
    assert RENDERER in verified
    assert (shell.folder / "ledger/ledger.json").exists()
    document = json.loads(shell.verify("-o", "json"))
    assert document["holds"] is True
    assert document["proven"]["signer"] == RENDERER
    assert document["proven"]["log"]["index"] > 0
    assert shell.run("render", "platform").endswith("up to date\n"), "signatures are no reason to render"


def test_an_older_tree_is_refused_by_the_ledger(shell: Shell) -> None:
    shell.sign("--sequence", "4")
    older = {file: file.read_bytes() for file in (shell.folder / "platform/rendered/.attestations").iterdir()}
    shell.sign()
    assert "sequence 5" in shell.verify("--log", "ledger")
    for file, data in older.items():
        file.write_bytes(data)
    assert "SIG110" in shell.verify("--log", "ledger", code=1)
    assert "sequence 4" in shell.verify()


def test_an_older_tree_is_refused_whoever_was_asked_about_before(shell: Shell) -> None:
    """With a cluster and without one the same ledger has seen the same tree."""
    signatures = shell.folder / "platform/rendered/.attestations"
    shell.sign("--sequence", "4")
    older = {file: file.read_bytes() for file in signatures.iterdir()}
    shell.sign()
    newer = {file: file.read_bytes() for file in signatures.iterdir()}
    for first, then in ((("--cluster", "lab"), ()), ((), ("--cluster", "lab"))):
        ledger = f"ledger-{len(first)}"
        for file, data in newer.items():
            file.write_bytes(data)
        shell.verify("--log", ledger, *first)
        shell.verify("--log", ledger, *then)
        for file, data in older.items():
            file.write_bytes(data)
        said = shell.verify("--log", ledger, *then, code=1)
        assert "an older tree: its sequence is 4, 5 was seen before of lab" in said


def test_a_damaged_ledger_ends_with_words(shell: Shell) -> None:
    shell.sign()
    shell.verify("--log", "ledger")
    (shell.folder / "ledger/ledger.json").write_text("{")
    assert "the ledger is damaged" in shell.verify("--log", "ledger", code=2)


def test_what_another_platform_renders_is_told(shell: Shell) -> None:
    shell.sign()
    copy_example("reference", shell.folder / "other")
    assert "SIG209" in shell.verify("--rerender", "other", code=1)


def test_what_these_specs_render_is_proven(shell: Shell) -> None:
    """The file that keeps line ends is rendered by nobody; one number in one spec shows, and in which file."""
    (shell.folder / "platform/rendered/.gitattributes").write_text("* -text\n")
    shell.sign()
    shell.verify("--rerender", "platform")
    (spec,) = (shell.folder / "platform/clusters").iterdir()
    text = spec.read_text()
    assert "cpu: 60" in text
    spec.write_text(text.replace("cpu: 60", "cpu: 48"))
    said = shell.verify("--rerender", "platform", code=1)
    assert "blueprint.lock is not what these specs give" in said
    assert "clusterqueue" in said
    spec.write_text(text)
    shell.verify("--rerender", "platform")


def test_another_version_of_blueprint_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.sign()
    monkeypatch.setattr("blueprint.pipeline.__version__", "9.9.9")
    assert "and this is 9.9.9" in shell.verify("--rerender", "platform", code=1)


def test_a_log_that_tells_another_story_is_refused(shell: Shell) -> None:
    """A private log is forked between two signatures: each is valid by itself, and the log cannot prove the other."""
    log = shell.office.store.rekor2
    shell.sign()
    shell.verify("--log", "ledger", "--ask-log")
    honest = log.tree
    try:
        log.tree = Tree()
        for number in range(len(honest.leaves) + 3):
            log.tree.add(f"another story {number}".encode())
        shell.sign()
        shell.verify()
        assert "SIG302" in shell.verify("--log", "ledger", "--ask-log", code=1)
    finally:
        log.tree = honest
    shell.sign()
    assert "sequence 3" in shell.verify("--log", "ledger", "--ask-log"), "what was refused is not kept"
    assert list((shell.folder / "ledger/consistency").rglob("*.json"))
    assert "needs --log" in shell.verify("--ask-log", code=2)


def test_a_commit_is_verified_and_not_the_folder(shell: Shell) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=shell.folder / "platform", check=True, capture_output=True)

    shell.sign()
    git("init", "-q")
    git("add", "rendered")
    git("commit", "-q", "-m", "Render")
    (file,) = (shell.folder / "platform/rendered").rglob("clusterqueue-*.yaml")
    file.write_text(file.read_text() + "# later\n")
    shell.verify("--rev", "HEAD", "--rerender", "platform")
    assert "SIG201" in shell.verify(code=1)
    git("commit", "-q", "-a", "-m", "Change")
    assert "SIG201" in shell.verify("--rev", "HEAD", code=1)
    shell.verify("--rev", "HEAD~1")


def test_findings_and_formats(shell: Shell) -> None:
    shell.sign()
    (shell.folder / "platform/rendered/lab/zz.yaml").write_text("kind: Pod\n")
    assert "SIG203" in shell.verify(code=1)
    document = json.loads(shell.verify("-o", "json", code=1))
    assert document["holds"] is False
    assert document["findings"][0]["name"] == "not-in-the-signed-list"
    assert "SIG203" in shell.verify("-o", "sarif", code=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nobody is named"),
        (("--identity", RENDERER), "nobody is named"),
        (("--issuer", "https://x.example.com"), "nobody is named"),
        (("--identity", "*", "--issuer", "https://x.example.com"), "no exact identity"),
        (("--identity", "", "--issuer", "https://x.example.com"), "no exact identity"),
        (("--identity", "a", "--identity", "b", "--identity", "c", "--issuer", "d", "--issuer", "e"), "neither once"),
        (("--identity", "a", "--issuer", "b", "--key", "k"), "exclude each other"),
        (("--key", "root.json"), "no public key"),
        (("--identity", "a", "--issuer", "b", "--trusted-root", "token"), "no trusted root"),
        (("--identity", "a", "--issuer", "b", "--trusted-root", "nowhere"), "no such file"),
        (("--identity", "a", "--issuer", "b", "--trusted-root", "root.json", "--max-age", "soon"), "no span of time"),
        (("--identity", "a", "--issuer", "b", "--trusted-root", "root.json", "--rev", "HEAD"), "git"),
    ],
)
def test_wrong_calls(shell: Shell, arguments: tuple[str, ...], says: str) -> None:
    assert says in shell.run("verify", "platform/rendered", *arguments, code=2)


def test_wrong_signing(shell: Shell) -> None:
    assert "no rendered tree" in shell.run("sign", "platform", "--trust-config", "trust.json", code=2)
    given = ("--trust-config", "root.json", "--identity-token", "token")
    assert "no client trust config" in shell.run("sign", "platform/rendered", *given, code=2)
    assert "no private key" in shell.run("sign", "platform/rendered", "--key", "token", code=2)


def test_the_program_ends_with_words_and_no_traceback(shell: Shell) -> None:
    shell.sign()
    (shell.folder / "platform/rendered/blueprint.lock").unlink()
    for arguments, code, says in (
        (("verify", "platform/rendered", *shell.who), 1, "SIG202"),
        (("verify", "platform/rendered", "--identity", RENDERER), 2, "nobody is named"),
    ):
        command = [sys.executable, "-m", "blueprint", *arguments]
        done = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=False)
        assert (done.returncode, says in done.stdout + done.stderr) == (code, True)
        assert "Traceback" not in done.stderr


def test_another_signer(shell: Shell) -> None:
    (shell.folder / "token").write_text(shell.office.store.token(MALLORY))
    shell.sign()
    assert "SIG104" in shell.verify(code=1)


def test_no_secret_lies_in_what_was_written(shell: Shell) -> None:
    """The token and private keys are nowhere in the tree, the ledger or the bundles."""
    shell.sign()
    shell.verify("--log", "ledger")
    token = (shell.folder / "token").read_bytes().strip()
    for file in (*(shell.folder / "platform").rglob("*"), *(shell.folder / "ledger").rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            assert token not in data
            assert token.rpartition(b".")[2] not in data
            assert b"PRIVATE KEY" not in data


def test_a_credential_from_the_evidence_of_a_cluster(shell: Shell, repository: Path) -> None:
    (shell.folder / "platform/policies").mkdir(exist_ok=True)
    policy = (repository / "policies/no-token-secrets.yaml").read_text()
    native = re.sub(r"engines: \[.*\]", "engines: [ValidatingAdmissionPolicy]", policy)
    (shell.folder / "platform/policies/no-token-secrets.yaml").write_text(native)
    shell.run("render", "platform")
    shell.sign()
    deployment = Deployment(shell.folder / "store")
    policies = policies_of(World.read([shell.folder / "platform/rendered/lab"]))
    deployment.write_store()
    # Kubernetes' own policies leave no report.
    deployment.objects = {
        name: body for name, body in deployment.objects.items() if name not in (*CLUSTER_POLICIES, "report")
    }
    deployment.objects |= {policy.ref.name + policy.kind: as_seen(dict(policy.body)) for policy in policies}
    deployment.tree = [dict(policy.body) for policy in policies]
    deployment.dump(shell.folder / "objects")
    where = ["platform/rendered", "--cluster", "lab"]
    listed = {f"/{line.partition('/')[2]}" for line in shell.run("credential", "kinds", *where).splitlines()}
    assert listed >= {"/api/v1/namespaces", "/apis/velero.io/v2alpha1/datauploads"}
    assert not any("kyverno" in path for path in listed), "no policy of the tree is Kyverno's"
    given = ["--objects", "objects", "--store", "store"]
    signing = ["--trust-config", "trust.json", "--identity-token", "token"]
    issued = shell.run("credential", "issue", *where, *given, *shell.who[:4], *signing)
    assert "policyHash" in issued
    again = shell.run("credential", "verify", *where, "--uid", UID, *shell.who, "--strict", *given, "-o", "json")
    assert json.loads(again)["credential"]["policyEvidence"] == "cluster"
    assert shell.verify("--cluster", "lab"), "a credential lies among the signatures, and harms nothing"
    assert "CRE302" in shell.run("credential", "verify", *where, "--uid", "another", *shell.who, code=1)
    asked = ["credential", "verify", *where, "--uid", UID, *shell.who]
    shell.run(*asked, "--log", "ledger")
    kept = sorted((shell.folder / "ledger/bundles").iterdir())
    assert len(kept) == 3, "the tree's two bundles, and the credential"
    (shell.folder / "ledger/ledger.json").write_text(
        json.dumps({"schema": 2, "highest": [{"clusters": ["lab"], "sequence": 2, "digest": ""}]})
    )
    assert "SIG110" in shell.run(*asked, "--log", "ledger", code=1), "a credential for an older tree"
    assert "SIG110" in shell.run(
        "credential", "issue", *where, *given, *shell.who[:4], *signing, "--log", "ledger", code=1
    )
    shell.run("credential", "issue", *where, *given, *shell.who[:4], *signing, "--log", "other")
    assert len(list((shell.folder / "other/bundles").iterdir())) == 3
    deployment.objects["backup"]["status"]["phase"] = "PartiallyFailed"
    shutil.rmtree(shell.folder / "objects")
    deployment.dump(shell.folder / "objects")
    refused = shell.run("credential", "issue", *where, *given, *shell.who[:4], *signing, code=1)
    assert "CRE201" in refused
    deployment.objects["backup"]["status"]["phase"] = "Completed"
    shutil.rmtree(shell.folder / "objects")
    deployment.unlisted = ["DataUpload"]
    deployment.dump(shell.folder / "objects")
    refused = shell.run("credential", "issue", *where, *given, *shell.who[:4], *signing, code=1)
    assert "kubectl get --raw /apis/velero.io/v2alpha1/datauploads" in refused


def test_images_of_the_specs_are_locked(shell: Shell) -> None:
    """From a tag in a spec to a digest in the tree; what is not signed is told before anything is written."""
    root = shell.folder / "own"
    (root / "clusters").mkdir(parents=True)
    with FakeRegistry.running() as registry:
        image, other = registry.image("train", "2.9.1"), registry.image("given")
        tag = f"{registry.host}/train:2.9.1"
        signer = {"subject": RENDERER, "issuer": shell.office.store.issuer}
        gate = {
            "apiVersion": "platform.blueprint/v1alpha1",
            "kind": "Policy",
            "metadata": {"name": "signed"},
            "spec": {
                "description": "Images are signed.",
                "engines": ["Kyverno"],
                "images": {"prefixes": [f"{registry.host}/"], "signers": [signer]},
            },
        }
        quota = "[{cluster: here, pool: gpu, gpus: 8}]"
        jobs = [job(pool="gpu", image=tag), job("other", pool="gpu", image=other)]
        texts = (DELIVERY, cluster(f"[{PLAIN}]"), team(quota), *jobs, json.dumps(gate))
        (root / "clusters/all.yaml").write_text("\n---\n".join(texts))
        assert f"blueprint images lock {tag}" in shell.run("render", "own", "--out", "tree", code=1)
        given = ["--lock", "own/images.lock", *shell.who, "--plain-http", registry.host]
        said = shell.run("images", "lock", *given, code=1)
        assert said.count("SIG403") == 2
        assert not (root / "images.lock").exists()
        for each in (image, other):
            registry.refer(each, signature(shell.office, each))
        said = shell.run("images", "lock", *given)
        assert image in said
        assert other in said, "what a gate judges is locked, too"
    shell.run("render", "own", "--out", "tree")
    assert f"{tag}@{image.partition('@')[2]}" in "".join(
        path.read_text() for path in (shell.folder / "tree").rglob("*.yaml")
    )
    shell.run("images", "check", "tree", "--lock", "own/images.lock")
    (root / "clusters/more.yaml").write_text(job("third", pool="gpu", image="registry.example.com/x@sha256:1"))
    assert "SPC136" in shell.run("images", "lock", *given, code=1)


def test_verbs_of_images_say_what_is_missing(shell: Shell) -> None:
    assert "blueprint images lock" in shell.run("images", "check", "platform/rendered", code=2)
    (shell.folder / "images.lock").write_text("{}")
    assert "this is no lock of images" in shell.run("images", "check", "platform/rendered", code=2)
    (shell.folder / "images.lock").write_text('{"version": 1, "images": {}}')
    assert "no image gate" in shell.run("images", "check", "platform/rendered", code=2)
    assert "no platform" in shell.run("images", "lock", *shell.who, code=2)
    given = ["--lock", "platform/images.lock", *shell.who]
    assert "name no image" in shell.run("images", "lock", *given, code=2)


def test_images_are_locked_and_checked(shell: Shell, repository: Path) -> None:
    """An unsigned image is found before the cluster: from the registry to the lock, from the lock to the tree."""
    with FakeRegistry.running() as registry:
        image, unsigned = registry.image("serving/vllm", "0.33.0"), registry.image("serving/other", "1")
        registry.refer(image, signature(shell.office, image))
        given = [*shell.who, "--plain-http", registry.host]
        good, bad = f"{registry.host}/serving/vllm:0.33.0", f"{registry.host}/serving/other:1"
        assert "SIG403" in shell.run("images", "lock", good, bad, *given, code=1)
        assert not (shell.folder / "images.lock").exists()
        assert image in shell.run("images", "lock", good, *given)
        first = (shell.folder / "images.lock").read_bytes()
        shell.run("images", "lock", good, *given)
        assert (shell.folder / "images.lock").read_bytes() == first
        signer = {"subject": RENDERER, "issuer": shell.office.store.issuer}
        gate = {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": "BlueprintSignedImages",
            "metadata": {"name": "signed-images"},
            "spec": {"parameters": {"prefixes": [f"{registry.host}/"], "signers": [signer]}},
        }
        (shell.folder / "tree").mkdir()
        (shell.folder / "tree/gate.json").write_text(json.dumps(gate))
        for name, code in ((image, 0), (unsigned, 1), (good, 1)):
            spec = {"containers": [{"name": "a", "image": name}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "t"}, "spec": spec}
            (shell.folder / "tree/pod.json").write_text(json.dumps(pod))
            assert "SIG40" in shell.run("images", "check", "tree", code=code) or code == 0
        (shell.folder / "tree/pod.yaml").write_text(
            f"kind: Pod\nspec: {{containers: [{{image: {unsigned}}}]}}\n  - broken\n"
        )
        assert "YML" in shell.run("images", "check", "tree", code=1)
        (shell.folder / "tree/gate.json").unlink()
        assert "no image gate" in shell.run("images", "check", "tree", code=2)


def test_verifying_needs_no_network(shell: Shell) -> None:
    """In a network namespace without any interface."""
    apart = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespaces here")
    shell.sign()
    command = [*apart, sys.executable, "-m", "blueprint", "verify", "platform/rendered", *shell.who, "--max-age", "1h"]
    done = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_line_starts_without_sigstore() -> None:
    """It takes 0.4 s to import, which only its own verbs may cost."""
    code = "import sys, blueprint.cli; sys.exit(bool({'sigstore', 'cryptography', 'urllib3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
