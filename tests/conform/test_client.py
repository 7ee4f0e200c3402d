import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from blueprint.conform.client import Answer, Client, Target
from tests.loopback import http_server

APPS = {
    "resources": [
        {"name": "widgets", "kind": "Widget", "namespaced": True},
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
    ]
}
CORE = {"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": False}]}


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    discovery = {"/apis/example.com/v1": APPS, "/api/v1": CORE}

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append((self.command, self.path, self.headers.get("Content-Type"), body))
        found = self.discovery.get(self.path, {"echo": json.loads(body) if body else None})
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Warning", '299 - "old"')
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def server():
    with http_server(Recorder) as http:
        http.seen = []
        client = Client(f"http://127.0.0.1:{http.server_port}", token="t", ca=Path("unused"))
        http.client = client
        yield http
        client.close()


WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "n"}}


@pytest.mark.parametrize(
    ("verb", "method", "path"),
    [
        ("create", "POST", "/apis/example.com/v1/namespaces/n/widgets?fieldValidation=Strict&dryRun=All"),
        ("replace", "PUT", "/apis/example.com/v1/namespaces/n/widgets/a?fieldValidation=Strict&dryRun=All"),
        (
            "apply",
            "PATCH",
            "/apis/example.com/v1/namespaces/n/widgets/a?fieldValidation=Strict&dryRun=All&fieldManager=blueprint&force=true",
        ),
    ],
)
def test_writes_are_strict(server, verb, method, path):
    answer = getattr(server.client, verb)(WIDGET, dry_run=True)
    assert answer.body == {"echo": WIDGET}
    assert answer.warnings == ('299 - "old"',)
    assert server.seen[-1][:2] == (method, path)


def test_the_target_decides_where_and_not_a_broken_body(server):
    broken = {"apiVersion": 1, "metadata": {"name": {}}}
    server.client.create(broken, at=Target.of(WIDGET))
    assert server.seen[-1][1].startswith("/apis/example.com/v1/namespaces/n/widgets?")


def test_names_are_quoted_and_cluster_scope_has_no_namespace(server):
    server.client.get(Target("v1", "Namespace", "ignored", "a/../b c"))
    assert server.seen[-1][1] == "/api/v1/namespaces/a%2F..%2Fb%20c"


def test_discovery_is_asked_once_for_what_is_served_and_again_for_what_is_not(server):
    for _ in range(3):
        server.client.create(WIDGET)
    assert [seen[1] for seen in server.seen].count("/apis/example.com/v1") == 1
    assert not server.client.serves("example.com/v1", "Gadget")
    assert not server.client.serves("example.com/v1", "Gadget")
    assert [seen[1] for seen in server.seen].count("/apis/example.com/v1") == 3


def test_a_kind_without_a_resource_is_a_404_without_a_request(server):
    answer = server.client.delete(Target("example.com/v1", "Gadget", "n", "g"))
    assert (answer.status, answer.ok) == (404, False)
    assert 'no matches for kind "Gadget"' in answer.message
    assert {seen[0] for seen in server.seen} == {"GET"}


def test_causes_come_from_the_status_details():
    cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}
    assert Answer(422, {"details": {"causes": [cause]}}).causes == [cause]
    assert Answer(400, {"message": "bad"}).causes == []
    assert Answer(500, {}).message == ""
