"""Images by their tags: the lock beside the specs says which digest is meant, and nobody else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blueprint.finding import Report
from blueprint.pipeline import render_platform
from blueprint.spec.images import Collected
from blueprint.spec.load import load
from tests.render.worlds import DELIVERY, PLAIN, cluster, job, team

TAG = "registry.example.com/train:2.9.1"
DIGESTS = {TAG: "sha256:" + "a" * 64}


def lock(digests: object = DIGESTS) -> str:
    rows = {name: {"digest": digest} for name, digest in digests.items()} if isinstance(digests, dict) else digests
    return json.dumps({"version": 1, "images": rows})


def platform(folder: Path, image: str = TAG, locked: str | None = None) -> Path:
    quota = "[{cluster: here, pool: gpu, gpus: 8}]"
    (folder / "clusters").mkdir(parents=True)
    texts = (DELIVERY, cluster(f"[{PLAIN}]"), team(quota), job(pool="gpu", image=image))
    (folder / "clusters/all.yaml").write_text("\n---\n".join(texts))
    if locked is not None:
        (folder / "images.lock").write_text(locked)
    return folder


def used(root: Path) -> set[str]:
    return {document.model.spec.image for document in load(root).platform.training_jobs}


def test_a_tag_is_the_digest_of_the_lock(tmp_path: Path) -> None:
    root = platform(tmp_path / "p", locked=lock())
    assert load(root).findings == []
    assert used(root) == {f"{TAG}@{DIGESTS[TAG]}"}
    given = f"registry.example.com/train:2.9.1@sha256:{'b' * 64}"
    assert used(platform(tmp_path / "q", given, lock())) == {given}, "what is written is kept"


@pytest.mark.parametrize("locked", [None, lock({}), lock({f"{TAG}0": DIGESTS[TAG]})], ids=["none", "empty", "another"])
def test_a_tag_that_nobody_resolved(tmp_path: Path, locked: str | None) -> None:
    root = platform(tmp_path / "p", locked=locked)
    (finding,) = load(root).findings
    assert (finding.code, finding.path) == ("SPC136", "spec.image")
    assert finding.source is not None
    line = (root / "clusters/all.yaml").read_text().splitlines()[finding.source.line - 1]
    assert TAG in line
    assert finding.fix == f"blueprint images lock {TAG}"
    (root / "images.lock").write_text(lock())
    assert load(root).findings == []


BROKEN = {
    "no JSON": "{",
    "a list": "[]",
    "a number": "5",
    "another version": lock().replace('"version": 1', '"version": 2'),
    "rows in a list": lock([]),
    "a row that is text": json.dumps({"version": 1, "images": {TAG: "sha256:" + "a" * 64}}),
    "a digest of another kind": lock({TAG: "sha512:" + "a" * 128}),
    "a digest that is cut": lock({TAG: "sha256:" + "a" * 63}),
    "a digest that is a number": lock({TAG: 5}),
    "a name that stands twice": lock().replace(
        '"images": {', f'"images": {{"{TAG}": {{"digest": "sha256:{"b" * 64}"}}, '
    ),
    "deep": "[" * 100_000,
    "large": lock() + " " * (1 << 20),
    "nothing": "",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_lock_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    root = platform(tmp_path / "p", locked=BROKEN[name])
    found = load(root).findings
    assert [(finding.code, finding.source.file) for finding in found if finding.source][-1] == ("SPC112", "images.lock")
    assert Report.of(found).failed
    (root / "images.lock").write_text(lock())
    assert load(root).findings == []


def test_a_lock_that_is_no_file_of_the_platform(tmp_path: Path) -> None:
    root = platform(tmp_path / "p")
    (tmp_path / "elsewhere").write_text(lock())
    (root / "images.lock").symlink_to(tmp_path / "elsewhere")
    assert "leads out" in load(root).findings[-1].message
    (root / "images.lock").unlink()
    (root / "images.lock").symlink_to("nowhere")
    assert {finding.code for finding in load(root).findings} == {"SPC112", "SPC136"}
    (root / "images.lock").unlink()
    (root / "images.lock").mkdir()
    assert "no regular file" in load(root).findings[-1].message
    (root / "images.lock").rmdir()
    (root / "real.lock").write_text(lock())
    (root / "images.lock").symlink_to("real.lock")
    assert load(root).findings == []


def test_rendering_is_by_digest_and_says_which_lock_it_was(tmp_path: Path) -> None:
    """Offline, and the same bytes for the same lock; another lock is another input, and another tree."""
    root, out = platform(tmp_path / "p", locked=lock()), tmp_path / "rendered"
    first = render_platform(root, out)
    assert not first.report.failed, first.report.findings
    assert first.plan is not None
    text = "".join(path.read_text() for path in out.rglob("*.yaml"))
    assert f"{TAG}@{DIGESTS[TAG]}" in text
    assert render_platform(root, out).current
    made = json.loads((out / "blueprint.lock").read_text())["clusters"]["here"]["made"]
    (root / "images.lock").write_text(lock({TAG: "sha256:" + "c" * 64}))
    again = render_platform(root, out)
    assert again.plan is not None
    assert again.plan.changes
    assert json.loads((out / "blueprint.lock").read_text())["clusters"]["here"]["made"]["inputs"] != made["inputs"]
    assert "c" * 64 in "".join(path.read_text() for path in out.rglob("*.yaml"))
    (root / "images.lock").write_text(lock())
    render_platform(root, out)
    assert json.loads((out / "blueprint.lock").read_text())["clusters"]["here"]["made"] == made
    (root / "images.lock").unlink()
    assert render_platform(root, out).report.failed
    assert text == "".join(path.read_text() for path in out.rglob("*.yaml")), "the tree stays as it was"


def test_the_specs_say_what_is_to_be_locked(tmp_path: Path) -> None:
    met = Collected()
    assert load(platform(tmp_path / "p"), met).findings == []
    assert met.images == {TAG}
    met = Collected()
    given = f"registry.example.com/train@sha256:{'b' * 64}"
    load(platform(tmp_path / "q", given, "broken"), met)
    assert met.images == {given}, "the lock that is to be written need not be right"
