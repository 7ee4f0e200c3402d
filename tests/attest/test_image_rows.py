"""images.lock as somebody edited it, and which of its rows says something of which image."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from blueprint.attest.imagelock import Locked, check_images, dump_lock, read_lock
from blueprint.cli import app
from blueprint.errors import UsageError
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.tree import lock as locks
from tests.attest.world import MADE


def pod(image: str) -> Manifest:
    spec = {"containers": [{"name": "a", "image": image}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "t"}, "spec": spec}
    return Manifest(body, Source("p.yaml"))


def test_what_was_seen_of_one_repository_says_nothing_of_another() -> None:
    """Signatures lie beside the image; and of several names for one image one that holds is enough."""
    digest, now = "sha256:" + "a" * 64, datetime.now(UTC)
    good, other = Locked(digest, "s", "i", now, None, now), Locked(digest, "o", "i", now)

    def codes(host_and_name: str, rows: dict[str, Locked], age: timedelta | None = None) -> list[str]:
        image = f"{host_and_name}@{digest}"
        found = check_images([pod(image)], rows, ["r.example.com/"], {("s", "i")}, max_age=age)
        return [finding.code for finding in found]

    for name in ("r.example.com/x", "R.example.com:443/x", "r.example.com/x:other-tag"):
        assert codes(name, {"r.example.com:443/x:1": good}) == [], name
    assert codes("r.example.com/copy/x", {"r.example.com/x:1": good}) == ["SIG403"], "no signature was copied"
    day = timedelta(days=1)
    for name in ("r.example.com/x:0", "r.example.com/x:2"):
        assert codes("r.example.com/x", {"r.example.com/x:1": good, name: other}, day) == []
    assert codes("r.example.com/x", {"r.example.com/x:2": other}) == ["SIG104"]
    assert codes("r.example.com/x", {"r.example.com/x:2": replace(good, built_at=None)}, day) == ["SIG105"]


@pytest.mark.parametrize(
    ("images", "says"),
    [
        ("[" * 100_000, "no lock"),
        ('{"r.example.com/x:1": ROW, "r.example.com/x:1": ROW}', "stands twice"),
        ('{"x": ROW}', "no image with its registry"),
        ('{"r.example.com/x@sha256:%s": ROW}' % ("b" * 64), "another digest"),
        ('{"r.example.com/x:1": ROW}', ""),
    ],
)
def test_a_lock_that_somebody_edited(tmp_path: Path, images: str, says: str) -> None:
    row = json.dumps(Locked("sha256:" + "a" * 64, "s", "i", datetime.now(UTC)).document())
    text = f'{{"version": 1, "images": {images.replace("ROW", row)}}}'
    (tmp_path / "images.lock").write_text(text)
    with pytest.raises(UsageError, match=says) if says else nullcontext():
        assert len(read_lock(tmp_path / "images.lock")) == 1


def test_each_cluster_is_held_to_its_own_gates(tmp_path: Path) -> None:
    """A Policy may hold in some clusters: whom it lets sign is not asked of the others."""
    tree, digest = tmp_path / "rendered", "sha256:" + "a" * 64
    image = f"r.example.com/x@{digest}"
    (tmp_path / "images.lock").write_text(
        dump_lock({"r.example.com/x:1": Locked(digest, "s", "i", datetime.now(UTC)).document()})
    )

    def gate(signer: str) -> dict[str, Any]:
        given = {"prefixes": ["r.example.com/"], "signers": [{"subject": signer, "issuer": "i"}]}
        kind = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "Gate", "metadata": {"name": "g"}}
        return {**kind, "spec": {"parameters": given}}

    def put(path: str, body: dict[str, Any]) -> None:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(json.dumps(body))

    def check() -> tuple[int, str]:
        done = CliRunner().invoke(app, ["images", "check", str(tree), "--lock", str(tmp_path / "images.lock")])
        return done.exit_code, done.output

    put("prod-a/gate.json", gate("s"))
    put("prod-a/pod.json", pod(image).body)
    put("prod-b/gate.json", gate("other"))
    held = {name: locks.Part(MADE, {f"{name}/gate.json": "sha256:" + "0" * 64}) for name in ("prod-a", "prod-b")}
    (tree / locks.NAME).write_bytes(locks.dump(locks.Lock(held)))
    assert check()[0] == 0, check()
    put("prod-b/pod.json", pod(image).body)
    code, said = check()
    assert (code, said.count("SIG104"), "prod-b/pod.json" in said) == (1, 1, True)
    (tree / "prod-b/pod.json").unlink()
    put("elsewhere/pod.json", pod(image).body)
    assert (check()[0], "elsewhere" in check()[1]) == (1, True)
    (tree / "elsewhere/pod.json").unlink()
    (tree / "prod-a/gate.json").unlink()
    assert check()[0] == 0, "no gate holds in that cluster"
    (tree / locks.NAME).unlink()
    assert check()[0] == 1, "without a lock it is one tree"
