"""vLLM's own code, asked one question a line: `python vllm_code.py SOURCES`, SOURCES the folder that holds `vllm/`.

A question is a JSON object with `ask` and the values; the answer has `refused`, the words of the error that vLLM's code
raised or "", and what came out otherwise. Functions of modules that cannot be imported without CUDA are taken out of
their files as they stand (`lifted`).
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import dataclasses
import io
import json
import os
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import standins  # it is a program: its folder is no package for it

SOURCES = Path(sys.argv[1])


def lifted(file: str, name: str, given: Mapping[str, object]) -> Any:
    """A class or function of a vLLM file by its dotted name, with `given` and stand-ins for what it uses."""
    nodes: list[ast.stmt] = ast.parse((SOURCES / "vllm" / file).read_text("utf-8")).body
    node: Any = None
    for part in name.split("."):
        node = next(each for each in nodes if getattr(each, "name", "") == part)
        nodes = node.body
    node.decorator_list = []
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - set(dir(builtins))
    space: dict[str, Any] = {**{each: standins.stand_in(each) for each in used}, **given}
    future = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*future, node], []), str(SOURCES / "vllm" / file), "exec"), space)
    return space[node.name]


class PassedError(Exception):
    """The code under question came past what could have refused."""


def passed(*_: object, **__: object) -> None:
    raise PassedError


def parsed(words: list[str]) -> argparse.Namespace:
    """A command line by the parser of `vllm serve`, and what the command checks before it starts anything."""
    from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    except SystemExit:
        raise ValueError(said.getvalue().strip().rpartition("error: ")[2]) from None
    args.subparser = "serve"
    validate_parsed_serve_args(args)
    return args


def machine() -> Any:
    """A machine with GPUs of NVIDIA's, for everything that asks vLLM what it runs on; `devices` says how many."""
    import vllm.platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform

    class Here(NonNvmlCudaPlatform):  # type: ignore[misc,valid-type]
        devices = 1

        @classmethod
        def device_count(cls) -> int:
            return cls.devices

    vllm.platforms._current_platform = Here()
    return Here


def configuration(kind: Any, args: argparse.Namespace) -> Any:
    """One of vLLM's configurations, from the options that bear the names of its fields."""
    fields = {each.name for each in dataclasses.fields(kind) if each.init}
    return kind(**{name: value for name, value in vars(args).items() if name in fields and value is not None})


def configured(args: argparse.Namespace) -> Any:
    """The configurations that need no model, each of which refuses what does not go together; the parallel one."""
    from vllm.config import CacheConfig, LoRAConfig, ObservabilityConfig, ParallelConfig

    for kind in (CacheConfig, ObservabilityConfig, *((LoRAConfig,) if args.enable_lora else ())):
        configuration(kind, args)
    return configuration(ParallelConfig, args)


def command(question: dict[str, Any]) -> dict[str, Any]:
    """`vllm serve` on a machine with `gpus` GPUs, up to where it would start: what, and on what port."""
    args = parsed(question["words"])
    configured(args)
    started: list[str] = []
    ways = ("run_headless", "run_server", "run_multi_api_server", "run_dp_supervisor", "serve_grpc")
    import vllm.envs

    given: dict[str, Any] = {way: lambda _, way=way: started.append(way) for way in ways}
    given |= {"envs": vllm.envs, "logger": standins.StandIn(), "uvloop": types.SimpleNamespace(run=lambda _: None)}
    lifted("entrypoints/cli/serve.py", "ServeSubcommand.cmd", given)(args)
    bound: list[Any] = []
    if "run_headless" not in started:
        given = {"create_server_socket": lambda at, **_: bound.append(at), "logger": standins.StandIn()}
        lifted("entrypoints/launchers/launcher.py", "setup_server", given)(args, reuse_port=False)
    length = {"length": args.max_model_len, "share": args.gpu_memory_utilization}
    return {"started": started, "ports": [port for _, port in bound], **length}


def heads(question: dict[str, Any]) -> dict[str, Any]:
    """The check of a model's attention heads against the tensor-parallel size."""
    from vllm.config.model import ModelConfig

    shape = types.SimpleNamespace(total_num_attention_heads=question["heads"])
    model = types.SimpleNamespace(model_arch_config=shape, multimodal_config=None)
    ModelConfig.verify_with_parallel_config(model, _parallel(question["tensor"]))
    return {}


def _parallel(tensor: int, **more: object) -> Any:
    from vllm.config import ParallelConfig

    return ParallelConfig(tensor_parallel_size=tensor, **more)


def attention(question: dict[str, Any]) -> dict[str, Any]:
    """The assertions of the attention layer of Qwen 2, which come before its first projection is built."""
    given = {
        "nn": types.SimpleNamespace(Module=object),
        "get_tensor_model_parallel_world_size": lambda: question["tensor"],
        "QKVParallelLinear": passed,
    }
    kind = lifted("model_executor/models/qwen2.py", "Qwen2Attention", given)
    sizes = {"hidden_size": question["hidden"], "num_heads": question["heads"], "num_kv_heads": question["kv_heads"]}
    with contextlib.suppress(PassedError):
        kind(**sizes, rope_parameters={})
    return {}


def width(question: dict[str, Any]) -> dict[str, Any]:
    """The division of a layer's width over the GPUs."""
    from vllm.distributed.utils import divide

    return {"part": divide(question["width"], question["tensor"])}


def block(question: dict[str, Any]) -> dict[str, Any]:
    """The check of FP8 blocks of a layer that is cut along its inputs, and of a pair that is cut along its outputs."""
    import vllm.distributed
    from vllm.model_executor.layers.quantization.utils import fp8_utils

    size, whole, hidden = question["tensor"], question["width"], question["hidden"]
    vllm.distributed.get_tensor_model_parallel_world_size = lambda: size
    layer, blocks = types.SimpleNamespace(tp_size=size), [question["block"]] * 2
    part = whole // size
    fp8_utils.validate_fp8_block_shape(layer, whole, hidden, part, [hidden], blocks)
    fp8_utils.validate_fp8_block_shape(layer, hidden, 2 * whole, hidden, [part, part], blocks)
    return {}


def memory(question: dict[str, Any]) -> dict[str, Any]:
    """The check of what is left for the cache: one request of the greatest length must fit, or any for `auto`."""
    from vllm.config.model import ModelConfig
    from vllm.v1.core import kv_cache_planning as planning
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    parallel = _parallel(question["tensor"])
    shape = types.SimpleNamespace(total_num_kv_heads=question["kv_heads"])
    heads = ModelConfig.get_num_kv_heads(types.SimpleNamespace(use_mla=False, model_arch_config=shape), parallel)
    spec = FullAttentionSpec(
        block_size=16, num_kv_heads=heads, head_size=question["head_dim"], dtype=types.SimpleNamespace(itemsize=2)
    )
    layers = {str(each): spec for each in range(question["layers"])}
    model = types.SimpleNamespace(max_model_len=question["length"] or question["context"])
    config = types.SimpleNamespace(model_config=model, parallel_config=parallel)
    if not question["length"]:
        model.max_model_len = planning.estimate_max_model_len(config, layers, question["available"])
    planning._check_enough_kv_cache_memory(
        question["available"],
        lambda: planning.max_memory_usage_bytes(config, layers.values()),
        model.max_model_len,
        lambda available: planning.estimate_max_model_len(config, layers, available),
    )
    return {"needs": planning.max_memory_usage_bytes(config, layers.values())}


def port(question: dict[str, Any]) -> dict[str, Any]:
    """The reading of VLLM_PORT in an environment."""
    from vllm.envs import get_vllm_port

    before = dict(os.environ)
    os.environ.update({name: value for name, value in question["variables"].items() if name.startswith("VLLM_")})
    try:
        return {"port": get_vllm_port()}
    finally:
        os.environ.clear()
        os.environ.update(before)


def metrics(question: dict[str, Any]) -> dict[str, Any]:
    """The names of the metrics that the server registers, the hidden ones, too."""
    from vllm.v1.metrics import loggers

    names: list[str] = []

    class Metric:
        def __init__(self, name: str, *_: object, **__: object) -> None:
            names.append(name)

        def __getattr__(self, _: str) -> Any:
            return lambda *_, **__: self

    for kind in ("_gauge_cls", "_counter_cls", "_histogram_cls"):
        setattr(loggers.PrometheusStatLogger, kind, Metric)
    config = standins.StandIn()
    config.kv_transfer_config = config.ec_transfer_config = None
    loggers.PrometheusStatLogger(config, [0])
    return {"names": sorted(set(names))}


ASKED = {each.__name__: each for each in (command, heads, attention, width, block, memory, port, metrics)}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What vLLM's code says to a question."""
    try:
        return {"refused": "", **ASKED[question["ask"]](question)}
    except (ValueError, AssertionError, TypeError) as error:
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        where = trace.tb_frame.f_code.co_filename if trace else ""
        if isinstance(error, TypeError) or (isinstance(error, AssertionError) and str(SOURCES) not in where):
            raise
        return {"refused": str(error) or f"{type(error).__name__} in {where}:{trace.tb_lineno if trace else 0}"}


def main() -> None:
    standins.install()
    sys.path.insert(0, str(SOURCES))
    here = machine()
    for line in sys.stdin:
        question = json.loads(line)
        here.devices = question.get("gpus", 1024)
        print(json.dumps(answer(question)), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # what vLLM logs is no answer
        main()
