"""A small platform without mistakes, for tests to spoil."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

BAD = Path(__file__).parents[1] / "bad"
VERSION = "apiVersion: platform.blueprint/v1alpha1\n"
DIGEST = "b" * 64

JOB = f"""{VERSION}kind: TrainingJob
metadata: {{name: sft}}
spec:
  team: search
  clusters: [prod]
  pool: h100
  memory: 64Gi
  image: registry.example.com/train@sha256:{DIGEST}
"""
SERVICE = f"""{VERSION}kind: InferenceService
metadata: {{name: chat}}
spec:
  team: search
  clusters: [prod]
  model: example/model-8b
  engine: {{vllm: 0.33.0, image: "registry.example.com/vllm@sha256:{DIGEST}"}}
  gpus: {{pool: a100, memory: 96Gi}}
  weights: {{claim: weights, path: model-8b, version: v1, size: 1Ti}}
"""


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """The root of a platform with two clusters, a team and a delivery."""
    root = tmp_path / "platform"
    shutil.copytree(BAD / "platform", root)
    return root


@pytest.fixture
def put(platform: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file of the platform."""

    def write(name: str, content: str | bytes) -> Path:
        path = platform / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
