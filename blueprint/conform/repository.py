"""A Git repository on disk that holds a rendered tree, as the one that Argo CD syncs from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blueprint.conform.tree import Tree
from blueprint.deliver.git import Git
from blueprint.render.emit import emit

Body = dict[str, Any]

BRANCH = "main"
HERE = "https://kubernetes.default.svc"
"""How Argo CD calls the cluster that it runs in."""

_AUTHOR = (("user.name", "conform"), ("user.email", "conform@example.com"), ("commit.gpgsign", "false"))


class Repository:
    """A bare repository at `url` and a working copy of it; `files` are its contents, path → text."""

    def __init__(self, folder: Path) -> None:
        self.bare, self._copy = folder / "tree.git", folder / "copy"
        self.files: dict[str, str] = {}
        for made in (self.bare, self._copy):
            made.mkdir(parents=True)
        Git(self.bare)("init", "--quiet", "--bare", f"--initial-branch={BRANCH}")
        self._git = Git(self._copy, _AUTHOR)
        self._git("init", "--quiet", f"--initial-branch={BRANCH}")

    @property
    def url(self) -> str:
        """Its address."""
        return self.bare.as_uri()

    def commit(self, message: str, files: Mapping[str, str]) -> str:
        """Let the branch hold exactly these files; returns the commit."""
        for path in {*self.files} - {*files}:
            (self._copy / path).unlink()
        for path, text in files.items():
            target = self._copy / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        self.files = dict(files)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", f"--message={message}")
        self._git("push", "--quiet", str(self.bare), BRANCH)
        return self._git.text("rev-parse", "HEAD")

    def remove(self) -> None:
        """Delete both."""
        shutil.rmtree(self.bare)
        shutil.rmtree(self._copy)


class Bootstrap:
    """What the tree tells Argo CD: the objects that a person applies once, and the files of the repository.

    Addresses of the repository and of the cluster are those of here, all else is as it is rendered.
    """

    def __init__(self, tree: Tree, url: str) -> None:
        own = [manifest.body for manifest in tree.own]
        self._moved = _addresses(own) | dict.fromkeys(_repositories(own), url)
        bodies = [self._here(body) for body in own]
        [self.root] = [b for b in bodies if b["kind"] == "Application" and _last(b) not in tree.applications]
        self.children = [b for b in bodies if b["kind"] == "Application" and b is not self.root]
        first = {("AppProject", self.root["spec"]["project"]), ("ConfigMap", "argocd-cm")}
        named = {id(b): (b["kind"], b["metadata"]["name"]) for b in bodies}
        self.objects = [*(b for b in bodies if named[id(b)] in first), self.root]
        below = [b for b in bodies if b not in self.objects]
        self.files = {path: text for body in below for path, text in [_file(self.root, body)]}
        for child in self.children:
            for manifest in tree.applications[_last(child)]:
                path, text = _file(child, manifest.body)
                self.files[path] = text

    def path(self, application: str, body: Body) -> str:
        """Where the file of an object lies, of the child that is called after this folder."""
        child = next(child for child in self.children if _last(child) == application)
        return _file(child, body)[0]

    def _here(self, body: Body) -> Body:
        text = json.dumps(body)
        for theirs, ours in self._moved.items():
            text = text.replace(json.dumps(theirs), json.dumps(ours))
        moved: Body = json.loads(text)
        return moved


def _last(application: Body) -> str:
    return str(application["spec"]["source"]["path"]).rpartition("/")[2]


def _repositories(own: list[Body]) -> set[str]:
    return {body["spec"]["source"]["repoURL"] for body in own if body["kind"] == "Application"}


def _addresses(own: list[Body]) -> dict[str, str]:
    servers = {body["spec"]["destination"]["server"] for body in own if body["kind"] == "Application"}
    return dict.fromkeys(servers, HERE)


def _file(application: Body, body: Body) -> tuple[str, str]:
    meta = body["metadata"]
    name = f"{body['kind']}-{meta.get('namespace', '')}-{meta['name']}".lower()
    return f"{application['spec']['source']['path']}/{name}.yaml", emit(body)
