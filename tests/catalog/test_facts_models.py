"""Shapes of models and what follows from them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.catalog.models import Model, model, models, parallelism_problem, tensor_parallel_sizes

GIB = 2**30
SIZES = st.integers(1, 64)
SHAPES = st.sampled_from(models())


def known(name: str) -> Model:
    found = model(name)
    assert found is not None
    return found


# computed from the shapes; each rounds to the figure that the model's publisher states
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("meta-llama/Llama-3.3-70B-Instruct", 70_553_706_496),
        ("meta-llama/Llama-3.1-405B", 405_853_388_800),
        ("meta-llama/Llama-3.2-1B", 1_235_814_400),
        ("meta-llama/Llama-3.2-3B", 3_212_749_824),
        ("Qwen/Qwen2.5-0.5B", 494_032_768),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen2.5-72B", 72_706_203_648),
        ("Qwen/Qwen3-0.6B", 596_049_920),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704),
        ("mistralai/Mistral-7B-v0.3", 7_248_023_552),
        ("google/gemma-2-9b", 9_241_705_984),
        ("google/gemma-3-1b-it", 999_885_952),
        ("microsoft/phi-4", 14_659_507_200),
        ("deepseek-ai/DeepSeek-V3", 671_026_419_200),
        ("openai/gpt-oss-20b", 20_914_757_184),
        ("BAAI/bge-m3", 567_754_752),
    ],
)
def test_parameters(name: str, parameters: int) -> None:
    assert known(name).parameters == parameters


def test_weights() -> None:
    llama = known("meta-llama/Llama-3.3-70B-Instruct")
    assert llama.weights_bytes() == 2 * 70_553_706_496
    assert llama.weights_bytes("float32") == 4 * 70_553_706_496
    assert round(known("openai/gpt-oss-120b").weights_bytes() / GIB, 1) == 60.7
    fp8 = known("Qwen/Qwen3-30B-A3B-FP8").weights_bytes()
    assert 30_532_122_624 < fp8 < 1.05 * 30_532_122_624  # the embeddings keep two bytes
    assert llama.weights_bytes("no-such-dtype") is None
    assert known("Qwen/Qwen3.5-27B").weights_bytes() is None


# 2 x layers x key-value heads x head_dim x 2 bytes; the sliding models count their global layers only
@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("meta-llama/Llama-3.1-8B", 131_072),
        ("meta-llama/Llama-3.3-70B-Instruct", 327_680),
        ("Qwen/Qwen2.5-7B", 57_344),
        ("google/gemma-3-27b-it", 81_920),
        ("openai/gpt-oss-120b", 36_864),
        ("deepseek-ai/DeepSeek-R1", 70_272),
        ("BAAI/bge-m3", 0),
        ("Qwen/Qwen3.5-27B", None),
    ],
)
def test_cache_per_token(name: str, per_token: int | None) -> None:
    assert known(name).cache_bytes_per_token() == per_token


def test_key_value_heads_are_repeated_beyond_their_number() -> None:
    llama = known("meta-llama/Llama-3.3-70B-Instruct")
    assert llama.cache_bytes_per_token(tensor_parallel=8) == 327_680 // 8
    assert llama.cache_bytes_per_token(tensor_parallel=16) == 327_680 // 8
    latent = known("deepseek-ai/DeepSeek-V3")
    assert latent.cache_bytes(1000, tensor_parallel=8) == latent.cache_bytes(1000)


@settings(deadline=None)
@given(SHAPES, st.integers(0, 200_000), st.integers(0, 200_000))
def test_cache_never_shrinks_with_length(of: Model, one: int, other: int) -> None:
    low, high = sorted((one, other))
    small, big = of.cache_bytes(low), of.cache_bytes(high)
    assert (small is None) == (big is None)
    if small is not None and big is not None:
        assert small <= big
        assert of.cache_bytes(high, element_bytes=1) == big // 2


@settings(deadline=None)
@given(SHAPES, SIZES)
def test_a_size_that_passes_splits_everything(of: Model, size: int) -> None:
    if parallelism_problem(of, size) is None:
        assert of.heads % size == 0
        if of.attention not in {"mla", "encoder"}:
            assert of.kv_heads % size == 0 or size % of.kv_heads == 0
        if of.experts:
            assert size == 1 or of.expert_intermediate // size * size == of.expert_intermediate
        else:
            assert of.intermediate % size == 0
            assert not of.block or size == 1 or of.intermediate // size % of.block == 0


@settings(deadline=None)
@given(SHAPES)
def test_one_gpu_is_never_a_parallelism_problem(of: Model) -> None:
    assert parallelism_problem(of, 1) is None
    assert parallelism_problem(of, 1, expert_parallel=True) is None


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", (1, 2, 4, 8, 16)),
        ("meta-llama/Llama-3.2-3B", (1, 2, 4, 8)),
        ("Qwen/Qwen2.5-0.5B", (1, 2)),
        ("Qwen/Qwen2.5-7B", (1, 2, 4)),  # seven divides the 28 heads, but not the 4 key-value heads
        ("microsoft/phi-4", (1, 2, 5, 10)),
        ("google/gemma-3-1b-it", (1, 2, 4)),  # one key-value head is repeated
        ("Qwen/Qwen3-32B-FP8", (1, 2, 4, 8)),
    ],
)
def test_tensor_parallel_sizes(name: str, sizes: tuple[int, ...]) -> None:
    assert tensor_parallel_sizes(known(name)) == sizes


def test_blocks_of_experts_depend_on_the_version() -> None:
    fp8 = known("Qwen/Qwen3-30B-A3B-FP8")
    old = parallelism_problem(fp8, 8, vllm="0.20.2")
    assert old is not None and old.certain and "96" in old.reason
    unknown = parallelism_problem(fp8, 8)
    assert unknown is not None and not unknown.certain
    assert parallelism_problem(fp8, 8, vllm="0.33.0") is None
    assert parallelism_problem(fp8, 8, vllm="0.20.2", expert_parallel=True) is None
    assert parallelism_problem(fp8, 2, vllm="0.20.2") is None
    assert parallelism_problem(known("Qwen/Qwen3-30B-A3B"), 8) is None  # not quantised


def test_experts_must_be_spread_evenly() -> None:
    deepseek = known("deepseek-ai/DeepSeek-V3")
    assert parallelism_problem(deepseek, 8, data_parallel=2, expert_parallel=True) is None
    problem = parallelism_problem(deepseek, 8, data_parallel=3, expert_parallel=True)
    assert problem is not None and "256 experts" in problem.reason


def test_names() -> None:
    assert known("META-LLAMA/llama-3.3-70b-instruct").layers == 80
    assert model("nobody/knows-this") is None
    assert known("Qwen/Qwen2.5-7B").context == 131_072
    assert known("Qwen/Qwen2.5-7B-Instruct").context == 32_768


def test_the_table_is_sound() -> None:
    for m in models():
        assert m.source
        assert m.attention in {"full", "sliding", "mla", "mixed", "encoder"}
        assert min(m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.vocab, m.context) > 0
        assert 0 <= m.global_layers <= m.layers
        assert bool(m.window) == (m.attention == "sliding")
        assert bool(m.experts) == bool(m.expert_intermediate)
        assert m.expert_parameters <= (m.parameters or m.expert_parameters)
