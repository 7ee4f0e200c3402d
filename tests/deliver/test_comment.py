"""One comment a pull request, on forges that behave as their documents say."""

from __future__ import annotations

import time

import pytest
from typer.testing import CliRunner

from blueprint.cli import app
from blueprint.deliver.comment import Comment, Request, comment, request_of
from blueprint.deliver.forge import Forge
from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.review.markdown import MARKER

from .comments import ME, forge_with_comments
from .forges import TOKEN

KINDS = ["github", "gitlab", "gitea"]
PAGE = "https://forge.example.com/o/r/pull/7"


def request(kind, api, token=TOKEN):
    return Request(Forge(kind, api, "o/r", token), "7", PAGE)


def body(text):
    return f"{MARKER}\n{text}\n"


@pytest.mark.parametrize(
    ("address", "kind", "path", "number"),
    [
        ("https://github.com/o/r/pull/7", "github", "o/r", "7"),
        ("https://github.com/o/r/pull/7/files?w=1#top", "github", "o/r", "7"),
        ("https://git.example.com/a/b/r/-/merge_requests/12", "gitlab", "a/b/r", "12"),
        ("https://git.example.com/o/r/pulls/3/", "gitea", "o/r", "3"),
    ],
)
def test_the_pull_request_of_an_address(address, kind, path, number):
    names = {"GH_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "GITEA_TOKEN": TOKEN}
    found = request_of(address, names)
    assert (found.at.kind, found.at.path, found.number) == (kind, path, number)
    assert address.startswith(found.page)


@pytest.mark.parametrize("address", ["7", "o/r#7", "https://github.com/o/r", "https://github.com/o/r/issues/7"])
def test_what_is_no_pull_request(address):
    with pytest.raises(UsageError, match="is no address of a pull request"):
        request_of(address, {"GH_TOKEN": TOKEN})


def test_without_a_token_it_says_which():
    with pytest.raises(EnvironmentLacks) as caught:
        request_of("https://git.example.com/o/r/-/merge_requests/7", {"GH_TOKEN": TOKEN})
    assert caught.value.hint == "set GITLAB_TOKEN"


@pytest.mark.parametrize("kind", KINDS)
def test_written_once_then_edited_then_left_alone(kind):
    with forge_with_comments(kind) as (held, api):
        held.add("a person's words", "somebody")
        done = [comment(request(kind, api), MARKER, body(text)) for text in ("one", "two", "two")]
    assert [each.status for each in done] == [Comment.WRITTEN, Comment.EDITED, Comment.UNCHANGED]
    assert held.texts() == ["a person's words", body("two")]
    assert len({each.url for each in done}) == 1 and done[0].url.endswith("101")
    assert [method for method, _ in held.asked].count("POST") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_found_on_a_later_page(kind):
    with forge_with_comments(kind) as (held, api):
        for number in range(230):
            held.add(f"words {number}", "somebody")
        held.add(body("old"))
        for number in range(40):
            held.add(f"more words {number}", "somebody")
        assert comment(request(kind, api), MARKER, body("new")).status is Comment.EDITED
    assert held.texts()[230] == body("new") and len(held.comments) == 271
    listed = [path for method, path in held.asked if method == "GET" and path.endswith(("comments", "notes"))]
    assert len(listed) == (1 if kind == "gitea" else 3)


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_with_the_marker_the_older_stays(kind):
    with forge_with_comments(kind) as (held, api):
        first = held.add(body("one run"))
        held.add("a person's words", "somebody")
        held.add(body("another run at the same time"))
        done = comment(request(kind, api), MARKER, body("now"))
    assert held.texts() == [body("now"), "a person's words"] and held.comments[0]["id"] == first
    assert (done.status, done.removed) == (Comment.EDITED, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("theirs", "author", "more"),
    [
        (body("copied by a person"), "somebody", {}),
        (f"> {MARKER}\n> a quote", ME, {}),
        (f"see {MARKER}", ME, {}),
    ],
)
def test_comments_of_others_stay(kind, theirs, author, more):
    with forge_with_comments(kind) as (held, api):
        held.add(theirs, author, **more)
        assert comment(request(kind, api), MARKER, body("ours")).status is Comment.WRITTEN
        assert comment(request(kind, api), MARKER, body("ours again")).status is Comment.EDITED
    assert held.texts() == [theirs, body("ours again")]


def test_system_notes_of_gitlab_are_no_comments():
    with forge_with_comments("gitlab") as (held, api):
        held.add(body("changed the description"), system=True)
        assert comment(request("gitlab", api), MARKER, body("ours")).status is Comment.WRITTEN


def test_a_token_of_githubs_ci_knows_its_comments_by_the_bot():
    with forge_with_comments("github") as (held, api):
        held.knows_user = False
        held.add(body("copied by a person"), "somebody")
        held.add(body("old"))
        assert comment(request("github", api), MARKER, body("new")).status is Comment.EDITED
    assert held.texts() == [body("copied by a person"), body("new")]


def test_where_nobody_can_tell_whose_it_is_nothing_is_removed():
    with forge_with_comments("gitea") as (held, api):
        held.knows_user = False
        held.add(body("old"))
        held.add(body("copied by a person"), "somebody")
        assert comment(request("gitea", api), MARKER, body("new")).removed == 0
    assert held.texts() == [body("new"), body("copied by a person")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_comment_that_goes_meanwhile_is_written_again(kind):
    with forge_with_comments(kind) as (held, api):
        held.add(body("old"))
        held.vanishes = True
        assert comment(request(kind, api), MARKER, body("new")).status is Comment.WRITTEN
    assert held.texts() == [body("new")]


@pytest.mark.parametrize("kind", KINDS)
def test_other_line_ends_are_the_same_text(kind):
    with forge_with_comments(kind) as (held, api):
        held.add(body("a\nb").replace("\n", "\r\n").rstrip())
        assert comment(request(kind, api), MARKER, body("a\nb")).status is Comment.UNCHANGED
    assert not {"POST", "PUT", "PATCH"} & {method for method, _ in held.asked}


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_token_is_told_and_not_shown(kind):
    with forge_with_comments(kind) as (_, api), pytest.raises(EnvironmentLacks, match="answers 401") as caught:
        comment(request(kind, api, "an0ther-token"), MARKER, body("x"))
    assert caught.value.hint == "the token is wrong or has expired"
    assert "an0ther-token" not in caught.value.diagnostics() + str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_what_answers_is_no_forge(kind):
    with forge_with_comments(kind) as (held, api):
        held.answers.append((200, {}))
        with pytest.raises(EnvironmentLacks, match="answers with no list"):
            comment(request(kind, api), MARKER, body("x"))
    assert held.texts() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_request_that_is_not_there(kind):
    with forge_with_comments(kind) as (_, api), pytest.raises(EnvironmentLacks, match="answers 404") as caught:
        comment(Request(Forge(kind, api, "o/other", TOKEN), "7"), MARKER, body("x"))
    assert "not there" in caught.value.hint


def test_a_body_that_is_too_long():
    with forge_with_comments("github") as (held, api), pytest.raises(EnvironmentLacks, match="answers 422"):
        comment(request("github", api), MARKER, body("x" * 70_000))
    assert held.texts() == []


@pytest.mark.parametrize(
    ("status", "headers", "waits"),
    [
        (429, {"Retry-After": "7"}, [7.0]),
        (403, {"Retry-After": "60"}, [60.0]),
        (429, {}, [1.0]),
        (502, {}, [1.0]),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_is_waited_for(kind, status, headers, waits):
    waited = []
    with forge_with_comments(kind) as (held, api):
        held.answers.append((status, headers))
        assert comment(request(kind, api), MARKER, body("x"), pause=waited.append).status is Comment.WRITTEN
    assert waited == waits and held.texts() == [body("x")]


def test_githubs_limit_says_when_it_ends():
    waited = []
    with forge_with_comments("github") as (held, api):
        soon = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 30)}
        held.answers.append((403, soon))
        comment(request("github", api), MARKER, body("x"), pause=waited.append)
    assert len(waited) == 1 and 0 < waited[0] <= 31


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"})], 0),
        ([(429, {"Retry-After": "3600"})], 0),
        ([(429, {"Retry-After": "1"})] * 4, 3),
    ],
)
def test_a_limit_that_does_not_end(answers, pauses):
    waited = []
    with forge_with_comments("github") as (held, api):
        held.answers += answers
        with pytest.raises(EnvironmentLacks) as caught:
            comment(request("github", api), MARKER, body("x"), pause=waited.append)
    assert caught.value.hint == "the limit of requests is reached: run again later"
    assert len(waited) == pauses and held.texts() == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_have_been_written_is_not_written_twice(kind):
    """An answer is lost after the comment was kept: only reading is tried again, and the next run finds the comment."""
    with forge_with_comments(kind) as (held, api):
        held.loses_answers = True
        with pytest.raises(EnvironmentLacks, match="answers 502"):
            comment(request(kind, api), MARKER, body("x"), pause=lambda _: pytest.fail("a second try"))
        held.loses_answers = False
        assert comment(request(kind, api), MARKER, body("y")).status is Comment.EDITED
    assert held.texts() == [body("y")]


@pytest.mark.parametrize("kind", KINDS)
def test_review_keeps_one_comment(kind, tmp_path, monkeypatch):
    """The whole way of the command: two reviews of one pull request."""
    names = {"github": "GH_TOKEN", "gitlab": "GITLAB_TOKEN", "gitea": "GITEA_TOKEN"}
    for name in (*names.values(), "GITHUB_TOKEN", "FORGEJO_TOKEN", "GITHUB_API_URL", "CI_API_V4_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(names[kind], TOKEN)
    words = {"github": "pull", "gitlab": "-/merge_requests", "gitea": "pulls"}[kind]
    page = f"https://forge.example.com/o/r/{words}/7"
    for folder, data in (("base", "1"), ("head", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text(
            f'apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: web}}\ndata: {{x: "{data}"}}\n'
        )
    with forge_with_comments(kind) as (held, api):
        call = ["review", str(tmp_path / "base"), str(tmp_path / "head"), "--comment", page, "--forge-api", api]
        first, again = CliRunner().invoke(app, call), CliRunner().invoke(app, call)
    assert first.exit_code == again.exit_code == 0, first.output
    (text,) = held.texts()
    assert text.startswith(f"{MARKER}\n###") and "ConfigMap" in text
    assert "comment written: https://" in first.stderr and "comment unchanged: https://" in again.stderr
    assert TOKEN not in first.output + again.output


def test_review_says_at_once_that_it_cannot_comment(tmp_path, monkeypatch):
    for name in ("GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, ["review", "nowhere", "here", "--comment", "https://github.com/o/r/pull/7"])
    assert isinstance(done.exception, EnvironmentLacks) and done.exception.hint == "set GH_TOKEN or GITHUB_TOKEN"
