"""Whether a model can run on what its pods ask for: heads over GPUs, GPUs over pods, weights and cache over memory.

Only lower bounds prove that something does not fit; that it fits is never said. Sources: vllm 0.33.0 config/model.py
(verify_with_parallel_config, _get_and_verify_max_len), v1/core/kv_cache_utils.py (check_enough_kv_cache_memory),
platforms/cuda.py; the formulas are in blueprint/catalog/models.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blueprint.catalog.facts import Model, flag, parallelism_problem, tensor_parallel_sizes
from blueprint.catalog.vllm import newest
from blueprint.check.accelerators import Device, devices
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import mapping
from blueprint.finding import Confidence, Finding

_GIB = 2**30
_CODES = {"heads": "SRV211", "key-value heads": "SRV212", "experts": "SRV213", "width": "SRV214", "block": "SRV215"}


def parallelism(graph: Graph) -> Iterator[Finding]:
    """SRV211 to SRV215: the model cannot be cut into as many parts as --tensor-parallel-size says."""
    for engine in engines(graph):
        shape, size, data = engine.model, engine.tensor, engine.size("--data-parallel-size")
        if shape is None or size is None or data is None or size < 1:
            continue
        experts = engine.switched_on("--enable-expert-parallel")
        problem = parallelism_problem(shape, size, data_parallel=data, expert_parallel=experts, vllm=engine.version)
        if problem is None:
            continue
        sizes = tensor_parallel_sizes(shape, max(8, size), expert_parallel=experts, vllm=engine.version)
        fix = f"tensor-parallel sizes that work: {', '.join(map(str, sizes))}"
        if problem.about in {"block", "width"} and shape.experts and not experts:
            fix += "; or --enable-expert-parallel"
        elif size > 1:
            fix += "; pipeline parallelism has no such limit"
        sure = None if problem.certain else Confidence.LIKELY
        message = f"vLLM cannot start {shape.id}: {problem.reason}"
        yield say(
            _CODES[problem.about], engine.manifest, message, _at(engine, "--tensor-parallel-size"), fix, confidence=sure
        )


def _at(engine: Engine, option: str) -> str:
    argument = engine.option(option)
    return f"{engine.at}.{argument.at}" if argument else engine.at


def local_world(engine: Engine) -> int | None:
    """The GPUs that the server needs in this very pod, None where that is not known."""
    world, nodes, data = engine.world, engine.nodes, engine.size("--data-parallel-size")
    backend = engine.option("--distributed-executor-backend")
    if world is None or nodes is None or data is None or (backend and backend.known != "mp"):
        return None
    alone = world // data
    if engine.option("--data-parallel-size-local") or engine.switched_on("--data-parallel-hybrid-lb"):
        local = engine.size("--data-parallel-size-local")
        return None if local is None else alone * local
    if engine.switched_on("--data-parallel-external-lb") or engine.option("--data-parallel-rank"):
        return alone
    return None if world % nodes else world // nodes


def gpu_counts(graph: Graph) -> Iterator[Finding]:
    """SRV216, SRV217: the pod has fewer or more GPUs than the server uses."""
    for engine in engines(graph):
        has, needs = engine.gpus, local_world(engine)
        if (
            not has
            or needs is None
            or _group(engine)
            or any(key.startswith("nvidia.com/mig-") for key in engine.gpu_resources)
        ):
            continue
        parts = f"TP {engine.tensor} x PP {engine.pipeline} x DP {engine.size('--data-parallel-size')}"
        nodes = f" over {engine.nodes} pods" if engine.nodes != 1 else ""
        if needs > has:
            message = f"{parts}{nodes} needs {needs} GPUs in a pod, and it asks for {has}"
            yield say(
                "SRV216", engine.manifest, message, f"{engine.at}.resources", f"ask for {needs}, or lower the sizes"
            )
        elif needs < has and "CUDA_VISIBLE_DEVICES" not in engine.variables:
            message = f"{parts}{nodes} uses {needs} of the {has} GPUs that the pod asks for; the others stay idle"
            fix = f"ask for {needs}, or raise --tensor-parallel-size or --data-parallel-size"
            yield warn("SRV217", engine.manifest, message, f"{engine.at}.resources", fix)


def _group(engine: Engine) -> bool:
    """Kinds in which several pods make up one server; they have rules of their own."""
    return engine.manifest.kind in {"LeaderWorkerSet", "RayCluster", "RayService", "RayJob", "MPIJob", "JobSet"}


def without_accelerator(graph: Graph) -> Iterator[Finding]:
    """SRV223: a server that asks for no accelerator."""
    for engine in engines(graph):
        resources = mapping(engine.container.get("resources"))
        asked = {str(key) for part in ("requests", "limits") for key in mapping(resources.get(part))}
        if engine.gpus != 0 or engine.claims or any("/" in key for key in asked) or "cpu" in engine.image:
            continue
        if "NVIDIA_VISIBLE_DEVICES" in engine.variables or engine.variables.get("VLLM_TARGET_DEVICE"):
            continue
        device = engine.option("--device")
        if device is None:
            message = "the server asks for no GPU: it finds none, or takes one that Kubernetes has given to others"
            fix = "ask for nvidia.com/gpu (or the accelerator's own resource) in limits"
            yield warn("SRV223", engine.manifest, message, f"{engine.at}.resources", fix)


def memory(graph: Graph) -> Iterator[Finding]:
    """SRV218, SRV219: the weights, or the cache of one request of the greatest length, are more than the memory."""
    for engine in engines(graph):
        shape, ranks = engine.model, _ranks(engine)
        found = _devices(graph, engine)
        if shape is None or ranks is None or not found or _offloads(engine):
            continue
        tensor, stages, experts = ranks
        device = max(found, key=lambda each: each.memory_mib)
        usable = device.memory_mib * 2**20 * _utilization(engine)
        total = shape.weights_bytes(_weights_dtype(engine, shape) or "?")
        if total is None:
            continue
        weights = total / (tensor * stages * experts)
        where = (
            f"on {device.name}: {_gib(usable)} usable ({_utilization(engine):g} of {_gib(device.memory_mib * 2**20)})"
        )
        # What a pod says of its folder is the model's name; the files may hold it in a smaller format.
        sure = Confidence.LIKELY if engine.noted_model else None
        if weights > usable:
            message = f"the weights of {shape.id} are {_gib(weights)} on each GPU, more than there is {where}"
            fix = _more(shape, total, usable)
            at = _at(engine, "--tensor-parallel-size")
            yield say("SRV218", engine.manifest, message, at, fix, confidence=sure)
            continue
        need = _cache(engine, shape, tensor, stages)
        if need is None:
            continue
        tokens, cache = need
        if cache > usable - weights:
            most = max(0, int(tokens * (usable - weights) / cache))
            message = (
                f"one request of {tokens} tokens needs {_gib(cache)} of cache on each GPU; at most "
                f"{_gib(usable - weights)} are left beside {_gib(weights)} of weights {where}"
            )
            fix = f"--max-model-len well below {most}, or auto; more GPUs; --kv-cache-dtype fp8 where the GPU has it"
            at = _at(engine, "--max-model-len")
            yield say("SRV219", engine.manifest, message, at, fix, confidence=sure)


def _devices(graph: Graph, engine: Engine) -> Sequence[Device]:
    return devices(graph, engine.manifest, engine.pod, engine.gpu_resources)


def _gib(amount: float) -> str:
    return f"{amount / _GIB:.1f} GiB"


def _ranks(engine: Engine) -> tuple[int, int, int] | None:
    """Into how many parts tensors, layers and (with expert parallelism) the rest are cut at most."""
    tensor, stages, data = engine.tensor, engine.pipeline, engine.size("--data-parallel-size")
    if not tensor or not stages or not data:
        return None
    return tensor, stages, data if engine.switched_on("--enable-expert-parallel") else 1


def _offloads(engine: Engine) -> bool:
    return any(engine.option(name) for name in ("--cpu-offload-gb", "--kv-cache-memory-bytes", "--offload-backend"))


def _utilization(engine: Engine) -> float:
    argument = engine.option("--gpu-memory-utilization")
    if argument is None:
        known = flag("--gpu-memory-utilization", engine.version or newest()).flag
        return float(known.default) if known else 1.0
    try:
        return float(argument.known)
    except ValueError:
        return 1.0


def _weights_dtype(engine: Engine, shape: Model) -> str | None:
    """How the weights are kept, None where that is not known."""
    quantized, dtype = engine.option("--quantization"), engine.option("--dtype")
    if quantized:
        return "fp8" if quantized.known == "fp8" and shape.dtype in {"bfloat16", "float16"} else None
    if dtype and dtype.known in {"float32", "float"} and shape.dtype in {"bfloat16", "float16"}:
        return "float32"
    return shape.dtype


def _cache(engine: Engine, shape: Model, tensor: int, stages: int) -> tuple[int, float] | None:
    """The length of the longest request, and the least bytes of its cache on each GPU; None where not known."""
    length = context_length(engine)
    if length is None and engine.option("--max-model-len"):
        return None
    kind = engine.option("--kv-cache-dtype")
    kept = kind.known if kind else "auto"
    if kept == "auto":
        size = 2 if shape.dtype in {"bfloat16", "float16"} else 1
    elif kept.startswith(("fp8", "int8")):
        size = 1
    elif kept in {"bfloat16", "float16"}:
        size = 2
    else:
        return None
    tokens = length or shape.context
    split = engine.size("--decode-context-parallel-size")
    amount = shape.cache_bytes(tokens, element_bytes=size, tensor_parallel=tensor)
    return None if not amount or not split else (tokens, amount / (stages * split))


_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def context_length(engine: Engine) -> int | None:
    """--max-model-len in tokens; None where it is not given, automatic or not known."""
    argument = engine.option("--max-model-len")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", argument.known) if argument else None
    return int(float(match[1]) * _UNITS.get(match[2], 1)) if match else None


def _more(shape: Model, total: int, usable: float) -> str:
    for size in tensor_parallel_sizes(shape, 64):
        if total / size <= usable * 0.9:
            return f"--tensor-parallel-size {size} on as many GPUs, or a quantised checkpoint"
    return "spread it over more GPUs and nodes, or use a quantised checkpoint"


def long_context(graph: Graph) -> Iterator[Finding]:
    """SRV220: --max-model-len is above what the model's configuration allows."""
    for engine in engines(graph):
        shape, length = engine.model, context_length(engine)
        if shape is None or length is None or length <= shape.context:
            continue
        allowed = engine.variables.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0")
        scaled = any(engine.option(name) for name in ("--rope-scaling", "--rope-theta", "--config-format"))
        if allowed in {"0", "", "false"} and not scaled:
            message = f"--max-model-len {length} is above the {shape.context} of {shape.id}; vLLM exits"
            fix = "lower it; to go beyond it scale the positions with --hf-overrides, as the model's page says"
            yield say("SRV220", engine.manifest, message, _at(engine, "--max-model-len"), fix)


def shared_gpus(graph: Graph) -> Iterator[Finding]:
    """SRV221: several pods share a GPU and each claims most of its memory."""
    for engine in engines(graph):
        found = _devices(graph, engine)
        if not found or not all(device.sharers > 1 for device in found) or engine.option("--kv-cache-memory-bytes"):
            continue
        sharers = min(device.sharers for device in found)
        share = _utilization(engine)
        if share * sharers > 1:
            message = f"{sharers} or more pods share the GPU, and each claims {share:g} of the whole memory"
            least = f"--gpu-memory-utilization {int(90 / sharers) / 100:g}"
            fix = f"{least} or --kv-cache-memory-bytes; MIG keeps memory apart"
            yield say("SRV221", engine.manifest, message, _at(engine, "--gpu-memory-utilization"), fix)


def old_gpus(graph: Graph) -> Iterator[Finding]:
    """SRV222: number formats that the GPU does not have."""
    for engine in engines(graph):
        found = _devices(graph, engine)
        if not found:
            continue
        newest = max(found, key=lambda device: device.gpu.compute).gpu
        dtype, cache = engine.option("--dtype"), engine.option("--kv-cache-dtype")
        if cache and cache.known in {"fp8", "fp8_e4m3"} and not newest.fp8:
            message = f"{newest.name} has no FP8 (compute capability {_compute(newest.compute)}, 8.9 is needed)"
            yield say("SRV222", engine.manifest, message, _at(engine, "--kv-cache-dtype"), "--kv-cache-dtype auto")
        if dtype and dtype.known == "bfloat16" and not newest.bf16:
            message = f"{newest.name} has no bfloat16 (compute capability {_compute(newest.compute)}, 8.0 is needed)"
            yield say("SRV222", engine.manifest, message, _at(engine, "--dtype"), "--dtype half")


def _compute(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


RULES = (parallelism, gpu_counts, without_accelerator, memory, long_context, shared_gpus, old_gpus)
TREE = ()
