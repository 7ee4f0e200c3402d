"""Small releases, bare remotes and other people who push, for the tests of delivery."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from blueprint.deliver.release import Release
from blueprint.tree.lock import Lock, Made, Part, digest

PATH = "rendered"


def own_config(monkeypatch: pytest.MonkeyPatch, folder: Path, more: str = "") -> Path:
    """Git knows one user, and nothing of whoever runs the tests; the file that says so."""
    file = folder / "gitconfig"
    file.write_text(f"[user]\n  name = Render\n  email = render@example.com\n{more}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return file


def made(inputs: str) -> Made:
    return Made("0.1.0", f"sha256:{sha256(inputs.encode()).hexdigest()}", "sha256:" + "1" * 64, "sha256:" + "2" * 64)


def release(inputs: str, **clusters: dict[str, str]) -> Release:
    """A release made from `inputs`: cluster → file below its folder → text."""
    files = {
        f"{name.replace('_', '-')}/{path}": text.encode()
        for name, held in clusters.items()
        for path, text in held.items()
    }
    parts = {
        name.replace("_", "-"): Part(
            made(inputs),
            {path: digest(data) for path, data in files.items() if path.startswith(f"{name.replace('_', '-')}/")},
        )
        for name in clusters
    }
    return Release(files, Lock(parts))


def both(inputs: str) -> Release:
    """A release of two clusters, in which most files depend on the input and one does not."""
    held = {"queues/a.yaml": f"a: {inputs}\n", "queues/same.yaml": "same: true\n", f"runs/{inputs}.yaml": "x: 1\n"}
    return release(inputs, preprod=held, prod_a=held)


def git(folder: Path, *arguments: str, given: str = "", fine: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, text=True)
    assert not fine or done.returncode == 0, done.stderr
    return done.stdout.strip()


def bare(folder: Path, name: str = "gitops.git") -> Path:
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", name)
    return folder / name


def someone_pushes(remote: Path, name: str, text: str, branch: str = "main", path: str = "") -> str:
    """Another person's commit on top of the branch, made inside the remote itself."""
    old = git(remote, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", fine=False)
    blob = git(remote, "hash-object", "-w", "--stdin", given=text)
    environment = {**os.environ, "GIT_INDEX_FILE": str(remote / f"index-{os.getpid()}")}

    def run(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=remote, env=environment, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    run("read-tree", *([old] if old else ["--empty"]))
    run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path or name}")
    commit = run("commit-tree", run("write-tree"), *(["-p", old] if old else []), "-m", f"Edit {name}")
    run("update-ref", f"refs/heads/{branch}", commit, old or "0" * 40)
    return commit


def files_at(remote: Path, branch: str = "main") -> dict[str, str]:
    """Every file of a branch."""
    done = subprocess.run(["git", "archive", branch], cwd=remote, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [member for member in archive if member.isfile()]
        return {member.name: archive.extractfile(member).read().decode() for member in members}


def history(remote: Path, branch: str = "main") -> list[str]:
    """Subjects, newest first; fails where a commit has two parents."""
    parents = git(remote, "log", "--format=%P", branch).splitlines()
    assert all(len(line.split()) <= 1 for line in parents)
    return git(remote, "log", "--format=%s", branch).splitlines()
