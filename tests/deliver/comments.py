"""A server on loopback that keeps comments as the documents of GitHub, GitLab and Gitea describe their interfaces."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import http_server

from .forges import TOKEN, Answering

ME = "github-actions[bot]"
LISTS = {
    "github": "/repos/o/r/issues/7/comments",
    "gitea": "/repos/o/r/issues/7/comments",
    "gitlab": "/projects/o/r/merge_requests/7/notes",
}
_EACH = "/repos/o/r/issues/comments/"
EACH = {"github": _EACH, "gitea": _EACH, "gitlab": f"{LISTS['gitlab']}/"}
LONGEST = {"github": 65_536, "gitlab": 1_000_000, "gitea": 1_000_000}


@dataclass
class Forge:
    """What the forge holds, and how it behaves: `answers` are given before anything else, the first one first."""

    kind: str
    comments: list[dict] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    answers: list[tuple[int, dict]] = field(default_factory=list)
    knows_user: bool = True
    vanishes: bool = False
    loses_answers: bool = False

    def add(self, body: str, author: str = ME, **more: object) -> int:
        """Another comment, by somebody; its id."""
        name = "author" if self.kind == "gitlab" else "user"
        key = "username" if self.kind == "gitlab" else "login"
        who = {key: author, "type": "Bot" if author.endswith("[bot]") else "User"}
        number = 100 + len(self.comments)
        self.comments.append({"id": number, "body": body, name: who, "system": False, **more})
        if self.kind != "gitlab":
            self.comments[-1]["html_url"] = f"https://{self.kind}.example.com/c/{number}"
        return number

    def texts(self) -> list[str]:
        return [each["body"] for each in self.comments]


class Handler(Answering):
    def handle_any(self):
        held: Forge = self.server.held
        size = int(self.headers.get("Content-Length") or 0)
        document = json.loads(self.rfile.read(size)) if size else {}
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        held.asked.append((self.command, path))
        if held.answers:
            status, headers = held.answers.pop(0)
            return self.answer(status, {"message": "an answer of the forge"}, headers)
        name, expected = {
            "github": ("Authorization", f"Bearer {TOKEN}"),
            "gitea": ("Authorization", f"token {TOKEN}"),
            "gitlab": ("PRIVATE-TOKEN", TOKEN),
        }[held.kind]
        if self.headers.get(name) != expected:
            return self.answer(401, {"message": f"Bad credentials {self.headers.get(name)}"})
        if path == "/user":
            key = "username" if held.kind == "gitlab" else "login"
            if held.knows_user:
                return self.answer(200, {key: ME})
            return self.answer(403, {"message": "Resource not accessible by integration"})
        if path == LISTS[held.kind]:
            return self.listed(parse_qs(parts.query)) if self.command == "GET" else self.written(document)
        if not path.startswith(EACH[held.kind]):
            return self.answer(404, {"message": "Not Found"})
        return self.one(int(path.rpartition("/")[2]), document)

    def listed(self, query):
        held: Forge = self.server.held
        if held.kind == "gitea":  # it gives all of them, whatever page is asked for
            return self.answer(200, held.comments)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        found = held.comments[(page - 1) * size : page * size]
        newest = held.kind == "gitlab" and query.get("sort") != ["asc"]
        more = page * size < len(held.comments)
        link = {"Link": f'<http://elsewhere.example.com/?page={page + 1}>; rel="next"'} if more else {}
        return self.answer(200, found[::-1] if newest else found, link)

    def written(self, document):
        held: Forge = self.server.held
        if len(document["body"]) > LONGEST[held.kind]:
            return self.answer(422, {"message": "Validation Failed: body is too long"})
        held.add(document["body"])
        return self.answer(502) if held.loses_answers else self.answer(201, held.comments[-1])

    def one(self, number, document):
        held: Forge = self.server.held
        found = next((each for each in held.comments if each["id"] == number), None)
        method = "PUT" if held.kind == "gitlab" else "PATCH"
        if held.vanishes and found is not None:
            held.comments.remove(found)
        if found is None or held.vanishes or self.command not in (method, "DELETE"):
            return self.answer(404, {"message": "Not Found"})
        if self.command == "DELETE":
            held.comments.remove(found)
            return self.answer(204)
        found |= document
        return self.answer(200, found)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any


@contextmanager
def forge_with_comments(kind):
    with http_server(Handler) as server:
        server.held = Forge(kind)
        yield server.held, f"http://127.0.0.1:{server.server_port}"
