import os

import pytest

from blueprint.errors import UsageError
from blueprint.finding import Severity
from blueprint.tree import plan, verify, write

from .trees import ZERO, beside, content, made, new_files, old_files

BOTH = made("prod-a", "staging")


@pytest.fixture
def root(tmp_path):
    """The old tree, written."""
    write(tmp_path / "rendered", old_files(), BOTH)
    return tmp_path / "rendered"


def said(findings, severity=None):
    return [(f.code, str(f.source)) for f in findings if severity in (None, f.severity)]


def test_nothing_there_yet(tmp_path):
    planned = plan(tmp_path / "none", old_files(), BOTH)
    assert planned.added == tuple(sorted(old_files()))
    assert planned.changes
    assert not planned.refused
    assert not (tmp_path / "none").exists()


def test_unchanged(root):
    planned = plan(root, old_files(), BOTH)
    assert not planned.changes
    assert planned.unchanged == tuple(sorted(old_files()))
    assert planned.findings == ()


def test_what_would_change(root):
    before = content(root)
    planned = write(root, new_files(), BOTH, check_only=True)
    old, new = old_files(), new_files()
    assert planned.added == tuple(sorted(new.keys() - old.keys()))
    assert planned.removed == tuple(sorted(old.keys() - new.keys()))
    assert planned.changed == tuple(sorted(p for p in old.keys() & new.keys() if old[p] != new[p]))
    assert set(planned.unchanged) == {p for p in old.keys() & new.keys() if old[p] == new[p]}
    assert content(root) == before


def test_a_new_version_changes_only_the_lock(root):
    planned = write(root, old_files(), made("prod-a", "staging", version="2.0.0"))
    assert planned.lock_changed
    assert (planned.added, planned.changed, planned.removed) == ((), (), ())
    assert b"2.0.0" in content(root)["blueprint.lock"]
    assert not plan(root, old_files(), made("prod-a", "staging", version="2.0.0")).changes


def test_a_hand_edit_forbids_the_run(root):
    path = root / "prod-a/chat/configmap-0.yaml"
    path.write_text("edited")
    before = content(root)
    planned = write(root, new_files(), BOTH)
    assert planned.edited_by_hand == ("prod-a/chat/configmap-0.yaml",)
    assert said(planned.findings) == [("TRE201", str(path))]
    assert planned.refused
    assert content(root) == before


def test_a_hand_edit_of_a_file_that_stays_or_goes_counts_too(root):
    (root / "prod-a/chat/configmap-1.yaml").write_text("edited")  # the same in the old and the new tree
    (root / "staging/chat/configmap-1.yaml").write_text("edited")  # goes
    assert write(root, new_files(), BOTH).edited_by_hand == (
        "prod-a/chat/configmap-1.yaml",
        "staging/chat/configmap-1.yaml",
    )


def test_an_edit_to_what_is_rendered_anyhow_is_none(root):
    """As after a Git merge that took the files of both sides and the lock of one."""
    path = "prod-a/chat/configmap-0.yaml"
    (root / path).write_bytes(new_files()[path])
    planned = write(root, new_files(), BOTH)
    assert not planned.refused
    assert path in planned.unchanged
    assert verify(root) == []


def test_overwrite_means_it(root):
    (root / "prod-a/chat/configmap-0.yaml").write_text("edited")
    (root / "staging/chat/configmap-0.yaml").write_text("edited")
    planned = write(root, new_files(), BOTH, overwrite=True)
    assert [f.severity for f in planned.findings] == [Severity.WARNING] * 2
    assert "overwritten" in planned.findings[0].message
    assert "removed" in planned.findings[1].message
    assert verify(root) == []


def test_a_file_turned_into_a_link_is_an_edit_and_its_target_safe(root, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    path = root / "prod-a/chat/configmap-0.yaml"
    path.unlink()
    path.symlink_to(secret)
    assert write(root, new_files(), BOTH).edited_by_hand == ("prod-a/chat/configmap-0.yaml",)
    write(root, new_files(), BOTH, overwrite=True)
    assert not path.is_symlink()
    assert secret.read_text() == "mine"


def test_a_deleted_file_comes_back_with_a_note(root):
    (root / "prod-a/chat/configmap-1.yaml").unlink()
    planned = write(root, old_files(), BOTH)
    assert [(f.code, f.severity) for f in planned.findings] == [("TRE202", Severity.NOTE)]
    assert verify(root) == []


def test_a_file_that_became_a_folder_is_not_called_written_again(root):
    path = root / "prod-a/chat/configmap-1.yaml"
    path.unlink()
    path.mkdir()
    [finding] = write(root, old_files(), BOTH).findings
    assert (finding.code, finding.message) == ("TRE205", "a folder stands where a file is rendered")


def test_foreign_files_are_noted_by_folder_and_kept(root):
    (root / "README.md").write_text("ours")
    for n in range(5):
        (root / f"prod-a/chat/note-{n}.txt").write_text("ours")
    (root / "mine/empty").mkdir(parents=True)
    (root / "link").symlink_to("/nowhere")
    os.mkfifo(root / "pipe")
    (root / ".attestations").mkdir()
    (root / ".attestations/prod-a.sigstore.json").write_text("{}")
    planned = write(root, new_files(), BOTH)
    assert not planned.refused
    assert said(planned.findings) == [("TRE203", str(root)), ("TRE203", f"{root}/prod-a/chat")]
    assert planned.findings[0].message == "3 files are not in the lock and kept: README.md, link, pipe"
    assert "note-0.txt, note-1.txt, note-2.txt, …" in planned.findings[1].message
    assert (root / "README.md").read_text() == "ours"
    assert (root / "mine/empty").is_dir()
    assert (root / "link").readlink().as_posix() == "/nowhere"
    assert (root / "pipe").is_fifo()
    assert (root / ".attestations/prod-a.sigstore.json").exists()


def test_a_foreign_file_in_a_pruned_folder_keeps_the_folder(root):
    (root / "staging/chat/mine.txt").write_text("ours")
    write(root, new_files(), BOTH)
    assert [p.name for p in (root / "staging/chat").iterdir()] == ["mine.txt"]


def test_pruned_folders_go(root):
    write(root, new_files(), BOTH)
    assert not (root / "staging/chat").exists()
    assert (root / "staging/queues").is_dir()


def test_a_foreign_file_in_the_way(root):
    path = root / "prod-a/training/deep/er/job-0.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("ours")
    planned = write(root, new_files(), BOTH)
    assert planned.in_the_way == ("prod-a/training/deep/er/job-0.yaml",)
    assert said(planned.findings) == [("TRE204", str(path))]
    assert path.read_text() == "ours"
    assert not write(root, new_files(), BOTH, overwrite=True).refused
    assert verify(root) == []


def test_a_foreign_file_that_is_right_already_is_adopted(root):
    path = root / "prod-a/training/deep/er/job-0.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(new_files()["prod-a/training/deep/er/job-0.yaml"])
    assert not write(root, new_files(), BOTH).refused


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("make", "by"),
    [
        (
            lambda root: (root / "prod-a/training/deep/er/job-0.yaml").mkdir(parents=True),
            "prod-a/training/deep/er/job-0.yaml",
        ),
        (lambda root: (root / "prod-a/training").write_text("ours"), "prod-a/training"),
        (lambda root: (root / "prod-a/training").symlink_to(root.parent), "prod-a/training"),
    ],
)
def test_folders_files_and_links_that_block_are_never_overwritten(root, make, by, overwrite):
    make(root)
    before = content(root.parent)
    planned = write(root, new_files(), BOTH, overwrite=overwrite)
    blocked = [f for f in planned.findings if f.fails]
    assert {f.code for f in blocked} == {"TRE205"}
    assert {f.fix for f in blocked} == {f"move {by} away"}
    assert all(("a folder stands" in f.message) == by.endswith(".yaml") for f in blocked)
    assert content(root.parent) == before


def test_an_application_folder_replaced_by_a_link_is_an_edit_of_nothing_outside(root, tmp_path):
    outside = tmp_path / "outside"
    (root / "staging/chat").rename(outside)
    (root / "staging/chat").symlink_to(outside)
    before = content(outside)
    assert not write(root, new_files(), BOTH).refused  # nothing of ours is there any more; the link is foreign
    assert (root / "staging/chat").is_symlink()
    assert content(outside) == before
    assert write(root, old_files(), BOTH, overwrite=True).refused


def test_a_file_may_become_a_folder_and_back(tmp_path):
    root, one = tmp_path / "rendered", made("prod")
    write(root, {"prod/a": b"1", "prod/b/c": b"2"}, one)
    assert not write(root, {"prod/a/c": b"1", "prod/b": b"2"}, one).refused
    assert content(root).keys() == {"blueprint.lock", "prod/a/c", "prod/b"}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"../evil": b""}, "TRE301"),
        ({"/etc/evil": b""}, "TRE301"),
        ({"prod/../../evil": b""}, "TRE301"),
        ({"prod/.git/hooks/x": b""}, "TRE301"),
        ({"top.yaml": b""}, "TRE301"),
        ({"prod/A.yaml": b"", "prod/a.yaml": b""}, "TRE302"),
        ({"prod/a": b"", "prod/a/b": b""}, "TRE303"),
    ],
)
def test_names_that_are_refused(tmp_path, files, code):
    planned = write(tmp_path / "rendered", files, made("prod"), overwrite=True)
    assert [f.code for f in planned.findings if f.fails] == [code]
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_no_rendered_cluster_is_a_wrong_call(tmp_path):
    with pytest.raises(UsageError, match="no rendered cluster"):
        plan(tmp_path, {"prod/x": b""}, made("staging"))


def test_one_cluster_alone(root):
    before = content(root)
    (root / "staging/chat/configmap-0.yaml").write_text("edited")  # not looked at
    only = {p: d for p, d in new_files().items() if p.startswith("prod-a/")}
    planned = write(root, only, made("prod-a", version="2.0.0"), partial=True)
    assert planned.foreign == ()
    assert all(
        p.startswith("prod-a/") for p in (*planned.added, *planned.changed, *planned.removed, *planned.unchanged)
    )
    after = content(root)
    assert {p: d for p, d in after.items() if p.startswith("prod-a/")} == only
    kept = {p for p in before if p.startswith("staging/")} - {"staging/chat/configmap-0.yaml"}
    assert all(after[p] == before[p] for p in kept)
    assert after["staging/chat/configmap-0.yaml"] == b"edited"
    assert after["blueprint.lock"].count(b"1.0.0") == 1
    assert after["blueprint.lock"].count(b"2.0.0") == 1
    assert said(verify(root)) == [("TRE201", f"{root}/staging/chat/configmap-0.yaml")]


def test_without_partial_other_clusters_go(root):
    only = {p: d for p, d in old_files().items() if p.startswith("prod-a/")}
    planned = write(root, only, made("prod-a"))
    assert all(p.startswith("staging/") for p in planned.removed)
    assert not (root / "staging").exists()


def test_a_cluster_with_nothing_in_it(root):
    write(root, {}, made("prod-a"), partial=True)
    assert not (root / "prod-a").exists()
    assert verify(root) == []
    assert not plan(root, {p: d for p, d in old_files().items() if p[0] == "s"}, BOTH).changes


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda lock: lock.write_text("{"), "TRE101"),
        (lambda lock: lock.write_text(lock.read_text().replace('"version": 1', '"version": 7')), "TRE102"),
        (lambda lock: lock.write_text(lock.read_text().replace('"prod-a/chat/', '"prod-a/../../')), "TRE103"),
        (lambda lock: (lock.rename(lock.parent.parent / "away"), lock.symlink_to("../away")), "TRE105"),
        (lambda lock: (lock.unlink(), lock.mkdir()), "TRE105"),
    ],
)
def test_an_unusable_lock_deletes_nothing(root, spoil, code):
    victim = root.parent / "configmap-0.yaml"
    victim.write_text("mine")
    spoil(root / "blueprint.lock")
    before = content(root.parent)
    planned = write(root, new_files(), BOTH)
    assert code in {f.code for f in planned.findings if f.fails}
    assert planned.removed == ()
    assert content(root.parent) == before
    assert verify(root)[0].code == code
    for name in write(root, new_files(), BOTH, overwrite=True).foreign:
        assert (root / name).exists()
    assert victim.read_text() == "mine"


def test_overwrite_repairs_a_broken_lock_but_not_for_one_cluster_alone(root):
    (root / "blueprint.lock").write_text("<<<<<<< HEAD\n")
    only = {p: d for p, d in old_files().items() if p.startswith("prod-a/")}
    assert write(root, only, made("prod-a"), partial=True, overwrite=True).refused
    assert not write(root, old_files(), BOTH, overwrite=True).refused
    assert verify(root) == []


def test_a_lock_that_claims_what_we_never_wrote_deletes_no_edited_file(root):
    """A row with a digest that does not match is a hand edit, so a hostile row deletes nothing by itself."""
    (root / "prod-a/mine.txt").write_text("ours")
    lock = root / "blueprint.lock"
    row = f'"prod-a/mine.txt": "{ZERO}",\n        "prod-a/chat/configmap-0.yaml"'
    lock.write_text(lock.read_text().replace('"prod-a/chat/configmap-0.yaml"', row))
    assert write(root, old_files(), BOTH).edited_by_hand == ("prod-a/mine.txt",)
    assert (root / "prod-a/mine.txt").exists()


def test_verify(root):
    assert verify(root) == []
    (root / "prod-a/chat/configmap-0.yaml").write_text("edited")
    (root / "prod-a/chat/configmap-1.yaml").unlink()
    (root / "README.md").write_text("ours")
    assert said(verify(root)) == [
        ("TRE201", f"{root}/prod-a/chat/configmap-0.yaml"),
        ("TRE202", f"{root}/prod-a/chat/configmap-1.yaml"),
        ("TRE203", str(root)),
    ]


def test_verify_needs_a_lock(tmp_path):
    with pytest.raises(UsageError, match="no rendered tree"):
        verify(tmp_path)


def test_names_on_the_disk_that_are_no_text(root):
    (root / os.fsdecode(b"caf\xe9")).write_text("ours")
    planned = write(root, new_files(), BOTH)
    assert "caf\\xe9" in planned.findings[0].message
    assert os.fsencode(root) + b"/caf\xe9" in {os.fsencode(p) for p in root.iterdir()}


def test_nothing_stays_beside(root):
    write(root, new_files(), BOTH)
    assert beside(root) == []


def test_the_tree_of_another_platform_stays(root):
    files = {"lab/queues/configmap-a.yaml": b"kind: ConfigMap\n"}
    before = content(root)
    refused = plan(root, files, made("lab"))
    assert [(f.code, f.severity) for f in refused.findings if f.fails] == [("TRE207", Severity.ERROR)]
    assert "prod-a, staging" in refused.findings[0].message
    assert write(root, files, made("lab")).refused
    assert content(root) == before
    assert not plan(root, files, made("lab"), overwrite=True).refused
    assert not plan(root, files, made("lab"), partial=True).refused
