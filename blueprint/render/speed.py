"""How fast a model can write at the very best: as fast as its weights can be read.

Each token of a sequence needs all weights of a dense model once, whatever else runs beside it, so one sequence gets at
most (tensor-parallel GPUs x memory bandwidth) / (bytes of weights) tokens a second. Stages of a pipeline work one after
the other and do not add up. Reading the cache, communication and the other sequences of a batch only take from it.

Source: Pope et al., Efficiently Scaling Transformer Inference (2022), section 2; Williams et al., Roofline (2009).
"""

from __future__ import annotations

from collections.abc import Sequence

from blueprint.catalog.facts import Model, gpu, model
from blueprint.catalog.vllm import option_name
from blueprint.finding import Severity
from blueprint.render.served import Served

#: Options by which one reading of the weights gives several tokens, or the model is another than its name says.
_OTHERWISE = ("--spec", "--hf-overrides", "--hf-config-path")


def judge(served: Served) -> None:
    """SRV108: a promised output rate that the memory of the GPUs cannot give to any sequence."""
    slo, most = served.spec.slo, most_tokens(served)
    if slo is None or slo.output_rate is None or most is None or slo.output_rate <= most:
        return
    shape = served.spec.gpus
    devices = shape.profile or (f"{shape.tensor_parallel} GPUs" if shape.tensor_parallel > 1 else "one GPU")
    product = served.pool.gpus.product if served.pool.gpus else ""
    served.problem(
        "SRV108",
        f"{slo.output_rate.normalize():f} tokens a second are promised, and {devices} of {product} can read the "
        f"weights of {served.spec.model} {_plain(most)} times a second: no sequence gets more tokens than that",
        "spec.slo.outputRate",
        f"promise {_plain(most)}/s at most, with room for the cache and other requests; or take more tensorParallel, "
        "faster GPUs, smaller weights or speculative decoding",
        Severity.WARNING,
    )


def most_tokens(served: Served) -> float | None:
    """Tokens a second of one sequence at the very best; None where a part of it is not known."""
    shape, pool, known = served.spec.gpus, served.pool.gpus, model(served.spec.model)
    device = gpu(pool.product) if pool else None
    if pool is None or device is None or known is None:
        return None
    profile = shape.profile
    if pool.mig and not profile:
        if len(pool.mig.layout) != 1:
            return None
        [profile] = pool.mig.layout
    bandwidth, weights = device.bandwidth(profile), _weights(served.spec.engine.args, known)
    return bandwidth * shape.tensor_parallel / weights if bandwidth and weights else None


def _weights(args: Sequence[str], known: Model) -> int | None:
    """Bytes to read for each token, None where the arguments leave that open."""
    if any(option_name(arg).startswith(name) for arg in args for name in _OTHERWISE):
        return None
    quantized, dtype = _value(args, "--quantization", "-q"), _value(args, "--dtype")
    wide = known.dtype in {"bfloat16", "float16"}
    if quantized is not None:
        return known.token_bytes("fp8") if quantized == "fp8" and wide else None
    if dtype in {"float32", "float"} and wide:
        return known.token_bytes("float32")
    return known.token_bytes()


def _value(args: Sequence[str], *names: str) -> str | None:
    """What is given for an option, as `--name=value` or as two words; the last one counts, as for vLLM."""
    found = None
    for at, arg in enumerate(args):
        if option_name(arg) in names:
            following = args[at + 1] if at + 1 < len(args) else ""
            found = arg.partition("=")[2] if "=" in arg else following
    return found


def _plain(rate: float) -> str:
    """A rate rounded down, so that it may be promised."""
    return f"{int(rate)}" if rate >= 10 else f"{int(rate * 10) / 10:g}"
