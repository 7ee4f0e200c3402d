"""vLLM: the command line and environment of one server, for the pinned version.

Facts are from vllm 0.33.0: envs.py, entrypoints/cli/serve.py, config/lora.py and v1/metrics/buckets.py in vllm/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from blueprint.catalog import vllm
from blueprint.catalog.facts import model, models
from blueprint.catalog.series import boundary
from blueprint.finding import Confidence, Finding, Severity
from blueprint.render.served import HTTP, Served
from blueprint.spec.base import shown
from blueprint.spec.nearest import nearest

WEIGHTS = "/weights"
ADAPTERS = "/adapters"
#: Everything that libraries write; the root file system is read-only.
CACHE = "/cache"

#: On a small slice context and graphs take a larger part than the 8 % that the default leaves.
_SLICE_UTILIZATION = "0.85"
#: The environment of a group's pod, which LeaderWorkerSet fills in (lws v0.7.0 leaderworkerset_types.go).
_RANK, _LEADER = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"


@dataclass(frozen=True, slots=True)
class Bound:
    """A histogram of vLLM, the key of its buckets, and a bound in seconds that must be one of them."""

    metric: str
    buckets: str
    seconds: float


def le(seconds: float) -> str:
    """A bucket boundary as the label `le` writes it: a float with its point, `5.0` and not `5`."""
    return boundary(seconds)


def has(flag: str, version: str) -> bool:
    """Whether this version takes the flag; one that was never read is taken to be newer and to have it."""
    return vllm.flag(flag, version).presence is not vllm.Presence.ABSENT


def judge(served: Served) -> None:
    """SRV103 to SRV106: what the pinned version cannot do for this service, and what is not known of its model."""
    version, path = served.spec.engine.vllm, "spec.engine.vllm"
    if not has("--shutdown-timeout", version):
        message = f"vllm {version} aborts requests under way when it stops: it has no --shutdown-timeout"
        served.problem("SRV103", message, path, "use vllm 0.18 or later", Severity.WARNING)
    if served.grouped and not has("--nnodes", version):
        message = f"vllm {version} runs on several nodes only by way of Ray: it has no --nnodes"
        served.problem("SRV104", message, path, "use vllm 0.11 or later")
    for problem in (*_strange_arguments(served), *_strange_model(served)):
        served.site.problem(problem)


def _strange_arguments(served: Served) -> Iterator[Finding]:
    """SRV105: an argument that the pinned version refuses to know, at its line of the spec."""
    version = served.spec.engine.vllm
    for index, argument in enumerate(served.spec.engine.args):
        answer = vllm.flag(argument, version)
        if not argument.startswith("--") or answer.presence is not vllm.Presence.ABSENT:
            continue
        option, path = vllm.option_name(argument), f"spec.engine.args[{index}]"
        history = f" (gone by {answer.removed})" * bool(answer.removed) or f" (it comes with {answer.added})" * bool(
            answer.added
        )
        near = answer.instead or nearest(option, vllm.options(version))
        message = f"vllm {version} does not know {shown(option)[1:-1]}{history}; it exits at once"
        fix = f"write {near}" if near else "leave it out"
        yield Finding("SRV105", message, served.document.locate(path), path=path, fix=fix)


def _strange_model(served: Served) -> Iterator[Finding]:
    """SRV106: a model of unknown shape. That is no mistake, but nobody should take the silence for a yes."""
    if model(served.spec.model) is None:
        near = _known_model_like(served.spec.model)
        did = f"; did you mean {near}?" if near else ""
        message = f"the model {served.spec.model} is not known: whether it fits its GPUs is not judged{did}"
        at, fix = served.document.locate("spec.model"), f"write {near}" if near else ""
        yield Finding("SRV106", message, at, Severity.NOTE, Confidence.STYLE, path="spec.model", fix=fix)


@cache
def _known_model_like(name: str) -> str | None:
    """The known model of the most similar name; hundreds of services may serve the same one."""
    return nearest(name, (known.id for known in models()), cutoff=0.85)


def model_path(served: Served) -> str:
    """The folder of the weights in the pod: two versions lie beside each other."""
    return f"{WEIGHTS}/{served.spec.weights.path}/{served.spec.weights.version}"


def boundaries(metric: str, version: str) -> tuple[float, ...]:
    """The buckets of a histogram in that version; of the newest known one for a version that was never read."""
    for asked in (version, vllm.versions()[-1]):
        for found in vllm.metric(metric, asked).metrics:
            if found.engine != "v0" and (known := found.boundaries()):
                return known
    return ()


def custom_buckets(bounds: Sequence[Bound], version: str) -> dict[str, list[float]]:
    """The bucket lists that must be given so that every bound is a boundary; {} where the version's own will do.

    A list replaces the default, so it is the default with the bounds put in.
    """
    wanted: dict[str, set[float]] = {}
    for bound in bounds:
        known = boundaries(bound.metric, version)
        if bound.seconds not in known:
            wanted.setdefault(bound.buckets, set(known)).add(bound.seconds)
    return {key: sorted(values) for key, values in sorted(wanted.items())}


def arguments(served: Served, bounds: Sequence[Bound]) -> list[str]:
    """The arguments of `vllm serve`; in a group those of the leader."""
    return [*_engine(served, bounds), *_server(served), *served.spec.engine.args]


def worker_arguments(served: Served, bounds: Sequence[Bound]) -> list[str]:
    """The arguments of a group's other pods, which have no HTTP server."""
    return [*_engine(served, bounds), "--headless", *served.spec.engine.args]


def _engine(served: Served, bounds: Sequence[Bound]) -> Iterator[str]:
    spec, shape, version = served.spec, served.spec.gpus, served.spec.engine.vllm
    yield model_path(served)
    yield f"--served-model-name={spec.served_name or spec.model}"
    if shape.tensor_parallel > 1:
        yield f"--tensor-parallel-size={shape.tensor_parallel}"
    if shape.pipeline_parallel > 1:
        yield f"--pipeline-parallel-size={shape.pipeline_parallel}"
    if spec.context:
        yield f"--max-model-len={spec.context}"
    if shape.profile:
        yield f"--gpu-memory-utilization={_SLICE_UTILIZATION}"
    yield "--enable-prefix-caching"
    if spec.adapters:
        count = len(spec.adapters)
        yield from ("--enable-lora", f"--max-loras={count}", f"--max-cpu-loras={count}")
        yield f"--max-lora-rank={_rank(max(adapter.rank for adapter in spec.adapters), version)}"
    if has("--shutdown-timeout", version):
        yield f"--shutdown-timeout={served.drain}"
    if custom := custom_buckets(bounds, version):
        yield f"--custom-histogram-buckets={json.dumps(custom, separators=(',', ':'))}"
    if served.grouped:
        yield from (f"--nnodes={shape.nodes}", f"--node-rank={_RANK}", f"--master-addr={_LEADER}")


def _server(served: Served) -> Iterator[str]:
    yield f"--port={HTTP}"
    if has("--disable-access-log-for-endpoints", served.spec.engine.vllm):
        yield "--disable-access-log-for-endpoints=/health,/metrics"
    if served.spec.adapters:
        yield "--lora-modules"
        yield from (f"{adapter.name}={ADAPTERS}/{adapter.name}" for adapter in served.spec.adapters)


def _rank(rank: int, version: str) -> int:
    """The smallest rank that the version lets its kernels be made for, and that holds this one."""
    flag = vllm.flag("--max-lora-rank", version).flag
    return min((int(choice) for choice in flag.choices if int(choice) >= rank), default=rank) if flag else rank


def environment(served: Served) -> list[dict[str, object]]:
    """Variables of the server: no downloads, no telemetry, caches in the one folder that can be written."""
    env = {
        "DO_NOT_TRACK": "1",
        "HF_HOME": f"{CACHE}/huggingface",
        "HF_HUB_OFFLINE": "1",
        "HOME": CACHE,
        "TORCHINDUCTOR_CACHE_DIR": f"{CACHE}/inductor",
        "TRANSFORMERS_OFFLINE": "1",
        "TRITON_CACHE_DIR": f"{CACHE}/triton",
        # The user has no line in /etc/passwd, where torch looks for the name of its cache.
        "USER": "vllm",
        "VLLM_CACHE_ROOT": f"{CACHE}/vllm",
        "VLLM_CONFIG_ROOT": f"{CACHE}/vllm-config",
        "VLLM_NO_USAGE_STATS": "1",
        "XDG_CACHE_HOME": CACHE,
    }
    if served.start > vllm.ENGINE_PATIENCE:
        env["VLLM_ENGINE_READY_TIMEOUT_S"] = str(served.start)
    variables: dict[str, dict[str, object]] = {key: {"value": value} for key, value in env.items()}
    if served.grouped:
        variables["VLLM_HOST_IP"] = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    variables |= {key: {"value": value} for key, value in served.spec.engine.env.items()}
    return [{"name": key, **variables[key]} for key in sorted(variables)]
