"""vLLM over several pods: LeaderWorkerSets whose sizes, flags and Services fit together.

Sources: vllm 0.33.0 docs/deployment/frameworks/lws.md, entrypoints/cli/serve.py (run_headless); lws v0.8.0
api/leaderworkerset/v1/leaderworkerset_types.go and pkg/utils/pod (labels of pods).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blueprint.check.engines import Engine, engines, pod_labels
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import mapping, maps, number, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

KIND = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
NAME, INDEX = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/worker-index"
_TEMPLATE = "spec.leaderWorkerTemplate"


@dataclass(frozen=True, slots=True)
class Group:
    """One LeaderWorkerSet with servers in it. `leader` is the template of workers where it has none of its own."""

    manifest: Manifest
    size: int
    leader: Engine
    worker: Engine | None
    separate: bool


def groups(graph: Graph) -> list[Group]:
    """Every LeaderWorkerSet whose leader is a vLLM server."""
    return graph.derived(_groups)


def _groups(graph: Graph) -> list[Group]:
    found: dict[int, dict[str, Engine]] = {}
    for engine in engines(graph):
        if engine.manifest.kind == "LeaderWorkerSet":
            found.setdefault(id(engine.manifest), {})[engine.pod.path] = engine
    groups = []
    for members in found.values():
        leader, worker = members.get(f"{_TEMPLATE}.leaderTemplate"), members.get(f"{_TEMPLATE}.workerTemplate")
        first = leader or worker
        if first is None:
            continue
        template = mapping(mapping(first.manifest.body.get("spec")).get("leaderWorkerTemplate"))
        separate = bool(template.get("leaderTemplate"))
        size = number(template.get("size"), 1)
        if size and (leader or not separate):
            groups.append(Group(first.manifest, size, first, worker, separate))
    return groups


def group_gpus(graph: Graph) -> Iterator[Finding]:
    """SRV251: the GPUs of a group are not those that its server is split over."""
    for group in groups(graph):
        leader, world = group.leader, group.leader.world
        if world is None or not leader.gpus:
            continue
        data = leader.size("--data-parallel-size")
        if data != 1 and (leader.option("--data-parallel-size-local") or leader.option("--data-parallel-rank")):
            continue  # each pod has ranks of its own
        others = group.worker.gpus if group.worker else _worker_gpus(group.manifest)
        if others is None:
            continue
        total = leader.gpus + (group.size - 1) * (others if group.separate else leader.gpus)
        if total < world:
            message = (
                f"the server is split over {world} GPUs (TP x PP x DP), and a group of {group.size} pods has {total}"
            )
            yield say("SRV251", group.manifest, message, f"{_TEMPLATE}.size", "size x GPUs of a pod = TP x PP x DP")
        elif total > world:
            message = f"the server uses {world} GPUs (TP x PP x DP); {total - world} of the group's {total} stay idle"
            yield warn("SRV251", group.manifest, message, f"{_TEMPLATE}.size", "size x GPUs of a pod = TP x PP x DP")


def _worker_gpus(manifest: Manifest) -> int | None:
    template = mapping(mapping(mapping(manifest.body.get("spec")).get("leaderWorkerTemplate")).get("workerTemplate"))
    total = 0
    for container in maps(mapping(template.get("spec")).get("containers")):
        limits = mapping(mapping(container.get("resources")).get("limits"))
        for key, value in limits.items():
            if str(key).endswith("/gpu"):
                if not str(value).isdigit():
                    return None
                total += int(value)
    return total or None


def group_nodes(graph: Graph) -> Iterator[Finding]:
    """SRV252: --nnodes is not the size of the group, or workers do not say that they serve nothing."""
    for group in groups(graph):
        option = group.leader.option("--nnodes")
        if option is None:
            continue
        if option.known.isdigit() and int(option.known) != group.size:
            message = f"--nnodes {option.known} waits for as many pods, and the group has {group.size}"
            fix = "--nnodes=$(LWS_GROUP_SIZE)"
            yield say("SRV252", group.manifest, message, f"{group.leader.at}.{option.at}", fix)
        worker = group.worker
        if group.separate and worker is not None and not worker.headless and not worker.open:
            message = "the workers start a server of their own: --headless is missing"
            yield say("SRV252", group.manifest, message, worker.at, "add --headless to the workers")


def services_to_workers(graph: Graph) -> Iterator[Finding]:
    """SRV253: a Service that sends requests to pods of a group which serve nothing."""
    for group in groups(graph):
        worker = _worker_labels(group)
        for service in graph.within(group.manifest.ref.namespace, "Service") if group.size > 1 else ():
            spec = mapping(service.body.get("spec"))
            selector = mapping(spec.get("selector"))
            if not selector or spec.get("publishNotReadyAddresses") is True or spec.get("clusterIP") == "None":
                continue
            if INDEX not in selector and all(worker.get(str(key)) == value for key, value in selector.items()):
                message = f"it also selects the workers of {group.manifest.ref.name}, which serve nothing"
                fix = f'add {INDEX}: "0" to the selector, or a label that only the leader has'
                yield say("SRV253", service, message, "spec.selector", fix)


def _worker_labels(group: Group) -> Mapping[str, str]:
    template = mapping(
        mapping(mapping(group.manifest.body.get("spec")).get("leaderWorkerTemplate")).get("workerTemplate")
    )
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    own = pod_labels(group.leader) if not group.separate else {str(k): text(v) for k, v in labels.items()}
    return {**own, NAME: group.manifest.ref.name}


RULES = (group_gpus, group_nodes, services_to_workers)
TREE = ()
