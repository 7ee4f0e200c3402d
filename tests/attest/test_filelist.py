"""The canonical list: one spelling, closed, and the same from the disk as from a commit."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from blueprint.attest.attributes import changing
from blueprint.attest.filelist import (
    EXECUTABLE,
    PLAIN,
    Row,
    as_dicts,
    canonical,
    digest,
    in_repository,
    of_commit,
    of_folder,
    top_of,
)
from blueprint.attest.refusal import Refused
from blueprint.attest.sign import RENDER_BUNDLE, to_sign
from blueprint.attest.statement import PAYLOAD_TYPE, Rendered, read_rendered, render_statement
from blueprint.errors import UsageError
from tests.attest.world import MADE, write_tree

rows = st.lists(
    st.builds(
        Row,
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
        st.binary(min_size=32, max_size=32).map(bytes.hex),
        st.integers(0, 2**53 - 1),
        st.sampled_from([PLAIN, EXECUTABLE]),
    ),
    max_size=8,
    unique_by=lambda row: row.path,
)


@given(rows)
def test_our_spelling_is_that_of_rfc_8785(found: list[Row]) -> None:
    assert canonical(as_dicts(found)) == rfc8785.dumps(as_dicts(found))


@given(rows, st.integers(1, 2**53 - 1))
def test_statements_come_back_as_they_were(found: list[Row], sequence: int) -> None:
    rendered = Rendered(tuple(found), {"prod-a": MADE}, sequence)
    again = read_rendered(render_statement(rendered), PAYLOAD_TYPE)
    assert again == rendered
    assert again.digest == digest(found)


@given(rows.filter(bool), st.data())
def test_any_other_list_has_another_digest(found: list[Row], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(found) - 1))
    row = found[position]
    for other in (
        row._replace(path=row.path + "x"),
        row._replace(sha256="0" * 64 if row.sha256 != "0" * 64 else "1" * 64),
        row._replace(size=row.size + 1),
        row._replace(mode=EXECUTABLE if row.mode == PLAIN else PLAIN),
    ):
        assert digest([*found[:position], other, *found[position + 1 :]]) != digest(found)
    assert digest(found[:position] + found[position + 1 :]) != digest(found)


@given(
    st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5), lambda inner: st.lists(inner))
)
def test_payloads_of_any_shape_are_refused_not_raised(value: object) -> None:
    for payload in (orjson.dumps(value), orjson.dumps({"_type": value, "subject": value, "predicate": value})):
        with pytest.raises(Refused):
            read_rendered(payload, PAYLOAD_TYPE)


def test_rows_are_sorted_by_their_bytes(tmp_path: Path) -> None:
    for name in ("b", "a-b", "a/b", "aé", "az", "a.b"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    paths = [row.path for row in of_folder(tmp_path).rows]
    assert paths == sorted(paths, key=str.encode)
    assert len(paths) == 6


def test_a_read_that_gives_less_than_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 2 GiB one call does not give a whole file; here calls give three bytes."""
    (tmp_path / "a.yaml").write_text("kind: Pod\n")
    whole = of_folder(tmp_path).rows
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, size: read(handle, min(size, 3)))
    assert of_folder(tmp_path).rows == whole


def test_a_name_that_a_commit_has_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git takes such a commit; the signed file is in it, and which of the two is checked out is each tool's choice."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def git(*arguments: str, given: bytes = b"") -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, input=given, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    signed, other = (git("hash-object", "-w", "--stdin", given=text) for text in (b"kind: Pod\n", b"kind: Job\n"))
    for blobs, faults in (([signed], []), ([other, signed], ["SIG206"]), ([signed, other], ["SIG206"])):
        rows = b"".join(b"100644 a.yaml\0" + bytes.fromhex(blob) for blob in blobs)
        inner = git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=rows)
        top = git("mktree", given=f"040000 tree {inner}\trendered\n".encode())
        listing = of_commit(tmp_path, git("commit-tree", "-m", "x", top), "rendered")
        assert [fault.code for fault in listing.faults] == faults


def test_the_mode_is_what_git_keeps(tmp_path: Path) -> None:
    for mode in (0o644, 0o664, 0o600, 0o755, 0o700, 0o744):
        file = tmp_path / f"{mode:o}"
        file.write_text("x")
        file.chmod(mode)
    modes = {row.path: row.mode for row in of_folder(tmp_path).rows}
    assert modes == {
        "644": PLAIN,
        "664": PLAIN,
        "600": PLAIN,
        "755": EXECUTABLE,
        "700": EXECUTABLE,
        "744": EXECUTABLE,
    }


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "nowhere"):
        with pytest.raises(UsageError):
            of_folder(tmp_path / name)


def test_commits_of_repositories_that_try_to_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacements, grafts and settings of the repository do not change what is read."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def git(*arguments: str, given: str = "") -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    (tmp_path / "rendered").mkdir()
    write_tree(tmp_path / "rendered")
    git("add", "rendered")
    git("commit", "-q", "-m", "x")
    before = of_commit(tmp_path, "HEAD", "rendered")
    blob = git("rev-parse", "HEAD:rendered/blueprint.lock")
    other = git("hash-object", "-w", "--stdin", given="something else\n")
    git("replace", blob, other)
    assert git("cat-file", "-p", blob) == "something else"
    assert of_commit(tmp_path, "HEAD", "rendered").rows == before.rows
    assert top_of(tmp_path / "rendered") == (tmp_path, "rendered")
    assert top_of(tmp_path / "not/on/the/disk") == (tmp_path, "not/on/the/disk")
    (tmp_path / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    with pytest.raises(UsageError, match="is not there"):
        of_commit(tmp_path, "HEAD", "rendered")


@pytest.mark.parametrize("given", [".git", "elsewhere/.git"])
def test_what_git_tells_its_hooks_is_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """In a hook GIT_DIR is set, and Git would take any folder for the top of that repository."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    (tmp_path / "rendered").mkdir()
    write_tree(tmp_path / "rendered")
    for text in ("init -q", "init -q elsewhere", "add rendered", "commit -q -m x"):
        subprocess.run(["git", *who, *text.split()], cwd=tmp_path, check=True)
    monkeypatch.setenv("GIT_DIR", given if given == ".git" else str(tmp_path / given))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    assert top_of(tmp_path / "rendered") == (tmp_path, "rendered")
    assert of_commit(tmp_path, "HEAD", "rendered").rows == of_folder(tmp_path / "rendered").rows
    assert in_repository(tmp_path / "rendered") == "rendered"


def test_a_link_does_not_say_which_folder_of_a_commit_is_judged(tmp_path: Path) -> None:
    """A commit that is checked out leads `rendered` to a good tree, and the one that is judged has a bad one there."""
    repository = tmp_path / "repository"
    (repository / "good").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    for name in ("rendered", "gone"):
        (repository / name).symlink_to("good" if name == "rendered" else "nowhere")
        for tree in (repository / name, repository / name / "below"):
            with pytest.raises(UsageError, match="a link of a work tree"):
                top_of(tree)
    (tmp_path / "outside").symlink_to(repository)
    assert top_of(tmp_path / "outside/good") == (repository, "good"), "no commit holds that link"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("* -text\n", False),
        ("* !text !eol\n", False),
        ("*.yaml text\n", True),
        ("*.yaml text=auto\n", True),
        ("*.yaml eol=lf\n", True),
        ("*.png filter=lfs\n", False),
        ("*.yaml filter=lfs diff=lfs\n", True),
        ("/prod/** filter=lfs\n", True),
        ("[attr]lfs filter=lfs\n", True),
        ('"a b.yaml" ident\n', True),
        ("# *.yaml text\n", False),
        ("*.yaml diff=yaml linguist-generated\n", False),
        ("*.yaml working-tree-encoding=UTF-16\n", True),
        ("", False),
    ],
)
def test_attributes(text: str, changed: bool) -> None:
    assert bool(list(changing([text.encode()], ["prod/a.yaml"]))) is changed


@pytest.mark.parametrize(
    "line",
    [
        b"\xef\xbb\xbf*.yaml text eol=crlf\n",
        b"*.yam\\l text eol=crlf\n",
        b"*.yaml foo=\xffx text eol=crlf\n",
        b"*.yaml foo=\x0cx ident\n",
        "*.yaml foo=\N{LINE SEPARATOR}x ident\n".encode(),
        "*.yaml foo=\x85x ident\n".encode(),
        b"*.yaml text\0 of no interest\n",
        b"*.YAML text\n",
        b"\xff.yaml text\n",
    ],
)
def test_attributes_are_read_as_git_reads_them(line: bytes) -> None:
    assert list(changing([line], ["prod/a.yaml"]))


@pytest.mark.parametrize(
    "nearer",
    [
        "# \N{LINE SEPARATOR}* -text\n".encode(),
        b"* -text\n*.yaml text\n",
        b"*" + b" " * 2100 + b"-text\n",
    ],
)
def test_what_git_does_not_take_for_a_setting_settles_nothing(nearer: bytes) -> None:
    assert list(changing([b"* text=auto eol=crlf\n"], ["a.yaml"], [nearer]))


def test_a_nearer_file_settles_line_ends_and_nothing_else() -> None:
    above, nearer = b"* text=auto\n* filter=x\n", b"* -text\n"
    assert list(changing([b"* text=auto eol=crlf\n"], ["a"], [nearer])) == []
    assert list(changing([above], ["a"], [nearer])) == ["* filter=x"]


def test_a_payload_without_a_bottom_is_not_counted_on(tmp_path: Path) -> None:
    write_tree(tmp_path)
    (tmp_path / ".attestations").mkdir()
    payload = base64.b64encode(b"[" * 100_000).decode()
    (tmp_path / ".attestations" / RENDER_BUNDLE).write_text(json.dumps({"dsseEnvelope": {"payload": payload}}))
    what, findings = to_sign(of_folder(tmp_path))
    assert what is not None, findings
    assert what.sequence == 1


@pytest.mark.parametrize("sequence", [0, -1, 2**53 - 1, 2**64, 10**400, "x", None, 1.5])
def test_a_poisoned_sequence_is_not_counted_on(tmp_path: Path, sequence: object) -> None:
    write_tree(tmp_path)
    statement = json.loads(render_statement(Rendered((), {}, 1)))
    statement["predicate"]["sequence"] = sequence
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    (tmp_path / ".attestations").mkdir()
    (tmp_path / ".attestations" / RENDER_BUNDLE).write_text(json.dumps({"dsseEnvelope": {"payload": payload}}))
    what, findings = to_sign(of_folder(tmp_path))
    assert what is not None, findings
    assert what.sequence in (1, 2)
