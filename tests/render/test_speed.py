"""The bound that the memory of the GPUs puts on an output rate."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.facts import gpu, model
from blueprint.finding import Confidence, Severity
from blueprint.render import speed
from tests.render.sites import one

SEVENTY, EIGHT, SMALL = "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-0.6B"
FOUR = {"model": SEVENTY, "gpus.tensorParallel": 4}


def asked(rate: str, changes: dict[str, Any], **where: Any) -> list[str]:
    service = one({"slo": {"outputRate": rate}, **changes}, **where)
    speed.judge(service)
    for finding in service.site.problems:
        assert (finding.code, finding.severity, finding.confidence) == ("SRV108", Severity.WARNING, Confidence.LIKELY)
        assert finding.source and finding.source.file == "chat.yaml#spec.slo.outputRate"
    return [finding.message for finding in service.site.problems]


def product(name: str) -> dict[str, Any]:
    return {
        "nodePools": [
            {
                "name": "a100",
                "purpose": "serving",
                "nodes": 1,
                "cpu": 120,
                "memory": "960Gi",
                "gpus": {"product": name, "count": 8},
            }
        ]
    }


def test_seventy_billion_parameters_on_four_a100() -> None:
    # 4 x 2,039 GB/s / (2 bytes x (70.55 billion - 128,256 x 8,192 input embeddings))
    most = speed.most_tokens(one(FOUR))
    assert most is not None and 58 < most < 59
    [message] = asked("120/s", FOUR)
    assert "120 tokens a second are promised, and 4 GPUs of NVIDIA-A100-SXM4-80GB can read the weights" in message
    assert "58 times a second" in message
    assert asked("58.8/s", FOUR)
    assert asked("58/s", FOUR) == []
    assert asked("40/s", FOUR) == []


@pytest.mark.parametrize(
    "changes",
    [
        {**FOUR, "gpus.tensorParallel": 8},  # 117/s
        {**FOUR, "gpus.tensorParallel": 4, "gpus.pipelineParallel": 2},  # stages take turns
        {**FOUR, "engine.args": ["--dtype=bfloat16"]},
        {**FOUR, "engine.args": ["--quantization", "fp8"]},  # 114/s
        {"model": EIGHT, "engine.args": ["--dtype", "float32"]},
    ],
)
def test_what_is_still_too_slow(changes: dict[str, Any]) -> None:
    assert len(asked("120/s", changes)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"model": EIGHT},  # 136/s
        {**FOUR, "gpus.tensorParallel": 8, "engine.args": ["-q", "fp8"]},
        {**FOUR, "engine.args": ["--quantization=awq"]},  # of unknown size
        {**FOUR, "engine.args": ['--speculative-config={"method":"ngram","num_speculative_tokens":4}']},
        {**FOUR, "engine.args": ["--speculative_config.method=ngram"]},
        {**FOUR, "engine.args": ["--spec-method", "ngram"]},
        {**FOUR, "engine.args": ["--hf-overrides={}"]},
        {"model": "Qwen/Qwen3-30B-A3B"},  # experts: how many are active is not known
        {"model": "our-own/thing"},
        {**FOUR, "slo": {"errors": "1%"}},
    ],
)
def test_what_is_fast_enough_or_unknown_is_silent(changes: dict[str, Any]) -> None:
    assert asked("120/s", changes) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA-A100-SXM4-80GB", True),
        ("NVIDIA-H100-80GB-HBM3", True),
        ("NVIDIA-H200", False),
        ("NVIDIA-GH200-480GB", False),
    ],
)
def test_the_bandwidth_of_the_product_counts(name: str, found: bool) -> None:
    assert bool(asked("120/s", FOUR, cluster=product(name))) is found


def test_a_slice_has_its_share_of_the_memory() -> None:
    a100 = gpu("NVIDIA-A100-SXM4-80GB")
    assert a100 is not None
    assert a100.bandwidth("1g.10gb") == 2039e9 / 8
    assert a100.bandwidth("3g.40gb") == 2039e9 / 2
    assert a100.bandwidth("7g.80gb") == a100.bandwidth() == 2039e9
    assert a100.bandwidth("9g.90gb") is None
    small = {"model": SMALL, "gpus": {"pool": "mig", "profile": "1g.10gb", "cpu": 4, "memory": "24Gi"}}
    most = speed.most_tokens(one(small))
    assert most is not None and 200 < most < 220
    [message] = asked("300/s", small)
    assert "1g.10gb of NVIDIA-A100-SXM4-80GB" in message
    assert asked("120/s", small) == []


def test_tied_embeddings_are_read_as_the_output_layer() -> None:
    tied, untied = model(SMALL), model(EIGHT)
    assert tied is not None and untied is not None
    assert tied.token_bytes() == tied.weights_bytes()
    assert untied.weights_bytes() == (untied.token_bytes() or 0) + 2 * untied.vocab * untied.hidden
