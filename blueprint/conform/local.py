"""A cluster of ordinary processes: control plane, nodes of KWOK, and the controllers that the suites want."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from blueprint.conform import modules, programs
from blueprint.conform.certificates import Authority, authority, issue
from blueprint.conform.client import Client, Target
from blueprint.conform.component import Component, Ground, answers
from blueprint.conform.components.core import CORE
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.crds import load
from blueprint.conform.daemon import Daemon, NotReady, free_ports
from blueprint.conform.nodes import node_objects

Body = dict[str, Any]


@dataclass(slots=True)
class Running:
    """A started component."""

    component: Component
    ground: Ground
    daemon: Daemon
    hooks: tuple[Body, ...] = ()


@dataclass(slots=True)
class Figures:
    """What the start took, in seconds since it began."""

    marks: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def mark(self, what: str) -> None:
        """Note that something is done."""
        self.marks[what] = round(time.monotonic() - self.began, 1)


class LocalCluster:
    """A cluster as processes on loopback, for the objects of one rendered tree.

    `client` is the administrator's. `components` come beside the core ones, those that a suite starts by itself are
    told as `later`. `folder` keeps logs and data; `isolated` says that the caller is in namespaces of its own
    (isolate.py); `seconds` bounds each single wait. Raises EnvironmentLacks when a program is missing, NotReady with
    the end of its log when one does not start.
    """

    def __init__(
        self,
        objects: Sequence[Body],
        components: Sequence[Component] = (),
        *,
        folder: Path | None = None,
        isolated: bool = False,
        later: Sequence[Component] = (),
        flags: Sequence[str] = (),
        crds: Sequence[Body] = (),
        seconds: float = 180,
    ) -> None:
        self._objects = objects
        self._components = (*CORE, *components)
        self._later = later
        self._given = folder
        self._isolated = isolated
        self._crds = crds
        self._seconds = seconds
        self._running: dict[str, Running] = {}
        self._ports: dict[str, dict[str, int]] = {}
        self._flags = flags
        self.figures = Figures()

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.plane.client

    def __enter__(self) -> LocalCluster:
        for component in self._components:
            programs.find(component.program)  # before anything is started
        self.folder = self._given or Path(tempfile.mkdtemp(prefix="blueprint-conform-"))
        users = {component.identity: component.groups for component in (*self._components, *self._later)}
        self._authority = authority(self.folder / "certificates")
        flags = [*self._flags, *_front_proxy(self._authority)]
        self.plane = ControlPlane(self.folder / "plane", flags=flags, users=users, seconds=self._seconds)
        try:
            self.plane.__enter__()
            self.figures.mark("API server")
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End every program, the last started first."""
        for name in reversed(self._running):
            self._running[name].daemon.stop()
        self._running.clear()
        self.plane.stop()
        if self._given is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid_files(self) -> list[Path]:
        """One file for each program that runs."""
        return [*self.plane.pid_files, *(running.daemon.pid_file for running in self._running.values())]

    def ground(self, name: str) -> Ground:
        """What a running component stands on."""
        return self._running[name].ground

    def runs(self, name: str) -> bool:
        """Whether a component was started and has not ended."""
        return name in self._running and self._running[name].daemon.alive

    def start(self, component: Component) -> None:
        """Start one more component, and wait until it is ready.

        Raises EnvironmentLacks when its program is missing, NotReady when it does not start.
        """
        programs.find(component.program)
        ground = self._lay(component)
        self._populate([component], {component.name: ground})
        component.prepare(ground)
        self._run(component, ground)
        self._await(self._running[component.name])

    def end(self, name: str) -> None:
        """End one component; its webhook configurations stay, as they would in a cluster."""
        self._running[name].daemon.stop()

    def log(self, name: str) -> Path:
        """The log of a component."""
        return self._running[name].daemon.log

    def hooks_of(self, name: str) -> tuple[Body, ...]:
        """The webhook configurations that were written for a component."""
        return self._running[name].hooks

    def _start(self) -> None:
        """The core's programs first; the others as soon as their kinds are served, while the nodes become Ready."""
        core, rest = self._components[: len(CORE)], self._components[len(CORE) :]
        for component in core:
            self._run(component)
        grounds = {component.name: self._lay(component) for component in rest}
        self._populate(rest, grounds)
        self.figures.mark("nodes and kinds")
        begun = self._begin(rest, grounds)
        for component in core:
            self._await(self._running[component.name])
        self._await_accounts()
        self.figures.mark("core controllers")
        waiting = [component for component in rest if component not in begun]
        with ThreadPoolExecutor(max(1, len(rest))) as pool:
            while begun:
                list(pool.map(self._await, [self._running[component.name] for component in begun]))
                begun = self._begin(waiting, grounds)
                waiting = [component for component in waiting if component not in begun]
        if waiting:
            raise NotReady(f"components wait for each other: {', '.join(c.name for c in waiting)}")
        self.figures.mark("controllers")

    def _begin(self, components: Sequence[Component], grounds: dict[str, Ground]) -> list[Component]:
        """Start those that wait for nobody who does not run yet; returns them."""
        ready = [component for component in components if all(name in self._running for name in component.after)]
        for component in ready:
            component.prepare(grounds[component.name])
            self._run(component, grounds[component.name])
        return ready

    def _populate(self, components: Sequence[Component], grounds: dict[str, Ground]) -> None:
        """Kinds, namespaces and nodes, several at a time."""
        shipped: dict[str, Body] = {}
        for component in components:
            for source in component.crds:
                for crd in modules.crds(source.module, source.pinned, source.folders, kind=source.kind):
                    shipped[crd["metadata"]["name"]] = component.convert(grounds[component.name], crd)
        for crd in self._crds:
            shipped.setdefault(crd["metadata"]["name"], crd)
        load(self.client, shipped.values(), self._seconds)
        names = sorted({name for component in components for name in component.namespaces})
        bodies = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
        self.create([*bodies, *node_objects(self._objects)])

    def create(self, bodies: Iterable[Body]) -> None:
        """Create objects, four at a time; raises NotReady naming one that is refused."""
        bodies = list(bodies)
        with ThreadPoolExecutor(4) as pool:
            for body, answer in zip(bodies, pool.map(self.client.create, bodies), strict=True):
                if not answer.ok and answer.status != 409:
                    raise NotReady(f"{body['kind']} {body['metadata']['name']} is refused: {answer.message}")

    def _await_accounts(self) -> None:
        target = Target("v1", "ServiceAccount", "default", "default")
        self.client.until(target, bool, self._seconds, "the first ServiceAccount of the controller manager")
        for body in node_objects(self._objects):
            target = Target("v1", "Node", name=body["metadata"]["name"])
            self.client.until(target, _is_ready, self._seconds, f"node {target.name} to be Ready")

    def _lay(self, component: Component) -> Ground:
        folder = self.folder / component.name
        folder.mkdir(parents=True, exist_ok=True)
        ports = dict(zip(component.ports, free_ports(len(component.ports)), strict=True))
        self._ports[component.name] = ports
        kubeconfig = self.plane.kubeconfigs[component.identity]
        return Ground(
            self.plane,
            kubeconfig,
            folder,
            ports,
            self._authority,
            self._objects,
            self._isolated,
            self._ports,
        )

    def _run(self, component: Component, ground: Ground | None = None) -> None:
        ground = ground or self._lay(component)
        command = [programs.find(component.program).path, *component.arguments(ground)]
        environment = {"KUBECONFIG": str(ground.kubeconfig), **component.environment(ground)}
        daemon = Daemon(component.name, command, self.folder, environment=environment)
        self._running[component.name] = Running(component, ground, daemon)

    def _await(self, running: Running) -> None:
        component, ground = running.component, running.ground
        url = component.ready(ground)

        def ready() -> bool:
            return (not url or answers(url)) and all(_listens(ground.ports[port]) for port in component.listens)

        running.daemon.wait(url or "its port", ready, self._seconds)
        running.hooks = tuple(component.hooks(ground))
        for hook in running.hooks:
            answer = self.client.apply(hook)
            if not answer.ok:
                raise NotReady(f"{hook['kind']} of {component.name} is refused: {answer.message}")
        self.figures.mark(component.name)


def _front_proxy(by: Authority) -> list[str]:
    """Who the API server is for API servers that it passes requests on to, and how it tells them who asks."""
    own = issue(by, ("front-proxy-client",))
    return [
        f"--requestheader-client-ca-file={own / 'ca.crt'}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={own / 'tls.crt'}",
        f"--proxy-client-key-file={own / 'tls.key'}",
    ]


def _is_ready(node: Body) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _listens(port: int) -> bool:
    """Some programs answer that they are ready before they listen for webhooks."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
