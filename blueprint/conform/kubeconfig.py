"""The cluster that a person works on: the current context of their kubeconfig, as a client."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from blueprint.conform.client import Client
from blueprint.errors import EnvironmentLacks, UsageError

Body = dict[str, Any]

_CONNECTIONS = 16
_EXEC_SECONDS = 60
_NOT_READ = {"proxy-url", "tls-server-name", "insecure-skip-tls-verify"}
_NOT_KNOWN = {"username", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"}


@dataclass(frozen=True, slots=True)
class Context:
    """A context by name: its server, and what it says of the cluster and of the user."""

    name: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]

    @property
    def server(self) -> str:
        """The address of its API server."""
        return str(self.cluster.get("server", ""))

    def client(self, folder: Path) -> Client:
        """A client of it; certificates and keys are written to `folder`, which only we may read.

        Raises UsageError for what cannot be honoured (a proxy, a server that is not verified), EnvironmentLacks where
        the program that gives credentials fails.
        """
        if found := sorted(key for key in _NOT_READ if self.cluster.get(key)):
            raise UsageError(f"context {self.name} has {', '.join(found)}, which conform does not honour")
        if found := sorted(key for key in _NOT_KNOWN if self.user.get(key)):
            raise UsageError(f"context {self.name} signs in by {', '.join(found)}, which conform does not know")
        authority = _file(self.cluster, "certificate-authority", folder)
        user = {**self.user, **_executed(self.user.get("exec"), self.name)}
        certificate, key = (_file(user, name, folder) for name in ("client-certificate", "client-key"))
        token = str(user.get("token") or "")
        if not token and user.get("tokenFile"):
            token = _read(Path(user["tokenFile"])).decode().strip()
        if not token and certificate is None:
            raise UsageError(f"context {self.name} has neither a token nor a certificate")
        return Client(
            self.server,
            token=token,
            ca=authority,
            connections=_CONNECTIONS,
            certificate=(certificate, key) if certificate and key else None,
        )


def current(environment: Mapping[str, str]) -> Context:
    """The current context of $KUBECONFIG, or of ~/.kube/config. Raises UsageError where there is none."""
    paths = [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = paths or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]
    found = [_load(path) for path in paths if path.is_file()]
    name = next((str(each["current-context"]) for each in found if each.get("current-context")), "")
    if not name:
        where = ", ".join(str(path) for path in paths)
        raise UsageError(f"no current context in {where}", hint="kubectl config use-context NAME, or set KUBECONFIG")
    context = _named(found, "contexts", "context", name)
    cluster = _named(found, "clusters", "cluster", str(context.get("cluster", "")))
    return Context(name, cluster, _named(found, "users", "user", str(context.get("user", ""))))


def _load(path: Path) -> Body:
    try:
        body = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    found: Body = body if isinstance(body, dict) else {}
    # As kubectl reads it, a relative path is relative to the file that it stands in.
    for section, inner in (("clusters", "cluster"), ("users", "user")):
        for row in found.get(section) or ():
            for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                if value := (row.get(inner) or {}).get(key):
                    row[inner][key] = str(path.parent / value)
    return found


def _named(found: Sequence[Body], section: str, inner: str, name: str) -> Body:
    for each in found:
        for row in each.get(section) or ():
            if row.get("name") == name:
                return dict(row.get(inner) or {})
    raise UsageError(f"the kubeconfig has no {inner} {name}")


def _file(holder: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    """A file that is named, or whose content stands in the configuration."""
    if inline := holder.get(f"{key}-data"):
        target = folder / key
        target.touch(mode=0o600)
        target.write_bytes(base64.b64decode(inline))
        return target
    return Path(holder[key]) if holder.get(key) else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _executed(plugin: Mapping[str, Any] | None, name: str) -> Body:
    """What a credential plugin answers (client-go v0.35.4 plugin/pkg/client/auth/exec); {} where there is none."""
    if not plugin:
        return {}
    asked = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
    own = {row["name"]: row["value"] for row in plugin.get("env") or ()}
    command = [plugin["command"], *(plugin.get("args") or ())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_EXEC_SECONDS,
        )
        status = json.loads(done.stdout)["status"] if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise EnvironmentLacks(f"context {name}: {plugin['command']} gives no credentials: {error!r}") from None
    if status is None:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EnvironmentLacks(f"context {name}: {plugin['command']} gives no credentials: {said}")
    found: Body = {"token": status["token"]} if status.get("token") else {}
    for key, data in (("clientCertificateData", "client-certificate"), ("clientKeyData", "client-key")):
        if status.get(key):
            found[f"{data}-data"] = base64.b64encode(status[key].encode()).decode()
    return found
