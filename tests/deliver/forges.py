"""A server on loopback that answers as GitHub, GitLab and Gitea do about pull requests."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.loopback import http_server

TOKEN = "t0ken-of-a-test"
PAGE = 50


class Answering(BaseHTTPRequestHandler):
    """Answers in JSON, and says nothing on the terminal."""

    def log_message(self, *arguments):
        pass

    def answer(self, status, value=None, headers=None):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Handler(Answering):
    """Keeps what was opened in `server.opened`, and every request in `server.seen`."""

    def handle_any(self):
        kind = self.server.kind
        size = int(self.headers.get("Content-Length") or 0)
        document = json.loads(self.rfile.read(size)) if size else {}
        parts = urlsplit(self.path)
        self.server.seen.append((self.command, parts.path, document))
        expected = {"github": f"Bearer {TOKEN}", "gitea": f"token {TOKEN}"}.get(kind)
        given = self.headers.get("PRIVATE-TOKEN") if kind == "gitlab" else self.headers.get("Authorization")
        if given != (TOKEN if kind == "gitlab" else expected):
            return self.answer(401, {"message": f"bad credentials {given}"})
        if self.command == "GET":
            query = parse_qs(parts.query)
            found = self.server.opened
            if kind == "gitlab":
                found = [each for each in found if each["source_branch"] == query["source_branch"][0]]
                return self.answer(200, found)
            page = int(query.get("page", ["1"])[0])
            part, more = found[(page - 1) * PAGE : page * PAGE], page * PAGE < len(found)
            return self.answer(200, part, {"Link": '<http://next.example.com>; rel="next"'} if more else {})
        if self.command == "POST":
            number = len(self.server.opened) + 1
            url = f"https://{kind}.example.com/pr/{number}"
            new = {"number": number, "iid": number, "html_url": url, "web_url": url, **document}
            if kind != "gitlab":
                new |= {"head": {"ref": document["head"]}, "base": {"ref": document["base"]}}
            self.server.opened.append(new)
            return self.answer(201, new)
        number = int(parts.path.rpartition("/")[2])
        found = self.server.opened[number - 1]
        found |= document
        return self.answer(200, found)

    do_GET = do_POST = do_PUT = do_PATCH = handle_any


@contextmanager
def forge_of(kind):
    with http_server(Handler) as server:
        server.kind, server.opened, server.seen = kind, [], []
        yield server
