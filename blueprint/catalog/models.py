"""The shapes of open models, and the arithmetic that follows: bytes of weights, bytes of cache, possible parallelism.

Sizes are lower bounds that hold whatever the engine adds. What a shape does not settle is None, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version

BYTES = {
    "float32": 4.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "mxfp4": 0.53125,
    "nvfp4": 0.5625,
}
"""Bytes a parameter. The four-bit block formats carry a scale of 8 bits for each 32 (mxfp4) or 16 values (nvfp4)."""

FINE_BLOCKS = "0.29.0"
"""The first vllm that splits the FP8 blocks of experts finer where tensor parallelism cuts through one
(vllm model_executor/layers/fused_moe/oracle/fp8.py refine_fp8_moe_block_shape); the finest block is 32 wide."""


@dataclass(frozen=True, slots=True)
class Model:
    """The shape of a model, named as in its config.json but for `context` (max_position_embeddings) and the following.

    `attention` is `full`, `sliding` (all but `global_layers` layers see `window` tokens), `mla` (one latent vector of
    `latent` values a token and layer), `encoder` (no cache) or `mixed` (some layers keep a state instead; no formula).
    `dtype` is how the published weights are stored; `block` the side of their quantisation blocks, 0 for none.
    `parameters` are those of the language model without speculative layers, None where no formula is known.
    """

    id: str
    architecture: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    context: int
    attention: str
    dtype: str
    source: str
    tied: bool = False
    experts: int = 0
    expert_intermediate: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    window: int = 0
    global_layers: int = 0
    latent: int = 0
    block: int = 0
    parameters: int | None = None
    expert_parameters: int = 0

    def weights_bytes(self, dtype: str = "") -> int | None:
        """Bytes of the weights in `dtype` (default: as published), over all GPUs; None if count or dtype is unknown.

        A quantised dtype covers all but the embeddings, with mxfp4 the experts alone; the rest stays in two bytes
        (config.json quantization_config.modules_to_not_convert of Qwen3-*-FP8 and gpt-oss).
        """
        kind = dtype or self.dtype
        if self.parameters is None or kind not in BYTES:
            return None
        if BYTES[kind] >= 2:
            return round(self.parameters * BYTES[kind])
        kept = self.vocab * self.hidden * (1 if self.tied else 2)
        small = self.expert_parameters if kind == "mxfp4" else self.parameters - kept
        return round(small * BYTES[kind] + (self.parameters - small) * 2)

    def token_bytes(self, dtype: str = "") -> int | None:
        """Bytes of weights that each token of one sequence needs, at the least; None if unknown.

        All weights but the input embeddings, of which a token reads one row. With experts it depends on how many are
        active, which the table does not say.
        """
        total = self.weights_bytes(dtype)
        if total is None or self.experts or self.attention == "encoder":
            return None
        return total - (0 if self.tied else round(self.vocab * self.hidden * max(2.0, BYTES[dtype or self.dtype])))

    def cache_bytes(self, tokens: int, *, element_bytes: int = 2, tensor_parallel: int = 1) -> int | None:
        """Bytes of cache of one sequence of `tokens` on each GPU of a tensor-parallel group; None if unknown.

        Full attention: 2 x layers x key-value heads x head_dim x bytes a token. Key-value heads are split over the
        group, and repeated when there are fewer than GPUs (vllm config/model.py get_num_kv_heads). A sliding layer
        holds its window at most; a latent vector is on every GPU of the group.
        """
        if self.attention == "encoder":
            return 0
        if self.attention == "mla":
            return tokens * self.layers * self.latent * element_bytes
        if self.attention == "mixed":
            return None
        per_layer = 2 * max(1, self.kv_heads // tensor_parallel) * self.head_dim * element_bytes
        local = self.layers - self.global_layers if self.attention == "sliding" else 0
        return per_layer * ((self.layers - local) * tokens + local * min(tokens, self.window))

    def cache_bytes_per_token(self, *, element_bytes: int = 2, tensor_parallel: int = 1) -> int | None:
        """How much each further token of a long sequence adds on each GPU; sliding layers add nothing then."""
        far = self.window + 1
        more = self.cache_bytes(far + 1, element_bytes=element_bytes, tensor_parallel=tensor_parallel)
        base = self.cache_bytes(far, element_bytes=element_bytes, tensor_parallel=tensor_parallel)
        return None if more is None or base is None else more - base


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a model cannot run in a layout; not `certain` where it depends on something unknown, as vllm's version.

    `about` is heads, key-value heads, experts, width (of a layer) or block (of a quantised checkpoint).
    """

    reason: str
    certain: bool = True
    about: str = "heads"


@cache
def _models() -> dict[str, Model]:
    found: dict[str, Model] = {}
    for row in table("models")["models"]:
        for name in row["ids"]:
            shape = row["shape"] | {"context": row.get("contexts", {}).get(name, row["shape"]["context"])}
            found[name.casefold()] = Model(id=name, source=row["source"], **shape)
    return found


def model(name: str) -> Model | None:
    """The model with this repository name (`meta-llama/Llama-3.1-8B-Instruct`, in any case), or None."""
    return _models().get(name.casefold())


def models() -> tuple[Model, ...]:
    """Every model of the table."""
    return tuple(_models().values())


def parallelism_problem(
    of: Model, tensor_parallel: int, *, data_parallel: int = 1, expert_parallel: bool = False, vllm: str = ""
) -> Problem | None:
    """Why vllm would refuse these sizes, or None. `vllm` is its version, "" if unknown.

    The assertions are in vllm config/model.py verify_with_parallel_config (heads), model_executor/models/llama.py
    (key-value heads), distributed/utils.py divide (widths), layers/quantization/utils/fp8_utils.py (blocks) and
    layers/fused_moe (experts).
    """
    size = tensor_parallel
    if of.heads % size:
        return Problem(f"{of.heads} attention heads cannot be split over {size} GPUs")
    if of.attention not in {"mla", "encoder"} and max(of.kv_heads, size) % min(of.kv_heads, size):
        return Problem(
            f"{of.kv_heads} key-value heads can be neither split nor repeated over {size} GPUs", about="key-value heads"
        )
    if of.experts and expert_parallel and of.experts % (size * data_parallel):
        return Problem(f"{of.experts} experts cannot be spread over {size * data_parallel} GPUs", about="experts")
    whole = of.layers if not of.experts else of.dense_layers
    if whole and (problem := _cut("the feed-forward width", of.intermediate, size, of.block)):
        return problem
    if not of.experts or expert_parallel or size == 1:
        return None
    problem = _cut("the width of an expert", of.expert_intermediate, size, of.block)
    if problem is None or of.expert_intermediate % size:
        return problem
    part = of.expert_intermediate // size
    if gcd(of.block, part, of.hidden) >= 32:
        known, since = version(vllm), version(FINE_BLOCKS)
        if known and since and known >= since:
            return None
        return Problem(f"{problem.reason}; vllm {FINE_BLOCKS} and later can", certain=known is not None, about="block")
    return problem


def _cut(what: str, width: int, size: int, block: int) -> Problem | None:
    if width % size:
        return Problem(f"{what}, {width}, cannot be split over {size} GPUs", about="width")
    if block and size > 1 and width // size % block:
        return Problem(
            f"{what}, {width}, split over {size} GPUs is {width // size}: no multiple of the FP8 block, {block}",
            about="block",
        )
    return None


def tensor_parallel_sizes(
    of: Model, up_to: int = 16, *, expert_parallel: bool = False, vllm: str = ""
) -> tuple[int, ...]:
    """The tensor-parallel sizes that a model can run with."""
    sizes = range(1, up_to + 1)
    return tuple(n for n in sizes if not parallelism_problem(of, n, expert_parallel=expert_parallel, vllm=vllm))
