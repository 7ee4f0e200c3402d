import subprocess

import pytest

from blueprint.deliver import Order, Remote, Status, deliver, specs_at
from blueprint.deliver.message import trailers
from blueprint.deliver.release import REFERENCES
from blueprint.errors import EnvironmentLacks
from blueprint.tree.lock import NAME

from .repositories import PATH, bare, both, files_at, git, history, own_config, release, someone_pushes


@pytest.fixture(autouse=True)
def identity(monkeypatch, tmp_path):
    """Git knows this user, and nothing of whoever runs the tests."""
    return own_config(monkeypatch, tmp_path)


@pytest.fixture
def remote(tmp_path):
    return bare(tmp_path)


def run(remote, wanted, branch="main", **options):
    pause = options.pop("pause", lambda attempt: None)
    with Remote.open(str(remote)) as place:
        return deliver(place, Order(wanted, branch, PATH, **options), pause=pause)


def test_a_new_branch_holds_the_tree_and_its_lock(remote):
    outcome = run(remote, both("one"))
    assert outcome.status is Status.COMMITTED
    held = files_at(remote)
    assert held.pop(f"{PATH}/{NAME}")
    assert set(held) == {f"{PATH}/{path}" for path in both("one").files}
    assert git(remote, "rev-parse", "main") == outcome.commit


def test_the_message_is_the_same_for_the_same_change(tmp_path):
    said = []
    for name in ("a.git", "b.git"):
        place = bare(tmp_path, name)
        run(place, both("one"))
        said.append(run(place, both("two")).message)
    assert said[0] == said[1]
    assert said[0].splitlines()[0] == "Deliver preprod, prod-a: 2 changed, 2 added, 2 removed"
    found = trailers(said[0])
    assert found["Release"] == both("two").name
    assert found["Clusters"] == "preprod, prod-a"
    assert found["Blueprint-Version"] == "0.1.0"


def test_nothing_changed_makes_no_commit(remote):
    first = run(remote, both("one"))
    again = run(remote, both("one"))
    assert (again.status, again.commit) == (Status.UNCHANGED, "")
    assert git(remote, "rev-parse", "main") == first.commit


def test_other_files_of_the_branch_stay(remote):
    someone_pushes(remote, "README.md", "ours\n")
    someone_pushes(remote, "note", "kept\n", path=f"{PATH}/preprod/queues/note.yaml")
    run(remote, both("one"))
    run(remote, both("two"))
    held = files_at(remote)
    assert held["README.md"] == "ours\n"
    assert held[f"{PATH}/preprod/queues/note.yaml"] == "kept\n"
    assert f"{PATH}/preprod/runs/one.yaml" not in held


def test_the_part_of_another_cluster_stays(remote):
    run(remote, both("one"))
    run(remote, both("two").of(["preprod"]))
    held = files_at(remote)
    assert held[f"{PATH}/preprod/queues/a.yaml"] == "a: two\n"
    assert held[f"{PATH}/prod-a/queues/a.yaml"] == "a: one\n"


def test_a_hand_edit_is_told_and_not_lost(remote):
    run(remote, both("one"))
    someone_pushes(remote, "a.yaml", "a: by hand\n", path=f"{PATH}/preprod/queues/a.yaml")
    before = git(remote, "rev-parse", "main")
    outcome = run(remote, both("two"))
    assert outcome.status is Status.REFUSED
    (finding,) = [f for f in outcome.findings if f.fails]
    assert (finding.code, finding.source.file) == ("TRE201", f"main:{PATH}/preprod/queues/a.yaml")
    assert git(remote, "rev-parse", "main") == before
    assert run(remote, both("two"), overwrite=True).status is Status.COMMITTED


def test_a_faster_push_is_built_upon(remote):
    run(remote, both("one"))
    moves = iter(["x", "y"])

    class Slow(Remote):
        def push(self, objects, **options):
            if name := next(moves, None):
                someone_pushes(remote, name, name)
            return super().push(objects, **options)

    with Remote.open(str(remote)) as place:
        slow = Slow(place.address, place.git, place.folder)
        outcome = deliver(slow, Order(both("two"), "main", PATH), pause=lambda attempt: None)
    assert (outcome.status, outcome.attempts) == (Status.COMMITTED, 3)
    assert {"x", "y"} <= set(files_at(remote))
    assert history(remote)[1:3] == ["Edit y", "Edit x"]


def test_a_branch_that_never_rests_is_a_clear_stop(remote):
    run(remote, both("one"))
    numbers = iter(range(100))

    class Slow(Remote):
        def push(self, objects, **options):
            someone_pushes(remote, "x", str(next(numbers)))
            return super().push(objects, **options)

    with Remote.open(str(remote)) as place:
        slow = Slow(place.address, place.git, place.folder)
        with pytest.raises(EnvironmentLacks, match="moved the branch 6 times"):
            deliver(slow, Order(both("two"), "main", PATH), pause=lambda attempt: None)
    assert files_at(remote)[f"{PATH}/preprod/queues/a.yaml"] == "a: one\n"


def test_an_answer_that_was_lost_counts_as_delivered(remote):
    from blueprint.deliver.git import GitFailed

    class Cut(Remote):
        def push(self, objects, **options):
            super().push(objects, **options)
            raise GitFailed("push", "the remote end hung up unexpectedly")

    with Remote.open(str(remote)) as place:
        cut = Cut(place.address, place.git, place.folder)
        outcome = deliver(cut, Order(both("one"), "main", PATH))
    assert outcome.status is Status.COMMITTED
    assert git(remote, "rev-parse", "main") == outcome.commit


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_a_hook_that_says_no_is_told_in_its_words(remote, hook):
    run(remote, both("one"))
    script = remote / "hooks" / hook
    script.write_text("#!/bin/sh\necho 'only on weekdays' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(EnvironmentLacks, match="only on weekdays"):
        run(remote, both("two"))
    assert files_at(remote)[f"{PATH}/preprod/queues/a.yaml"] == "a: one\n"


def test_a_remote_that_is_not_there(tmp_path):
    with pytest.raises(EnvironmentLacks, match="does not appear to be a git repository"):
        run(tmp_path / "nothing.git", both("one"))


def test_a_token_in_an_address_is_never_told(tmp_path):
    with Remote.open("https://me:s3cret@127.0.0.1:1/x.git") as place, pytest.raises(EnvironmentLacks) as caught:
        deliver(place, Order(both("one"), "main", PATH))
    assert "s3cret" not in caught.value.diagnostics()


def test_without_an_identity(remote, identity):
    identity.write_text("[user]\n  useConfigOnly = true\n")
    with pytest.raises(EnvironmentLacks) as caught:
        run(remote, both("one"))
    assert caught.value.hint == "git config user.name and user.email"


def test_commits_are_signed_where_git_says_so(remote, identity, tmp_path):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (tmp_path / "allowed").write_text("render@example.com " + key.with_suffix(".pub").read_text())
    with identity.open("a") as file:
        file.write(
            f'  signingkey = {key}\n[gpg]\n  format = ssh\n[gpg "ssh"]\n  allowedSignersFile = {tmp_path / "allowed"}\n'
        )
    unsigned = run(remote, both("one"))
    signed = run(remote, both("two"), sign=True)
    with identity.open("a") as file:
        file.write("[commit]\n  gpgsign = true\n")
    by_setting = run(remote, both("three"))
    states = [git(remote, "log", "-1", "--format=%G?", o.commit) for o in (unsigned, signed, by_setting)]
    assert states == ["N", "G", "G"]


def test_the_identity_of_the_platforms_own_repository_counts(remote, tmp_path):
    from blueprint.deliver.git import borrowed

    git(tmp_path, "init", "--quiet", "platform")
    git(tmp_path / "platform", "config", "user.name", "Local")
    git(tmp_path / "platform", "config", "core.hooksPath", "/nonexistent")
    git(tmp_path / "platform", "config", "http.https://git.example.com/.extraheader", "Authorization: x")
    settings = borrowed(tmp_path / "platform")
    assert sorted(key for key, _ in settings) == ["http.https://git.example.com/.extraheader", "user.name"]
    with Remote.open(str(remote), settings) as place:
        outcome = deliver(place, Order(both("one"), "main", PATH))
    assert git(remote, "log", "-1", "--format=%an", outcome.commit) == "Local"


def test_a_release_is_kept_and_no_clone_sees_it(remote, tmp_path):
    whole = both("one")
    run(remote, whole.of(["preprod"]), keep=whole)
    assert git(remote, "for-each-ref", "--format=%(refname)").splitlines() == [
        f"{REFERENCES}{whole.name}",
        "refs/heads/main",
    ]
    git(tmp_path, "clone", "--quiet", str(remote), "clone")
    assert REFERENCES not in git(tmp_path / "clone", "for-each-ref")


def test_only_what_would_happen(remote):
    outcome = run(remote, both("one"), check_only=True, keep=both("one"))
    assert (outcome.status, len(outcome.plan.added)) == (Status.PLANNED, 6)
    assert git(remote, "for-each-ref") == ""


def test_older_specs_do_not_overwrite_newer_ones(remote, tmp_path):
    platform = tmp_path / "platform"
    (platform / "apps").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "platform")
    found = []
    for text in ("1", "2"):
        (platform / "apps/a.yaml").write_text(text)
        git(platform, "add", ".")
        git(platform, "commit", "--quiet", "-m", text)
        found.append(specs_at(platform))
    older, newer = found
    assert run(remote, both("two"), specs=newer).status is Status.COMMITTED
    someone_pushes(remote, "README.md", "beside\n")
    late = run(remote, both("one"), specs=older)
    assert late.status is Status.SUPERSEDED
    assert files_at(remote)[f"{PATH}/preprod/queues/a.yaml"] == "a: two\n"
    assert run(remote, both("three"), specs=newer).status is Status.COMMITTED
    # A shallow clone does not have the other commit: then the times of the commits decide.
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{platform}", "shallow")
    git(tmp_path / "shallow", "checkout", "--quiet", "--detach")
    assert specs_at(tmp_path / "shallow").commit == newer.commit
    assert run(remote, both("four"), specs=specs_at(tmp_path / "shallow")).status is Status.COMMITTED


def test_looking_at_specs_touches_nothing(tmp_path):
    (tmp_path / "apps").mkdir()
    git(tmp_path, "init", "--quiet")
    assert specs_at(tmp_path).commit == ""
    (tmp_path / "apps/a.yaml").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "x")
    (tmp_path / "apps/b.yaml").write_text("y")
    (tmp_path / "elsewhere").write_text("z")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / ".git").rglob("*")}
    assert specs_at(tmp_path).changed == ("apps/b.yaml",)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / ".git").rglob("*")} == before


def test_a_run_inside_a_hook_does_not_write_into_that_repository(remote, tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/.git/index"))
    run(remote, both("one"))
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert not list((tmp_path / "other/.git/objects").rglob("??????*"))
    assert not (tmp_path / "other/.git/index").exists()


def test_over_ssh(remote, monkeypatch, tmp_path):
    log = tmp_path / "log"
    script = tmp_path / "ssh"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nfor last; do :; done\nexec sh -c "$last"\n')
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(script))
    with Remote.open(f"git@git.example.com:{remote}") as place:
        outcome = deliver(place, Order(both("one"), "main", PATH))
    assert git(remote, "rev-parse", "main") == outcome.commit
    assert "git-receive-pack" in log.read_text()


def test_a_tree_that_would_write_elsewhere_is_refused(remote):
    from blueprint.errors import UsageError

    evil = git(remote, "hash-object", "-w", "--stdin", given="x")
    inner = git(remote, "mktree", given=f"100644 blob {evil}\t..\n")
    top = git(remote, "mktree", given=f"040000 tree {inner}\t{PATH}\n")
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", top, "-m", "x"))
    with pytest.raises(UsageError, match="no file can be called"):
        run(remote, both("one"))


def test_links_in_the_branch_are_not_followed(remote, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    link = git(remote, "hash-object", "-w", "--stdin", given=str(outside))
    top = git(remote, "mktree", given=f"120000 blob {link}\tpreprod\n")
    root = git(remote, "mktree", given=f"040000 tree {top}\t{PATH}\n")
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", root, "-m", "x"))
    outcome = run(remote, release("one", preprod={"queues/a.yaml": "a\n"}))
    assert outcome.status is Status.REFUSED
    assert list(outside.iterdir()) == []


def test_nothing_stays_behind(remote, tmp_path, monkeypatch):
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    run(remote, both("one"))
    assert list(place.iterdir()) == []
