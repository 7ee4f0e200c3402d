"""Signed commits: git and GnuPG, asked as Argo CD asks them, against the policy that is rendered.

Argo CD lists `%H,%G?,%GK` of a commit and, in mode strict, of all its ancestors, and wants G from a key of the policy
(argo-cd v3.6.1 util/git/client.go listRawSignatures, util/sourceintegrity/source_integrity.go).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.render.worlds import PLAIN, World, cluster, team

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")


class Repository:
    """A repository whose commits two people can sign, and a keyring that knows both."""

    def __init__(self, folder: Path, keyring: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "GNUPGHOME": str(keyring), "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        self.keys = {name: self._key(name) for name in ("render", "mallory")}
        self.git("init", "-q", "-b", "main")

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def git(self, *arguments: str) -> str:
        return self.run("git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments)

    def _key(self, name: str) -> str:
        """The fingerprint of a new key, which the keyring trusts as Argo CD's does."""
        address = f"{name}@example.com"
        self.run(
            *("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", address, "ed25519", "sign", "never")
        )
        listed = self.run("gpg", "--batch", "--with-colons", "--list-keys", address)
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def commit(self, signer: str = "") -> None:
        sign = [f"-S{self.keys[signer]}"] if signer else ["--no-gpg-sign"]
        self.git("commit", "-q", "--allow-empty", "-m", "Render", *sign)

    def problems(self, policy: dict[str, Any]) -> list[str]:
        """What Argo CD would object to: every commit in mode strict, the last one in mode head."""
        gpg = policy["gpg"]
        assert policy["repos"] == [{"url": "*"}]
        depth = [] if gpg["mode"] == "strict" else ["--max-count=1"]
        rows = [
            line.split(",")
            for line in self.git("rev-list", *depth, "--no-commit-header", "--format=%G?,%GK", "HEAD").splitlines()
        ]
        return [result for result, key in rows if result != "G" or key not in gpg["keys"]]


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    keyring = Path(tempfile.mkdtemp(prefix="gpg-"))  # sockets have short paths
    (tmp_path / "repository").mkdir()
    try:
        yield Repository(tmp_path / "repository", keyring)
    finally:
        environment = {**os.environ, "GNUPGHOME": str(keyring)}
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False, capture_output=True)
        shutil.rmtree(keyring, ignore_errors=True)


def test_the_rendered_policy_takes_our_commits_and_no_others(repository: Repository, tmp_path: Path) -> None:
    delivery = (
        "apiVersion: platform.blueprint/v1alpha1\nkind: Delivery\nmetadata: {name: delivery}\nspec:\n"
        "  repository: {url: https://git.example.com/platform/gitops.git}\n"
        f"  signingKeys: [{repository.keys['render']}]\n"
    )
    quota = "[{cluster: here, pool: gpu, gpus: 8}]"
    world = World(tmp_path / "specs", cluster(f"[{PLAIN}]"), team(quota), delivery=delivery)
    policies = [
        policy
        for project in world.all("AppProject").values()
        for policy in project["spec"]["sourceIntegrity"]["git"]["policies"]
    ]
    assert len(policies) == 2, "one for the root's project, one for that of its Applications"
    repository.commit("render")
    repository.commit("render")
    assert [repository.problems(policy) for policy in policies] == [[], []]
    repository.commit("mallory")
    assert [repository.problems(policy) for policy in policies] == [["G"], ["G"]], "good, and of somebody else"
    repository.commit("render")
    assert all(repository.problems(policy) for policy in policies), "hidden below a commit of ours"
    repository.git("reset", "-q", "--hard", "HEAD~2")
    repository.commit()
    assert [repository.problems(policy) for policy in policies] == [["N"], ["N"]]
