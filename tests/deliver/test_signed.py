"""Signatures travel: each branch that gets a part of a signed tree can be verified by itself, on every way there."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from blueprint.attest.parts import part_of
from blueprint.new import copy_example

from .repositories import bare, files_at, git, own_config, someone_pushes
from .test_verbs import keep, run

DELIVERY = """apiVersion: platform.blueprint/v1alpha1
kind: Delivery
metadata: {{name: delivery}}
spec:
  repository: {{url: 'file://{remote}', revision: '{revision}'}}
  promotion: [[staging], [eu-west, us-east]]
"""
RENDER, PROVENANCE = (f"rendered/.attestations/{kind}.sigstore.json" for kind in ("render", "provenance"))


class World:
    """A platform of three clusters, its GitOps repository, and a key."""

    def __init__(self, folder, revision):
        self.folder, self.remote, self.platform = folder, bare(folder), folder / "platform"
        self.key, self.public = folder / "key.pem", folder / "key.pub"
        key = ec.generate_private_key(ec.SECP256R1())
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        copy_example("fleet", self.platform)
        (self.platform / "argocd/delivery.yaml").write_text(DELIVERY.format(remote=self.remote, revision=revision))
        git(self.platform, "init", "--quiet", "--initial-branch=main")
        keep(self.platform, "Start")

    def signed(self, words=""):
        """Render, sign and keep; after a change of a spec where there is one."""
        if words:
            spec = self.platform / "apps/research/sweep.yaml"
            spec.write_text(spec.read_text().replace("1200Gi", words))
        run(self.platform, "render")
        run(self.platform, "sign", "rendered", "--key", self.key, "--branches", ".")
        keep(self.platform, words or "Render")

    def verified(self, branch, *options, code=0):
        """What `verify` says of a fresh clone of a branch."""
        clone = self.folder / f"clone-{branch.replace('/', '-')}-{len(list(self.folder.iterdir()))}"
        git(self.folder, "clone", "--quiet", "--branch", branch, str(self.remote), clone.name)
        call = ("verify", "rendered", "--key", self.public, *options, "-o", "json")
        return json.loads(run(clone, *call, code=code).stdout)


@pytest.fixture
def world(tmp_path, monkeypatch):
    own_config(monkeypatch, tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda revision: World(tmp_path, revision)


def test_each_cluster_has_a_branch_of_its_own(world):
    here = world("env/{cluster}")
    here.signed()
    run(here.platform, "verify", "rendered", "--key", here.public)  # the whole, with the parts beside it
    run(here.platform, "commit", "--tree", "rendered")
    first = here.verified("env/staging", "--cluster", "staging")
    assert first["holds"] and first["proven"]["sequence"] == 1
    assert "SIG111" in str(here.verified("env/staging", "--cluster", "eu-west", code=1))
    run(here.platform, "promote", "production")
    for name in ("eu-west", "us-east"):
        assert here.verified(f"env/{name}", "--cluster", name)["holds"]
        held = files_at(here.remote, f"env/{name}")
        assert {path for path in held if "/.attestations/" in path} == {RENDER, PROVENANCE}
        assert {path.split("/")[1] for path in held} == {name, ".attestations", "blueprint.lock"}

    here.signed("1100Gi")
    run(here.platform, "commit", "--tree", "rendered")
    again = here.verified("env/staging", "--cluster", "staging")
    assert again["proven"]["sequence"] == 2 and again["proven"]["treeDigest"] != first["proven"]["treeDigest"]
    assert here.verified("env/eu-west")["proven"]["sequence"] == 1
    run(here.platform, "promote", "eu-west")
    assert here.verified("env/eu-west")["proven"]["sequence"] == 2
    run(here.platform, "promote", "eu-west", "--back")
    assert here.verified("env/eu-west")["proven"]["sequence"] == 1


def test_an_environment_of_two_clusters_has_one_signature(world):
    here = world("env/{environment}")
    here.signed()
    assert (here.platform / f"rendered/.attestations/render.{part_of(['us-east', 'eu-west'])}.sigstore.json").is_file()
    run(here.platform, "commit", "--tree", "rendered")
    run(here.platform, "promote", "eu-west")
    # Half of what was signed together: the branch is no tree that anybody signed.
    assert "SIG101" in str(here.verified("env/production", code=1))
    run(here.platform, "promote", "us-east")
    assert here.verified("env/production", "--cluster", "eu-west")["holds"]
    edited = "rendered/eu-west/bootstrap/edited.yaml"
    someone_pushes(here.remote, "edited", "kind: ConfigMap\n", branch="env/production", path=edited)
    assert "SIG203" in str(here.verified("env/production", code=1))


def test_on_one_branch_the_signature_comes_when_all_clusters_run_what_was_signed(world):
    here = world("main")
    here.signed()
    assert not list((here.platform / "rendered/.attestations").glob("render.*.sigstore.json"))  # no branch has a part
    told = run(here.platform, "commit", "--tree", "rendered").stderr
    assert "warning: no signature holds on main: it has only a part of what was signed together" in told
    assert "SIG101" in str(here.verified("main", code=1))
    assert not run(here.platform, "promote", "production").stderr
    assert here.verified("main", "--cluster", "us-east")["holds"]

    here.signed("1100Gi")
    several = "no signature holds on main until its 3 clusters run one release, and not 2"
    assert f"warning: {several}" in run(here.platform, "commit", "--tree", "rendered").stderr
    (planned,) = json.loads(run(here.platform, "promote", "eu-west", "--dry-run", "-o", "json").stdout)["deliveries"]
    assert (planned["status"], planned["note"]) == ("planned", several)
    told = run(here.platform, "promote", "eu-west").stderr
    assert told.count("warning: ") == 1 and several in told
    assert here.verified("main", code=1)["findings"]
    assert not run(here.platform, "promote", "us-east").stderr
    assert here.verified("main")["holds"]
    assert several in run(here.platform, "promote", "us-east", "--back").stderr
    run(here.platform, "promote", "us-east")
    assert here.verified("main")["proven"]["sequence"] == 2


def test_a_tree_that_is_signed_later_is_committed_again(world):
    here = world("env/{cluster}")
    run(here.platform, "render")
    keep(here.platform, "Render")
    run(here.platform, "commit", "--tree", "rendered")
    run(here.platform, "promote", "production")
    assert "SIG101" in str(here.verified("env/us-east", code=1))
    here.signed()
    run(here.platform, "commit", "--tree", "rendered")
    assert here.verified("env/staging")["holds"]
    run(here.platform, "promote", "production")
    assert here.verified("env/us-east")["holds"]


def test_a_part_that_is_not_of_the_whole_is_refused(world):
    here = world("env/{cluster}")
    here.signed()
    folder = here.platform / "rendered/.attestations"
    old = {path.name: path.read_bytes() for path in folder.iterdir() if ".staging." in path.name}
    assert len(old) == 2
    here.signed("1000Gi")
    for name, data in old.items():
        (folder / name).write_bytes(data)  # validly signed, of the tree before
    keep(here.platform, "Old parts")
    assert "SIG109" in run(here.platform, "verify", "rendered", "--key", here.public, code=1).stdout
    for name in old:
        (folder / name).write_text("{}")
    assert run(here.platform, "verify", "rendered", "--key", here.public, code=1).stdout
    for name in sorted(old)[:1]:
        (folder / name).unlink()
    assert run(here.platform, "verify", "rendered", "--key", here.public, code=1).stdout
