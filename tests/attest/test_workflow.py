"""The workflow of docs/signing.md from the pull request to Argo CD: its scripts are run as a runner runs them.

What a runner brings is here: a clone for `actions/checkout`, `blueprint` in PATH for the installation, and a token for
`id-token: write`. The Sigstore is that of the tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.new import copy_example
from blueprint.runtime.plugin import CONFIG, run
from tests.attest.world import RENDERER, Office

INSTALL = 'python -m pip install "$BLUEPRINT_PACKAGE"'
STEPS = {"OWNER/blueprint@REVISION": "action.yml", "OWNER/blueprint/actions/sign@REVISION": "actions/sign/action.yml"}
WHO = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
APPLICATION = "rendered/lab/queues"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Forge:
    """A bare repository, somebody's clone of it, and the runs of the workflow."""

    def __init__(self, folder: Path, repository: Path, office: Office) -> None:
        self.folder, self.sources, self.office = folder, repository, office
        page = (repository / "docs/signing.md").read_text("utf-8")
        (text,) = re.findall(r"```yaml\n(on:\n.*?)```", page, re.DOTALL)
        self.workflow: dict[Any, Any] = yaml.safe_load(text)
        (folder / "root.json").write_text(json.dumps(office.store.trusted_root()))
        (folder / "trust.json").write_text(office.store.trust_config())
        (folder / "bin").mkdir()
        program = folder / "bin/blueprint"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m blueprint "$@"\n')
        program.chmod(0o755)
        self.remote, self.clone = folder / "remote.git", folder / "clone"
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.remote))
        git(folder, "clone", "-q", str(self.remote), str(self.clone))
        git(self.clone, "checkout", "-q", "-b", "main")
        copy_example("minimal", self.clone)
        self.render()
        self.commit("Start")
        git(self.clone, "push", "-q", "origin", "main")
        self.runs = 0

    def render(self) -> None:
        self._bash(self.clone, "blueprint render .", {})

    def commit(self, words: str) -> str:
        git(self.clone, "add", "--all")
        git(self.clone, "commit", "-q", "-m", words)
        return git(self.clone, "rev-parse", "HEAD")

    def change(self, cores: int) -> None:
        """Another quota, rendered."""
        (spec,) = (self.clone / "clusters").iterdir()
        spec.write_text(re.sub(r"cpu: \d+", f"cpu: {cores}", spec.read_text("utf-8"), count=1))
        self.render()

    def job(self, name: str, revision: str = "main", base: str = "", *, moved: bool = False) -> tuple[int, str]:
        """Run a job in a workspace of its own; exit code and words of the step at which it ended.

        `moved`: somebody pushes between the checkout and the next step.
        """
        self.runs += 1
        job, workspace = self.workflow["jobs"][name], self.folder / f"run-{self.runs}"
        rights = job.get("permissions", self.workflow["permissions"])
        known = {"github.event.pull_request.base.sha": base, "vars.BLUEPRINT_PACKAGE": "blueprint"}
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                with_ = step.get("with", {})
                git(self.folder, "clone", "-q", str(self.remote), str(workspace))
                git(workspace, "checkout", "-q", f"origin/{with_['ref']}" if "ref" in with_ else revision)
                if moved:
                    self.change(40)
                    self.commit("Move")
                    git(self.clone, "push", "-q", "origin", "main")
            elif step.get("run") == INSTALL:
                continue
            elif "uses" in step:
                action = yaml.safe_load((self.sources / STEPS[step["uses"]]).read_text("utf-8"))
                given = {key: row.get("default", "") for key, row in action["inputs"].items()}
                given |= step.get("with", {}) | self._ours(given)
                for inner in action["runs"]["steps"]:
                    values = {f"inputs.{key}": value for key, value in given.items()}
                    code, said = self._bash(workspace, inner["run"], _filled(inner["env"], values), rights)
                    if code:
                        return code, said
            else:
                code, said = self._bash(workspace, step["run"], _filled(step.get("env", {}), known), rights)
                if code:
                    return code, said
        return 0, ""

    def _ours(self, inputs: dict[str, str]) -> dict[str, str]:
        """The tests' Sigstore in place of the public one."""
        ours = {
            "identity": RENDERER,
            "issuer": self.office.store.issuer,
            "trusted-root": str(self.folder / "root.json"),
            "trust-config": str(self.folder / "trust.json"),
        }
        return {key: value for key, value in ours.items() if key in inputs}

    def _bash(
        self, folder: Path, script: str, env: dict[str, str], rights: dict[str, str] | None = None
    ) -> tuple[int, str]:
        told = {"GITHUB_ACTOR": "octocat", "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"), "NO_COLOR": "1"}
        if (rights or {}).get("id-token") == "write":
            told["SIGSTORE_ID_TOKEN"] = self.office.store.token(RENDERER)
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env={**os.environ, **told, **env, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def sync(self, revision: str = "main") -> tuple[int, bytes, str]:
        """What Argo CD's plugin gives of one application at a revision."""
        self.runs += 1
        folder = self.folder / f"argocd-{self.runs}"
        git(self.folder, "clone", "-q", str(self.remote), str(folder))
        git(folder, "checkout", "-q", f"origin/{revision}" if revision == "main" else revision)
        config = {
            "trustedRoot": str(self.folder / "root.json"),
            "signers": [{"subject": RENDERER, "issuer": self.office.store.issuer}],
            "ledger": str(self.folder / "ledger"),
        }
        (self.folder / "plugin.yaml").write_text(json.dumps(config))
        given = {CONFIG: str(self.folder / "plugin.yaml"), "ARGOCD_APP_SOURCE_PATH": APPLICATION}
        return run(folder / APPLICATION, given)


def _filled(env: dict[str, str], values: dict[str, str]) -> dict[str, str]:
    return {name: values[text.removeprefix("${{ ").removesuffix(" }}")] for name, text in env.items()}


@pytest.fixture
def forge(tmp_path: Path, repository: Path, office: Office) -> Forge:
    return Forge(tmp_path, repository, office)


def test_from_a_pull_request_to_argo_cd(forge: Forge) -> None:
    base = git(forge.clone, "rev-parse", "HEAD")
    git(forge.clone, "checkout", "-q", "-b", "change")
    forge.change(48)
    head = forge.commit("Change a quota")
    git(forge.clone, "push", "-q", "origin", "change")
    assert forge.job("review", head, base) == (0, "")
    assert "48" in (forge.folder / "summary.md").read_text("utf-8")

    git(forge.clone, "checkout", "-q", "main")
    git(forge.clone, "merge", "-q", "--ff-only", "change")
    git(forge.clone, "push", "-q", "origin", "main")
    assert forge.sync()[0] == 1, "merged, and not signed yet"
    assert forge.job("sign") == (0, "")
    assert forge.job("verify") == (0, "")
    code, manifests, words = forge.sync()
    assert (code, words) == (0, "")
    assert b"ClusterQueue" in manifests
    git(forge.clone, "pull", "-q", "origin", "main")
    signed = git(forge.clone, "rev-parse", "HEAD")
    assert git(forge.clone, "diff", "--name-only", "HEAD~1").splitlines() == [
        f"rendered/.attestations/{name}.sigstore.json" for name in ("provenance", "render")
    ]

    forge.change(52)
    forge.commit("Change it again")
    git(forge.clone, "push", "-q", "origin", "main")
    code, _, words = forge.sync()
    assert (code, words[:6]) == (1, "SIG201"), "until it is signed, what runs stays"
    assert forge.job("verify")[0] == 1
    assert forge.job("sign") == (0, "")
    assert forge.job("verify") == (0, "")
    assert forge.sync()[0] == 0
    code, _, words = forge.sync(signed)
    assert (code, words[:6]) == (1, "SIG110"), "the commit before, validly signed, is older"


def test_a_pull_request_that_is_not_what_its_specs_give_ends(forge: Forge) -> None:
    base = git(forge.clone, "rev-parse", "HEAD")
    git(forge.clone, "push", "-q", "origin", "main")
    (file,) = (forge.clone / "rendered").rglob("clusterqueue-*.yaml")
    file.write_text(file.read_text("utf-8").replace("60", "61"))
    edited = forge.commit("Edit by hand")
    git(forge.clone, "push", "-q", "origin", "HEAD:edited")
    code, said = forge.job("review", edited, base)
    assert (code, "TRE201" in said) == (1, True), said
    git(forge.clone, "reset", "-q", "--hard", base)
    forge.change(44)
    (forge.clone / "rendered/.attestations").mkdir(exist_ok=True)
    (forge.clone / "rendered/.attestations/render.sigstore.json").write_text("{}")
    planted = forge.commit("Bring a signature")
    git(forge.clone, "push", "-q", "origin", "HEAD:planted")
    code, said = forge.job("review", planted, base)
    assert (code, "render.sigstore.json" in said) == (1, True)
    (forge.clone / "rendered/.attestations/render.sigstore.json").unlink()
    mended = forge.commit("Leave it")
    git(forge.clone, "push", "-q", "origin", "HEAD:mended")
    assert forge.job("review", mended, base) == (0, "")


def test_main_that_moves_while_it_is_signed_is_signed_by_the_next_run(forge: Forge) -> None:
    code, said = forge.job("sign", moved=True)
    assert code != 0
    assert "rejected" in said
    assert forge.sync()[0] == 1
    assert forge.job("sign") == (0, "")
    assert forge.job("verify") == (0, "")
    assert forge.sync()[0] == 0


def test_only_the_job_that_signs_may_sign(forge: Forge) -> None:
    jobs = forge.workflow["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})} == {"sign"}
    assert jobs["sign"]["if"] == "github.event_name == 'push'"
    trigger = forge.workflow[True]["push"]  # YAML 1.1 reads `on` as a boolean
    assert trigger == {"branches": ["main"], "paths-ignore": ["rendered/.attestations/**"]}
    jobs["sign"]["permissions"] = {"contents": "write"}
    code, said = forge.job("sign")
    assert (code, "there is no identity to sign with" in said) == (2, True), said
