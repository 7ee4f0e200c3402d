"""The repository that Argo CD syncs from: the tree as rendered, with addresses of here."""

from pathlib import Path

import pytest
import yaml

from blueprint.conform.repository import BRANCH, HERE, Bootstrap, Repository
from blueprint.conform.tree import rendered
from blueprint.deliver.git import Git

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tree():
    return rendered(ROOT)


def shown(repository, path):
    return Git(repository.bare)("show", f"{BRANCH}:{path}").decode()


def listed(repository):
    return set(Git(repository.bare).text("ls-tree", "-r", "--name-only", BRANCH).splitlines())


def test_a_commit_holds_exactly_the_files(tmp_path):
    repository = Repository(tmp_path)
    first = repository.commit("one", {"a/x.yaml": "1\n", "b.yaml": "2\n"})
    assert listed(repository) == {"a/x.yaml", "b.yaml"}
    second = repository.commit("two", {"b.yaml": "3\n"})
    assert first != second == Git(repository.bare).text("rev-parse", BRANCH)
    assert listed(repository) == {"b.yaml"}
    assert shown(repository, "b.yaml") == "3\n"
    assert repository.url.startswith("file:///")


def test_every_object_of_the_tree_is_where_its_application_looks(tree, tmp_path):
    repository = Repository(tmp_path)
    found = Bootstrap(tree, repository.url)
    assert len(found.children) == len(tree.applications)
    for child in found.children:
        source = child["spec"]["source"]
        assert source["repoURL"] == repository.url
        assert child["spec"]["destination"]["server"] == HERE
        folder = f"{source['path']}/"
        held = tree.applications[source["path"].rpartition("/")[2]]
        assert sum(path.startswith(folder) for path in found.files) == len(held)
    for name, manifests in tree.applications.items():
        for manifest in manifests:
            assert yaml.safe_load(found.files[found.path(name, manifest.body)]) == manifest.body


def test_only_addresses_differ_from_what_is_rendered(tree, tmp_path):
    found = Bootstrap(tree, "file:///here")
    own = {(m.kind, m.ref.name): m.body for m in tree.own}
    below = [
        yaml.safe_load(text)
        for path, text in found.files.items()
        if path.startswith(found.root["spec"]["source"]["path"])
    ]
    bodies = [*found.objects, *below]
    assert {(body["kind"], body["metadata"]["name"]) for body in bodies} == set(own)
    for body in bodies:
        theirs = own[body["kind"], body["metadata"]["name"]]
        assert body["metadata"] == theirs["metadata"]
        assert {k: v for k, v in body.get("spec", {}).items() if k not in MOVED} == {
            k: v for k, v in theirs.get("spec", {}).items() if k not in MOVED
        }
        assert body.get("data") == theirs.get("data")


MOVED = ("source", "destination", "sourceRepos", "destinations")


def test_a_person_applies_the_root_last(tree):
    found = Bootstrap(tree, "file:///here")
    assert [body["kind"] for body in found.objects][-1] == "Application"
    assert {body["kind"] for body in found.objects} == {"AppProject", "ConfigMap", "Application"}
