"""What a served model may not be asked to be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.spec.load import load
from tests.spec.conftest import SERVICE

Put = Callable[[str, str], Path]


def _service(lines: str) -> str:
    key = lines.partition(":")[0]
    kept = "".join(line for line in SERVICE.splitlines(keepends=True) if not line.startswith(f"  {key}:"))
    return f"{kept}  {lines}\n"


ENGINE = 'engine: {vllm: 0.33.0, image: "registry.example.com/vllm@sha256:' + "b" * 64 + '"'


@pytest.mark.parametrize(
    ("lines", "path", "words"),
    [
        (ENGINE + ", args: [--tensor-parallel-size=4]}", "spec.engine.args", "gpus.tensorParallel"),
        (ENGINE + ", args: [--max_model_len, '4096']}", "spec.engine.args", "context"),
        (ENGINE + ", args: [--no-enable-lora]}", "spec.engine.args", "adapters"),
        (ENGINE + ", args: [--disable-log-stats]}", "spec.engine.args", "not yours"),
        (ENGINE + ', env: {VLLM_ALLOW_RUNTIME_LORA_UPDATING: "True"}}', "spec.engine.env", "adapters"),
        ("gpus: {pool: a100, memory: 16Gi, sharedMemory: 16Gi}", "spec.gpus.sharedMemory", "taken from memory"),
        ("replicas: {max: 2, scaleOn: waiting-requests}", "spec.replicas.target", "needs a target"),
        ("replicas: {max: 2, scaleOn: waiting-requests, target: 8/s}", "spec.replicas.target", "not a rate"),
        ("slo: {errors: 1%}\n  rollout: {canary: [0.5%]}", "spec.rollout.canary", "whole percents"),
        ("slo: {errors: 1%}\n  rollout: {canary: [0%, 5%]}", "spec.rollout.canary", "whole percents"),
        ("adapters: [{name: a, path: a}, {name: a, path: b}]", "spec.adapters", "two models are called a"),
        ("weights: {claim: w, path: m, version: ../v1, size: 1Ti}", "spec.weights.version", "label value"),
        ("slo: {}", "spec.slo", "without any promise"),
        ("servedName: $(HOME)", "spec.servedName", "$(HOME)"),
        ("servedName: 'a b'", "spec.servedName", "a b"),
        ("model: ''", "spec.model", ""),
        ("slo: {firstToken: {p90: 0s}}", "spec.slo.firstToken.p90", "less than a millisecond"),
        ("slo: {outputRate: 0/s}", "spec.slo.outputRate", "more than 0/s"),
        ("slo: {outputRate: 1000000/s}", "spec.slo.outputRate", "at most 10000/s"),
        ("slo: {errors: 100%}", "spec.slo.errors", "all requests may fail"),
    ],
)
def test_wishes_that_contradict_themselves(platform: Path, put: Put, lines: str, path: str, words: str) -> None:
    put("apps/chat.yaml", _service(lines))
    [finding] = load(platform).findings
    assert finding.path == path
    assert words in finding.message


@pytest.mark.parametrize(
    "lines",
    [
        ENGINE + ", args: [--max-num-seqs=64, --kv-cache-dtype=fp8]}",
        "gpus: {pool: a100, memory: 32Gi, sharedMemory: 16Gi}",
        "adapters: [{name: a, path: a, rank: 64}]",
        "slo: {errors: 0%}",
        "slo: {errors: 99.9%, latency: {p50: 1ms}, outputRate: 10000/s}",
        "servedName: chat",
    ],
)
def test_near_misses(platform: Path, put: Put, lines: str) -> None:
    put("apps/chat.yaml", _service(lines))
    assert load(platform).findings == []


@pytest.mark.parametrize("name", ["vllm", "vllm-host"])
def test_a_name_that_would_set_variables_of_the_server(platform: Path, put: Put, name: str) -> None:
    put("apps/chat.yaml", SERVICE.replace("name: chat", f"name: {name}"))
    [finding] = load(platform).findings
    assert finding.path == "metadata.name"


def test_a_gateway_has_a_namespace(platform: Path, put: Put) -> None:
    file = platform / "clusters/prod.yaml"
    text = file.read_text()
    file.write_text(f"{text}  gateway: {{name: ai-gateway, domain: example.com}}\n")
    [finding] = load(platform).findings
    assert finding.path == "spec.gateway.name"
