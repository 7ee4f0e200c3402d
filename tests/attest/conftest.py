"""One offline Sigstore for the whole room, and a second one that nobody trusts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from blueprint.attest import sign as signing
from tests.attest.sigstore import Sigstore
from tests.attest.world import Office, rendered, write_tree


@pytest.fixture(scope="session")
def office() -> Iterator[Office]:
    with Sigstore.running() as store:
        yield Office(store)


@pytest.fixture(scope="session")
def foreign() -> Iterator[Office]:
    with Sigstore.running() as store:
        yield Office(store)


@pytest.fixture(scope="session")
def signed_tree(office: Office, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with its signatures; tests copy it."""
    root = tmp_path_factory.mktemp("signed") / "rendered"
    root.mkdir()
    write_tree(root)
    signing.write(root, signing.sign(rendered(root, sequence=7), office.signer()))
    return root


@pytest.fixture
def tree(signed_tree: Path, tmp_path: Path) -> Path:
    """A copy of the signed tree."""
    return Path(shutil.copytree(signed_tree, tmp_path / "signed", symlinks=True))
