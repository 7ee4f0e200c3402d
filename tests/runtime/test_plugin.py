"""Argo CD's plugin by its protocol: the program in the application's folder, its environment, output and exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.attest import sign as signing
from blueprint.runtime.plugin import CONFIG, run
from tests.attest.world import MALLORY, RENDERER, Office, rendered, write_tree


class Sidecar:
    """A repository as Argo CD streams it, and the sidecar's own files beside it."""

    def __init__(self, folder: Path, signed: Path, office: Office) -> None:
        self.folder, self.office = folder, office
        self.repository = folder / "work"
        self.tree = self.repository / "rendered"
        self.repository.mkdir()
        shutil.copytree(signed, self.tree, symlinks=True)
        (folder / "root.json").write_text(json.dumps(office.store.trusted_root()))
        self.config: dict[str, Any] = {
            "trustedRoot": str(folder / "root.json"),
            "signers": [{"subject": RENDERER, "issuer": office.store.issuer}],
        }

    def environment(self, path: str) -> dict[str, str]:
        (self.folder / "blueprint.yaml").write_text(json.dumps(self.config))
        return {CONFIG: str(self.folder / "blueprint.yaml"), "ARGOCD_APP_SOURCE_PATH": path}

    def generate(self, path: str = "rendered/prod-a/chat", code: int = 0, **environment: str) -> str:
        """What comes out of an application's folder; the words where it is refused."""
        done, manifests, words = run(self.repository / path, self.environment(path) | environment)
        assert done == code, words
        assert bool(manifests) == (code == 0), "manifests come out of a verified tree only"
        return manifests.decode() or words

    def refused(self, code: str, path: str = "rendered/prod-a/chat", **environment: str) -> None:
        assert self.generate(path, 1, **environment)[:6] == code


@pytest.fixture
def sidecar(tmp_path: Path, signed_tree: Path, office: Office) -> Sidecar:
    return Sidecar(tmp_path, signed_tree, office)


def test_a_signed_tree_is_emitted(sidecar: Sidecar) -> None:
    documents = list(yaml.safe_load_all(sidecar.generate()))
    assert [document["kind"] for document in documents] == ["Deployment", "Service"]
    assert [document["metadata"]["name"] for document in documents] == ["chat", "chat"]


def test_the_program_is_the_one_that_the_plugin_names(sidecar: Sidecar) -> None:
    """As argocd-cmp-server runs it: the command of plugin.yaml, in the folder, exit code and streams."""
    plugin = yaml.safe_load((resources.files("blueprint.runtime") / "data/plugin.yaml").read_text())
    command = [sys.executable if word == "python" else word for word in plugin["spec"]["generate"]["command"]]
    path = "rendered/prod-a/chat"

    def execute() -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], **sidecar.environment(path)}
        folder = sidecar.repository / path
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    done = execute()
    assert (done.returncode, done.stdout, done.stderr) == (0, sidecar.generate(path), "")
    (sidecar.tree / "blueprint.lock").write_text("{}")
    done = execute()
    assert (done.returncode, done.stdout, done.stderr[:6]) == (1, "", "SIG201")


def test_an_altered_tree_is_refused_wherever_it_was_altered(sidecar: Sidecar) -> None:
    other = sidecar.tree / "prod-b/chat/deployment-chat.yaml"
    kept = other.read_bytes()
    other.write_bytes(kept + b"\n")
    sidecar.refused("SIG201")
    other.write_bytes(kept)
    sidecar.generate()
    (sidecar.tree / "prod-a/chat/zz.yaml").write_text("kind: Pod\n")
    sidecar.refused("SIG203")
    shutil.rmtree(sidecar.tree / ".attestations")
    sidecar.refused("SIG101")


def test_an_application_elsewhere_is_refused(sidecar: Sidecar) -> None:
    (sidecar.repository / "other/prod-a/chat").mkdir(parents=True)
    sidecar.refused("SIG101", "other/prod-a/chat")
    sidecar.refused("SIG101", "rendered")
    sidecar.refused("SIG101", ARGOCD_APP_SOURCE_PATH="rendered/prod-b/chat")
    sidecar.refused("SIG101", ARGOCD_APP_SOURCE_PATH="../work/rendered/prod-a/chat")
    sidecar.refused("SIG101", ARGOCD_APP_SOURCE_PATH="")
    sidecar.refused("SIG111", "rendered/.attestations")
    sidecar.refused("SIG202", "rendered/prod-a")


def test_the_repository_cannot_choose_its_signers(sidecar: Sidecar, office: Office) -> None:
    """Files in the repository, and the environment of an Application, decide nothing."""
    (sidecar.repository / "blueprint.yaml").write_text("signers: []\n")
    sidecar.generate(ARGOCD_ENV_BLUEPRINT_PLUGIN="/nowhere")
    signing.write(sidecar.tree, office.both(rendered(sidecar.tree, sequence=8), MALLORY))
    sidecar.refused("SIG104")


def test_only_the_clusters_of_this_argocd(sidecar: Sidecar) -> None:
    sidecar.config["clusters"] = ["prod-b"]
    sidecar.refused("SIG111")
    sidecar.generate("rendered/prod-b/chat")


def test_an_older_tree_is_refused_once_a_newer_was_seen(sidecar: Sidecar, office: Office) -> None:
    sidecar.config["ledger"] = str(sidecar.folder / "ledger")
    older = {file.name: file.read_bytes() for file in (sidecar.tree / ".attestations").iterdir()}
    sidecar.generate()
    signing.write(sidecar.tree, office.both(rendered(sidecar.tree, sequence=8)))
    sidecar.generate()
    signing.write(sidecar.tree, older)
    sidecar.refused("SIG110")


def test_a_tree_under_another_folder(sidecar: Sidecar, office: Office) -> None:
    sidecar.config["tree"] = "deploy/out"
    tree = sidecar.repository / "deploy/out"
    tree.mkdir(parents=True)
    write_tree(tree)
    signing.write(tree, office.both(rendered(tree)))
    sidecar.generate("deploy/out/prod-a/queues")


@pytest.mark.parametrize(
    "change", [{"signers": []}, {"signers": [{"subject": "x"}]}, {"trustedRoot": "nowhere"}, {"anybody": True}]
)
def test_wrong_configurations_emit_nothing(sidecar: Sidecar, change: dict[str, Any]) -> None:
    sidecar.config |= change
    sidecar.generate(code=2)


def test_a_ledger_that_cannot_be_written_emits_nothing(sidecar: Sidecar) -> None:
    (sidecar.folder / "ledger").write_text("a file")
    sidecar.config["ledger"] = str(sidecar.folder / "ledger")
    assert "cannot be read" in sidecar.generate(code=3)


def test_the_sidecar_has_least_privilege_and_no_image() -> None:
    patch = yaml.safe_load((resources.files("blueprint.runtime") / "data/sidecar.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert "image" not in container
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    volumes = {volume["name"] for volume in patch["spec"]["template"]["spec"]["volumes"]}
    assert volumes <= {mount["name"] for mount in container["volumeMounts"]}
