"""The pod around a vLLM server: shared memory, probes, the end of a pod, variables, ports, and room for the weights.

Sources: vllm 0.33.0 envs.py (get_vllm_port, VLLM_ENGINE_READY_TIMEOUT_S), entrypoints/openai (routes, shutdown),
docs/deployment/k8s.md; k8s.io/kubernetes@v1.35.4 pkg/kubelet (envvars, probes, kill).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.catalog.facts import Presence, flag
from blueprint.catalog.vllm import ENGINE_PATIENCE, newest
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.probes import HTTP, acts, grace, mounted, patience, port_of, pre_stop
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import mapping, maps, number, text
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.quantity import QuantityError, parse_quantity

_SHM = "/dev/shm"  # noqa: S108 - a path in a container
_READ_RATE = 2**30
"""Bytes a second: what a good store gives. A slower one only makes a start longer."""
_START = 40
"""Seconds that a start takes beside reading the weights: imports, compilation, CUDA graphs."""
_PATHS = frozenset(
    {
        "/health",
        "/ping",
        "/load",
        "/version",
        "/metrics",
        "/v1/models",
        "/ready",
        "/readyz",
        "/docs",
        "/openapi.json",
        "/is_sleeping",
        "/server_info",
    }
)
_PORT_VARIABLES = {
    "vllm": "VLLM_PORT",
    "vllm-dp-master": "VLLM_DP_MASTER_PORT",
    "vllm-nixl-side-channel": "VLLM_NIXL_SIDE_CHANNEL_PORT",
    "vllm-mooncake-bootstrap": "VLLM_MOONCAKE_BOOTSTRAP_PORT",
}
"""Services whose name gives a variable that vLLM reads as a number (vllm envs.py)."""


def shared_memory(graph: Graph) -> Iterator[Finding]:
    """SRV231, SRV232: several ranks with the 64 MiB of /dev/shm that a container has, or a volume that cannot be."""
    for engine in engines(graph):
        spec, path = engine.pod.spec, f"{engine.at}.volumeMounts"
        volume = mounted(spec, engine.container, _SHM)
        ranks = min(engine.world or 1, engine.gpus or 1)
        if volume is None:
            if ranks > 1 and spec.get("hostIPC") is not True:
                message = f"{ranks} GPUs work together through /dev/shm, and a container has 64 MiB of it"
                fix = "mount an emptyDir with medium: Memory and a sizeLimit of some GiB at /dev/shm"
                yield say("SRV231", engine.manifest, message, path, fix)
            continue
        folder = volume.get("emptyDir")
        if not isinstance(folder, dict):
            continue
        if folder.get("medium") != "Memory" and ranks > 1:
            message = f"{_SHM} lies on a disk: what ranks say to one another goes through it"
            yield warn("SRV231", engine.manifest, message, path, "medium: Memory")
        size, limit = _amount(folder.get("sizeLimit")), _amount(_limits(engine).get("memory"))
        if folder.get("medium") == "Memory" and size and limit and size >= limit:
            message = f"what is written to {_SHM} counts as memory of the container, whose limit is not above sizeLimit"
            yield warn(
                "SRV232", engine.manifest, message, f"{engine.at}.resources.limits.memory", "raise the limit of memory"
            )


def _limits(engine: Engine) -> dict[str, object]:
    return mapping(mapping(engine.container.get("resources")).get("limits"))


def _amount(value: object) -> float | None:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        return float(parse_quantity(value))
    except QuantityError:
        return None


def start_time(engine: Engine) -> float | None:
    """Seconds that a start takes at the least, None for a model that is not known."""
    shape = engine.model
    weights = shape.weights_bytes() if shape and not engine.option("--quantization") else None
    return None if weights is None else _START + weights / _READ_RATE


def killed_while_loading(graph: Graph) -> Iterator[Finding]:
    """SRV233, SRV234, SRV235: the kubelet or the engine itself gives up before the weights are read."""
    for engine in engines(graph):
        startup, liveness, needed = engine.probe("startupProbe"), engine.probe("livenessProbe"), start_time(engine)
        if engine.headless:
            continue
        if acts(startup):
            allowed = patience(startup)
            if allowed is not None and needed and allowed < needed:
                message = (
                    f"the container is killed after {allowed} s, and {engine.model_name} needs {needed:.0f} s or more"
                )
                yield say("SRV234", engine.manifest, message, f"{engine.at}.startupProbe", _probe_fix(needed))
            if allowed and allowed > ENGINE_PATIENCE and "VLLM_ENGINE_READY_TIMEOUT_S" not in engine.variables:
                message = f"the probe waits {allowed} s, the engine itself only {ENGINE_PATIENCE} s"
                fix = f'set VLLM_ENGINE_READY_TIMEOUT_S to "{allowed}"'
                yield note("SRV235", engine.manifest, message, f"{engine.at}.startupProbe", fix)
        elif acts(liveness):
            allowed = patience(liveness)
            if allowed is None:
                continue
            if needed and allowed < needed:
                message = (
                    f"liveness kills the container after {allowed} s; {engine.model_name} needs {needed:.0f} s or more"
                )
                yield say("SRV233", engine.manifest, message, f"{engine.at}.livenessProbe", _probe_fix(needed))
            elif allowed < ENGINE_PATIENCE:
                message = f"liveness kills the container after {allowed} s, also while it still loads"
                yield warn("SRV233", engine.manifest, message, f"{engine.at}.livenessProbe", _probe_fix(needed or 400))


def _probe_fix(needed: float) -> str:
    tries = int(max(60, needed * 1.5 // 10 + 1))
    return f"a startupProbe on /health with periodSeconds: 10 and failureThreshold: {tries}, and no initialDelaySeconds"


def cut_off(graph: Graph) -> Iterator[Finding]:
    """SRV236, SRV237: requests under way when a pod stops are aborted."""
    for engine in engines(graph):
        allowed, hook = grace(engine.pod.spec), pre_stop(engine.container)
        drain = engine.size("--shutdown-timeout", 0)
        if allowed is None or drain is None or engine.headless:
            continue
        path = f"{engine.pod.spec_path}.terminationGracePeriodSeconds"
        if drain and hook + drain >= allowed:
            message = (
                f"preStop {hook} s and draining {drain} s are {hook + drain} s, and the pod is killed after {allowed} s"
            )
            yield say("SRV236", engine.manifest, message, path, f"terminationGracePeriodSeconds: {hook + drain + 15}")
        elif not drain and engine.version and _has(engine, "--shutdown-timeout") and engine.manifest.kind != "Pod":
            message = "vLLM aborts the requests under way at the signal: --shutdown-timeout is 0"
            fix = "--shutdown-timeout, a preStop sleep of 10 s, and a longer terminationGracePeriodSeconds"
            yield warn("SRV237", engine.manifest, message, engine.at, fix)


def _has(engine: Engine, name: str) -> bool:
    return flag(name, engine.version or newest()).presence is Presence.PRESENT


def signals_swallowed(graph: Graph) -> Iterator[Finding]:
    """SRV238: a shell is the first process, and does not hand the signal on."""
    for engine in engines(graph):
        if engine.command.by_shell and not engine.command.replaced and not engine.command.alone:
            message = (
                "the shell runs on as process 1 and does not pass SIGTERM on: the server is killed instead of drained"
            )
            yield warn(
                "SRV238", engine.manifest, message, f"{engine.at}.{engine.command.words[0].at}", "exec vllm serve …"
            )


def service_links(graph: Graph) -> Iterator[Finding]:
    """SRV239: a Service whose name makes a variable that vLLM takes for its own setting."""
    for engine in engines(graph):
        if engine.pod.spec.get("enableServiceLinks") is False:
            continue
        for name, variable in _PORT_VARIABLES.items():
            service = graph.get(Ref("", "Service", engine.manifest.ref.namespace, name))
            if service is None or variable in engine.variables:
                continue
            if (
                mapping(service.body.get("spec")).get("clusterIP") == "None"
                or mapping(service.body.get("spec")).get("type") == "ExternalName"
            ):
                continue
            message = f"the Service {name} gives every pod here {variable}=tcp://…, and vLLM fails to start on it"
            fix = "enableServiceLinks: false, or another name for the Service"
            yield say("SRV239", engine.manifest, message, engine.pod.spec_path, fix)


def loopback(graph: Graph) -> Iterator[Finding]:
    """SRV245: the server listens on the loopback address only, and the kubelet asks the pod's."""
    for engine in engines(graph):
        host = engine.option("--host")
        others = len(maps(engine.pod.spec.get("containers"))) > 1
        if host is None or host.known not in ("127.0.0.1", "localhost", "::1") or others or _meshed(engine):
            continue
        asked = [name for name in ("startupProbe", "livenessProbe", "readinessProbe") if HTTP in engine.probe(name)]
        if asked:
            message = f"the server listens on {host.known} only, and {asked[0]} asks the address of the pod: no answer"
            yield say("SRV245", engine.manifest, message, f"{engine.at}.{asked[0]}", "--host=0.0.0.0, or no --host")


def probe_ports(graph: Graph) -> Iterator[Finding]:
    """SRV240, SRV241: a probe asks a port or path at which nothing answers."""
    for engine in engines(graph):
        if engine.headless or engine.port is None or engine.option("--uds"):
            continue
        others = [each for each in maps(engine.pod.spec.get("containers")) if each is not engine.container]
        others += [
            each for each in maps(engine.pod.spec.get("initContainers")) if each.get("restartPolicy") == "Always"
        ]
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = engine.probe(name)
            port = port_of(probe, engine.container)
            if port is not None and port != engine.port and not others and not _meshed(engine):
                message = f"{name} asks port {port}, and the server listens on {engine.port}"
                fix = f"ask {engine.port}, or --port={port}"
                yield say("SRV240", engine.manifest, message, f"{engine.at}.{name}", fix)
            path = text(mapping(probe.get(HTTP)).get("path")).partition("?")[0].rstrip("/")
            if HTTP in probe and port == engine.port and path not in _PATHS and not engine.option("--root-path"):
                message = f"{name} asks {path or '/'}, for which vLLM has no answer (404)"
                yield say("SRV241", engine.manifest, message, f"{engine.at}.{name}.httpGet.path", "/health")


def _meshed(engine: Engine) -> bool:
    return any("inject" in key for key in mapping(engine.pod.metadata.get("labels")))


def headless_probes(graph: Graph) -> Iterator[Finding]:
    """SRV242: a probe by HTTP on a pod that serves nothing."""
    for engine in engines(graph):
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = engine.probe(name)
            if (
                engine.headless
                and (HTTP in probe or "tcpSocket" in probe)
                and port_of(probe, engine.container) == (engine.port or 8000)
            ):
                message = f"{name} asks a port, and a --headless server opens none: the pod never gets ready"
                yield say("SRV242", engine.manifest, message, f"{engine.at}.{name}", "leave the probe out on such pods")


def room_for_weights(graph: Graph) -> Iterator[Finding]:
    """SRV243: the volume to which the weights are downloaded is smaller than they are."""
    for engine in engines(graph):
        shape = engine.model
        weights = shape.weights_bytes() if shape else None
        if not weights or engine.variables.get("HF_HUB_OFFLINE") == "1":
            continue
        home = engine.variables.get("HF_HOME") or "/root/.cache/huggingface"
        argument = engine.option("--download-dir")
        volume = mounted(engine.pod.spec, engine.container, argument.known if argument and argument.known else home)
        if volume is None:
            continue
        size = _size(graph, engine, volume)
        if size and size < weights:
            message = (
                f"{volume.get('name')} holds {size / 2**30:.0f} GiB, and the weights are {weights / 2**30:.0f} GiB"
            )
            yield say(
                "SRV243",
                engine.manifest,
                message,
                f"{engine.pod.spec_path}.volumes",
                f"at least {weights * 1.1 / 2**30:.0f}Gi",
            )


def _size(graph: Graph, engine: Engine, volume: object) -> float | None:
    body = mapping(volume)
    if isinstance(body.get("emptyDir"), dict):
        return _amount(body["emptyDir"].get("sizeLimit"))
    name = text(mapping(body.get("persistentVolumeClaim")).get("claimName"))
    claim = graph.get(Ref("", "PersistentVolumeClaim", engine.manifest.ref.namespace, name))
    resources = mapping(mapping(claim.body.get("spec")).get("resources")) if claim else {}
    return _amount(mapping(resources.get("requests")).get("storage"))


def short_deadlines(graph: Graph) -> Iterator[Finding]:
    """SRV244: a Deployment or Rollout is called failed before a pod may have started."""
    for engine in engines(graph):
        spec = mapping(engine.manifest.body.get("spec"))
        if engine.manifest.kind not in {"Deployment", "Rollout"}:
            continue
        allowed, startup = number(spec.get("progressDeadlineSeconds"), 600), engine.probe("startupProbe")
        budget = patience(startup) if acts(startup) else None
        if allowed is None or budget is None or budget <= allowed:
            continue
        message = (
            f"a pod may take {budget} s to start, and the update counts as failed after {allowed} s without progress"
        )
        fix = f"progressDeadlineSeconds: {int(budget * 1.25)}"
        meant = "progressDeadlineSeconds" in spec or spec.get("progressDeadlineAbort") is True
        severity = Severity.ERROR if meant and engine.manifest.kind == "Rollout" else Severity.WARNING
        yield say("SRV244", engine.manifest, message, "spec.progressDeadlineSeconds", fix, severity, Confidence.LIKELY)


RULES = (
    shared_memory,
    killed_while_loading,
    cut_off,
    signals_swallowed,
    service_links,
    probe_ports,
    loopback,
    headless_probes,
    room_for_weights,
    short_deadlines,
)
TREE = ()
