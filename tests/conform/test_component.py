"""Webhooks that are found by URL, and components that wait for each other."""

import http.server

from blueprint.conform.component import answers, hooks_by_url
from tests.loopback import http_server


def test_services_become_urls_and_everything_else_stays():
    hook = {"name": "v.example.com", "failurePolicy": "Fail"}
    service = {"service": {"name": "s", "namespace": "system", "path": "/validate"}}
    shipped = [
        {"kind": "Service", "metadata": {"name": "s"}},
        {
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "webhooks"},
            "webhooks": [{**hook, "clientConfig": service}],
        },
    ]
    [found] = hooks_by_url(shipped, "https://127.0.0.1:1", "Q0E=", prefix="some-")
    assert found["metadata"]["name"] == "some-webhooks"
    client = {"url": "https://127.0.0.1:1/validate", "caBundle": "Q0E="}
    assert found["webhooks"] == [{**hook, "clientConfig": client}]


def test_a_url_answers_or_not():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/good" else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http_server(Handler) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        assert answers(f"{base}/good")
        assert not answers(f"{base}/bad")
    assert not answers(f"{base}/good")
