"""etcd and kube-apiserver as processes on loopback: the ground truth for every claim about what a server accepts.

    with ControlPlane() as plane:
        plane.load_crds(crds)
        plane.client.apply(body)

A throw-away: one administrator with a static token, no fsync, no controllers, a folder that goes when it ends.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import urllib3

from blueprint.conform import programs
from blueprint.conform.client import Client, Target
from blueprint.conform.crds import load
from blueprint.conform.daemon import Daemon, NotReady, free_ports
from blueprint.conform.keys import ec_private_key

_CONNECTIONS = 32


class ControlPlane:
    """One etcd and one kube-apiserver; `client` is there once it is entered.

    `folder` keeps data, logs and pid files and stays afterwards; without one it is temporary. `flags` are added to
    those of kube-apiserver, `users` (name → groups) get a kubeconfig each, and their name stands in the audit log.
    `seconds` bounds each single wait. Raises EnvironmentLacks when a program is missing, NotReady with the end of its
    log when one does not start.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        flags: Sequence[str] = (),
        users: Mapping[str, Sequence[str]] | None = None,
        seconds: float = 90,
    ) -> None:
        self._given = folder
        self._flags = flags
        self._users = users or {}
        self._seconds = seconds
        self._daemons: list[Daemon] = []
        self.version = ""

    def __enter__(self) -> ControlPlane:
        etcd, server = programs.find("etcd"), programs.find("kube-apiserver")
        self.folder = self._given or Path(tempfile.mkdtemp(prefix="blueprint-control-plane-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start(etcd.path, server.path)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid_files(self) -> list[Path]:
        """One file for each program that runs."""
        return [daemon.pid_file for daemon in self._daemons]

    def stop(self) -> None:
        """End the programs, the last started first, and remove the temporary folder."""
        while self._daemons:
            self._daemons.pop().stop()
        if self._given is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def load_crds(self, crds: Iterable[Mapping[str, Any]]) -> int:
        """Create CustomResourceDefinitions and wait until each kind is served; returns how many there were.

        Raises NotReady naming the first that is refused, or those that are not served in time.
        """
        return load(self.client, crds, self._seconds)

    def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and its `default` ServiceAccount, which pods need and no controller makes here.

        One that is there gets the labels. Raises NotReady when the server refuses it.
        """
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for body in (space, account):
            answer = self.client.create(body)
            if not answer.ok and answer.status != 409:
                raise NotReady(f"{body['kind']} {name} is refused: {answer.message}")
            if answer.status == 409 and labels and body is space:
                self.client.patch(Target.of(space), {"metadata": {"labels": dict(labels)}})

    def _start(self, etcd: Path, server: Path) -> None:
        data, peer, secure = free_ports(3)
        token = secrets.token_hex(16)
        key, tokens, certificates = (self.folder / name for name in ("sa.key", "tokens.csv", "certificates"))
        self.account_key = key
        others = {user: secrets.token_hex(16) for user in self._users}
        rows = [(token, "admin", ["system:masters"]), *((others[user], user, self._users[user]) for user in others)]
        listed = "".join(f'{secret},{user},{user},"{",".join(groups)}"\n' for secret, user, groups in rows)
        for file, content in ((key, ec_private_key()), (tokens, listed)):
            file.touch(mode=0o600)
            file.write_text(content, "ascii")
        self._daemons.append(Daemon("etcd", _etcd(etcd, self.folder / "etcd", data, peer), self.folder))
        command: list[str | Path] = [
            server,
            f"--etcd-servers=http://127.0.0.1:{data}",
            f"--secure-port={secure}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={certificates}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            *self._flags,
        ]
        self._daemons.append(Daemon("kube-apiserver", command, self.folder))
        # The server makes its own certificate for 127.0.0.1 and appends the authority that signed it.
        self.url = f"https://127.0.0.1:{secure}"
        self.client = Client(self.url, token=token, ca=certificates / "apiserver.crt", connections=_CONNECTIONS)
        self._daemons[-1].wait("/readyz", self._ready, self._seconds)
        self.version = str(self.client.request("GET", "/version").body.get("gitVersion", ""))
        authority = certificates / "apiserver.crt"
        self.kubeconfig = self._configured("kubeconfig", token, authority)
        self.kubeconfigs = {
            user: self._configured(f"kubeconfig-{user.rpartition(':')[2]}", others[user], authority) for user in others
        }

    def _configured(self, name: str, token: str, authority: Path) -> Path:
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(_kubeconfig(self.url, token, authority), "utf-8")
        return file

    def _ready(self) -> bool:
        """Whether /readyz and the first namespace answer; a dead etcd is said at once."""
        if not self._daemons[0].alive:
            raise NotReady(f"etcd ended while kube-apiserver started\n{self._daemons[0].tail()}")
        try:
            ready = self.client.request("GET", "/readyz").status == 200
            return ready and self.client.get(Target("v1", "Namespace", name="default")).ok
        except (urllib3.exceptions.HTTPError, OSError):
            return False


def _etcd(program: Path, data: Path, client: int, peer: int) -> list[str | Path]:
    here, there = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        program,
        f"--data-dir={data}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={there}",
        f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _kubeconfig(url: str, token: str, ca: Path) -> str:
    """JSON, which is YAML too."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": url, "certificate-authority": str(ca)}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
            "current-context": "local",
        }
    )
