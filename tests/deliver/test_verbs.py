"""`commit` and `promote` as a person calls them, on the example platforms and bare repositories."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from blueprint.new import copy_example
from tests.loopback import http_server

from .forges import TOKEN, forge_of
from .repositories import bare, files_at, git, history, own_config


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A platform in a Git repository of its own, and a bare GitOps repository."""
    own_config(monkeypatch, tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    copy_example("minimal", tmp_path / "platform")
    git(tmp_path / "platform", "init", "--quiet", "--initial-branch=main")
    keep(tmp_path / "platform", "Start")
    return tmp_path / "platform", bare(tmp_path)


def keep(platform, message):
    git(platform, "add", "--all")
    git(platform, "commit", "--quiet", "-m", message)


def run(platform, *arguments, code=0, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "blueprint", *map(str, arguments)],
        cwd=platform,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_commit_and_the_same_again(world):
    platform, remote = world
    before = git(platform, "status", "--porcelain")
    said = run(platform, "commit", "--remote", remote).stdout
    assert said.startswith("main: lab · ")
    assert "up to date" in run(platform, "commit", "--remote", remote).stdout
    assert len(history(remote)) == 1
    assert git(platform, "status", "--porcelain") == before
    text = git(remote, "log", "-1", "--format=%B", "main")
    assert f"Spec-Commit: {git(platform, 'rev-parse', 'HEAD')}" in text
    assert "rendered/blueprint.lock" in files_at(remote)


def test_specs_that_are_not_committed(world):
    platform, remote = world
    spec = platform / "apps/demo/demo.yaml"
    spec.write_text(spec.read_text() + "# changed\n")
    refused = run(platform, "commit", "--remote", remote, code=2)
    assert "apps/demo/demo.yaml" in refused.stderr and "--dirty" in refused.stderr
    run(platform, "commit", "--remote", remote, "--dirty")
    assert "Spec-State: 1 files changed since" in git(remote, "log", "-1", "--format=%B", "main")
    assert spec.read_text().endswith("# changed\n")


def test_a_dry_run_shows_the_message(world):
    platform, remote = world
    said = run(platform, "commit", "--remote", remote, "--dry-run").stdout
    assert "    Deliver lab: " in said and "    Release: " in said
    document = json.loads(run(platform, "commit", "--remote", remote, "--dry-run", "-o", "json").stdout)
    (delivery,) = document["deliveries"]
    assert (delivery["status"], delivery["branch"], delivery["base"]) == ("planned", "main", "")
    assert git(remote, "for-each-ref") == ""


def test_a_signed_tree_keeps_its_signatures(world):
    platform, remote = world
    run(platform, "render")
    proof = platform / "rendered/.attestations/render.sigstore.json"
    proof.parent.mkdir()
    proof.write_text("{}")
    keep(platform, "Render")
    run(platform, "commit", "--remote", remote, "--tree", "rendered")
    assert files_at(remote)["rendered/.attestations/render.sigstore.json"] == "{}"
    (platform / "rendered/lab/queues").rglob("*.yaml").__next__().write_text("edited")
    assert "not as it was rendered" in run(platform, "commit", "--remote", remote, "--tree", "rendered", code=2).stderr


def test_a_branch_for_each_environment_and_promotion(world):
    platform, remote = world
    cluster = (platform / "clusters/lab.yaml").read_text()
    live = cluster.replace("name: lab", "name: live").replace("development", "production")
    (platform / "clusters/live.yaml").write_text(live)
    (platform / "clusters/lab.yaml").write_text(cluster)
    demo = platform / "apps/demo/demo.yaml"
    demo.write_text(
        demo.read_text()
        .replace(
            "{cluster: lab, pool: gpu, gpus: 8}",
            "{cluster: lab, pool: gpu, gpus: 8}, {cluster: live, pool: gpu, gpus: 8}",
        )
        .replace("clusters: [lab]", "clusters: [lab, live]")
    )
    (platform / "argocd/delivery.yaml").write_text(
        "apiVersion: platform.blueprint/v1alpha1\nkind: Delivery\nmetadata: {name: delivery}\nspec:\n"
        f"  repository: {{url: 'file://{remote}', revision: 'env/{{environment}}'}}\n  promotion: [[lab], [live]]\n"
    )
    keep(platform, "Two")
    run(platform, "commit")
    assert git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads") == "env/development"
    assert "targetRevision: env/development" in "".join(
        text for name, text in files_at(remote, "env/development").items() if "/argocd/" in name
    )
    run(platform, "promote", "production")
    first = files_at(remote, "env/production")
    assert any(name.startswith("rendered/live/") for name in first)
    assert not any(name.startswith("rendered/lab/") for name in first)
    demo.write_text(demo.read_text().replace("32Gi", "48Gi"))
    keep(platform, "More memory")
    run(platform, "commit")
    assert files_at(remote, "env/production") == first
    shown = run(platform, "promote", "live", "--dry-run").stdout
    assert shown.startswith("review env/production → release ")
    assert "would be committed" in shown
    assert files_at(remote, "env/production") == first
    run(platform, "promote", "live")
    assert files_at(remote, "env/production") != first
    assert "review env/production → release " in run(platform, "promote", "production", "--back").stdout
    assert files_at(remote, "env/production") == first
    assert "first stage" in run(platform, "promote", "lab", code=2).stderr
    release = run(platform, "promote", "live", "-o", "json").stdout
    named = json.loads(release)["deliveries"][0]["release"]
    run(platform, "promote", "live", "--back")
    run(platform, "promote", "live", "--to", named[:10])
    assert files_at(remote, "env/production") != first


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_a_pull_request(world, kind):
    platform, remote = world
    run(platform, "commit", "--remote", remote)
    spec = platform / "apps/demo/demo.yaml"
    spec.write_text(spec.read_text().replace("32Gi", "48Gi"))
    keep(platform, "More memory")
    # The address is that of a forge; git is told to find the repository on the disk.
    rewrite = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{remote}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example.com/o/r.git",
    }
    names = {"github": "GH_TOKEN", "gitlab": "GITLAB_TOKEN", "gitea": "GITEA_TOKEN"}
    with forge_of(kind) as server:
        api = f"http://127.0.0.1:{server.server_port}"
        call = (
            "commit",
            "--remote",
            "https://git.example.com/o/r.git",
            "--pull-request",
            "--forge",
            kind,
            "--forge-api",
            api,
        )
        done = run(platform, *call, **rewrite, **{names[kind]: TOKEN})
        assert f"https://{kind}.example.com/pr/1" in done.stdout
        first = git(remote, "rev-parse", "blueprint/main")
        run(platform, *call, **rewrite, **{names[kind]: TOKEN})
        assert git(remote, "rev-parse", "blueprint/main") == first
    assert len(server.opened) == 1
    assert TOKEN not in done.stdout + done.stderr
    assert git(remote, "rev-parse", "blueprint/main^") == git(remote, "rev-parse", "main")


@contextmanager
def over_http(folder):
    """Git's own smart protocol, by its CGI program."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def serve(self):
            path, _, query = self.path.partition("?")
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            names = {
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(data)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            }
            done = subprocess.run(["git", "http-backend"], env=os.environ | names, input=data, capture_output=True)
            head, _, body = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = serve

    with http_server(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_over_http(world, tmp_path):
    platform, remote = world
    git(remote, "config", "http.receivepack", "true")
    with over_http(tmp_path) as address:
        run(platform, "commit", "--remote", f"{address}/gitops.git")
        assert "up to date" in run(platform, "commit", "--remote", f"{address}/gitops.git").stdout
        git(remote, "config", "http.receivepack", "false")
        spec = platform / "apps/demo/demo.yaml"
        spec.write_text(spec.read_text().replace("32Gi", "48Gi"))
        keep(platform, "More memory")
        assert "403" in run(platform, "commit", "--remote", f"{address}/gitops.git", code=3).stderr
    assert len(history(remote)) == 1
