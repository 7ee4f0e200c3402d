"""One comment on a pull request, edited in place: found again by a hidden marker in its first line."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from blueprint.deliver.calls import Answered, Pause, call, pages
from blueprint.deliver.forge import Forge, forge
from blueprint.errors import UsageError

_REQUEST = re.compile(
    r"(?P<repository>https?://[^/\s]+/[^\s?#]+?)/(?P<word>pull|pulls|-/merge_requests)/(?P<number>[1-9]\d*)(?:[/?#]\S*)?"
)
_KINDS = {"pull": "github", "pulls": "gitea", "-/merge_requests": "gitlab"}
_PAGE = 100


class Comment(StrEnum):
    """What became of a comment."""

    WRITTEN = "written"
    EDITED = "edited"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Request:
    """A pull request, or what a forge calls it: where it is, and its number there."""

    at: Forge
    number: str
    page: str = ""
    """Its web address."""


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment that stands now; `removed` counts older ones of ours that were in the way."""

    status: Comment
    url: str
    removed: int = 0


def request_of(address: str, environment: Mapping[str, str], *, kind: str = "", api: str = "") -> Request:
    """The pull request behind its web address.

    Raises UsageError for another address, EnvironmentLacks without a token.
    """
    match = _REQUEST.fullmatch(address)
    if match is None:
        hint = "such as https://github.com/OWNER/NAME/pull/7, or …/-/merge_requests/7 of GitLab"
        raise UsageError(f"{address} is no address of a pull request", hint=hint)
    at = forge(match["repository"], environment, kind=kind or _KINDS[match["word"]], api=api)
    number = match["number"]
    return Request(at, number, f"{match['repository']}/{match['word']}/{number}")


def comment(request: Request, marker: str, body: str, *, pause: Pause = time.sleep) -> Commented:
    """Write the comment, or edit the one that is there. Of several, which two runs at once can leave, one stays.

    Only comments of our own are touched: whoever else begins one with the marker keeps it.

    Raises EnvironmentLacks where the forge does not answer or says no, in its words and without the token.
    """
    calls = _Calls(request, pause)
    mine = [each for each in calls.all() if _begins(each, marker)]
    me = calls.me() if mine else None
    mine = [each for each in mine if _is_ours(request.at.kind, each, me)]
    if not mine:
        return Commented(Comment.WRITTEN, calls.url(calls.write(body)))
    status, stands = Comment.UNCHANGED, mine[0]
    if _text(stands["body"]) != _text(body):
        edited = calls.edit(stands, body)
        status = Comment.WRITTEN if edited is None else Comment.EDITED
        stands = calls.write(body) if edited is None else edited
    known = me is not None or request.at.kind == "github"
    return Commented(status, calls.url(stands), sum(calls.remove(each) for each in mine[1:]) if known else 0)


class _Calls:
    """What a forge calls its comments, and how it is asked for them."""

    def __init__(self, request: Request, pause: Pause) -> None:
        at, number = request.at, request.number
        self._at, self._pause, self._page = at, pause, request.page
        if at.kind == "gitlab":
            self._list = f"/projects/{quote(at.path, safe='')}/merge_requests/{number}/notes"
            self._each, self._method = self._list, "PUT"
        else:
            self._list = f"/repos/{at.path}/issues/{number}/comments"
            self._each, self._method = f"/repos/{at.path}/issues/comments", "PATCH"

    def all(self) -> list[dict[str, Any]]:
        """Every comment, the oldest first."""
        order = "&sort=asc&order_by=created_at" if self._at.kind == "gitlab" else ""
        found = pages(self._at, f"{self._list}?per_page={_PAGE}{order}", pause=self._pause)
        return sorted(found, key=lambda each: int(each["id"]))

    def me(self) -> str | None:
        """Who the token belongs to; None where it may not ask, as the tokens of GitHub's own CI may not."""
        try:
            value = call(self._at, "GET", "/user", pause=self._pause).value
        except Answered as error:
            if error.status in (403, 404):
                return None
            raise
        return str(value.get("login") or value.get("username"))

    def write(self, body: str) -> dict[str, Any]:
        """A new comment."""
        return dict(call(self._at, "POST", self._list, {"body": body}, pause=self._pause).value)

    def edit(self, old: Mapping[str, Any], body: str) -> dict[str, Any] | None:
        """The comment with another text; None where somebody took it away meanwhile."""
        try:
            path = f"{self._each}/{old['id']}"
            return dict(call(self._at, self._method, path, {"body": body}, pause=self._pause).value)
        except Answered as error:
            if error.status == 404:
                return None
            raise

    def remove(self, old: Mapping[str, Any]) -> bool:
        """Take a comment away; one that stays is no reason to end a run."""
        try:
            call(self._at, "DELETE", f"{self._each}/{old['id']}", pause=self._pause)
        except Answered:
            return False
        return True

    def url(self, each: Mapping[str, Any]) -> str:
        """The web address of a comment; GitLab's interface does not tell it."""
        return str(each.get("html_url") or f"{self._page}#note_{each['id']}")


def _begins(each: Mapping[str, Any], marker: str) -> bool:
    """Only at the very beginning: a reply that quotes the comment has the marker, too, but after `> `."""
    return str(each.get("body") or "").startswith(marker) and not each.get("system")


def _is_ours(kind: str, each: Mapping[str, Any], me: str | None) -> bool:
    author = each.get("user") or each.get("author") or {}
    if me is not None:
        return me in (author.get("login"), author.get("username"))
    # A token of GitHub's CI is that of an application, whose comments are a bot's; elsewhere nobody can tell.
    return kind != "github" or author.get("type") == "Bot"


def _text(body: object) -> str:
    """As forges keep it: other line ends, no blanks at the end."""
    return str(body).replace("\r\n", "\n").rstrip()
