"""The current context as kubectl reads it, and what is not honoured and said so."""

import base64
import stat
import sys

import pytest
import yaml

from blueprint.conform.kubeconfig import current
from blueprint.errors import EnvironmentLacks, UsageError

SERVER = "https://127.0.0.1:1"


def written(path, *, name="here", cluster=None, user=None, **other):
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        **other,
    }
    path.write_text(yaml.safe_dump(body))
    return {"KUBECONFIG": str(path)}


def test_the_current_context_is_found_and_signs_in_by_token(tmp_path):
    context = current(written(tmp_path / "config"))
    assert (context.name, context.server) == ("here", SERVER)
    client = context.client(tmp_path)
    assert client.url == SERVER
    assert client._headers["Authorization"] == "Bearer secret"


def test_several_files_are_read_as_one_and_the_first_word_counts(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(yaml.safe_dump({"current-context": "here"}))
    written(second, name="here", user={"tokenFile": "token"})
    (tmp_path / "token").write_text("from a file\n")
    context = current({"KUBECONFIG": f"{first}:{tmp_path / 'absent'}:{second}"})
    assert context.client(tmp_path)._headers["Authorization"] == "Bearer from a file", "relative to its own file"


def test_keys_are_written_for_us_alone(tmp_path):
    data = base64.b64encode(b"pem").decode()
    user = {"client-certificate-data": data, "client-key-data": data}
    context = current(written(tmp_path / "config", user=user, cluster={"certificate-authority-data": data}))
    client = context.client(tmp_path)
    assert "Authorization" not in client._headers
    assert {"cert_file", "key_file", "ca_certs"} <= {k for k, v in client._pool.connection_pool_kw.items() if v}
    assert stat.S_IMODE((tmp_path / "client-key").stat().st_mode) == 0o600
    assert (tmp_path / "client-key").read_bytes() == b"pem"


def plugin(code):
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", code]}}


def test_a_program_gives_credentials(tmp_path):
    code = """
import json, os
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({**asked, "status": {"token": asked["kind"]}}))
"""
    context = current(written(tmp_path / "config", user=plugin(code)))
    assert context.client(tmp_path)._headers["Authorization"] == "Bearer ExecCredential"


@pytest.mark.parametrize("code", ["raise SystemExit('sign in first')", "print('no json')", "print('{}')"])
def test_a_program_that_gives_none_is_named(tmp_path, code):
    context = current(written(tmp_path / "config", user=plugin(code)))
    with pytest.raises(EnvironmentLacks, match="gives no credentials"):
        context.client(tmp_path)


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({"insecure-skip-tls-verify": True}, None, "insecure-skip-tls-verify"),
        ({"proxy-url": "http://p"}, None, "proxy-url"),
        ({}, {"username": "u", "password": "p"}, "username"),
        ({}, {"auth-provider": {"name": "x"}}, "auth-provider"),
        ({}, {}, "neither"),
        ({}, {"tokenFile": "absent"}, "absent"),
    ],
)
def test_what_cannot_be_honoured_is_refused(tmp_path, cluster, user, words):
    context = current(written(tmp_path / "config", cluster=cluster, user=user))
    with pytest.raises(UsageError, match=words):
        context.client(tmp_path)


def test_without_a_context_nothing_is_guessed(tmp_path):
    with pytest.raises(UsageError, match="no current context"):
        current({"HOME": str(tmp_path)})
    with pytest.raises(UsageError, match="no context other"):
        current(written(tmp_path / "config", **{"current-context": "other"}))
    (tmp_path / "broken").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        current({"KUBECONFIG": str(tmp_path / "broken")})
