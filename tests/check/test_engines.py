"""Servers of vLLM in pods: which containers are some, and what their command lines say."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.accelerators import devices
from blueprint.check.commands import commands
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.probes import grace, mounted, patience, pre_stop, resolve_port
from blueprint.finding import Source
from blueprint.objects import Manifest

OPENAI = "vllm/vllm-openai:v0.33.0"


def pod(container: dict[str, Any], **spec: Any) -> Manifest:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    return Manifest(body, Source("p.yaml", 1))


def found(container: dict[str, Any], **spec: Any) -> list[Engine]:
    return list(engines(Graph([pod(container, **spec)])))


def only(*args: str, image: str = OPENAI, **container: Any) -> Engine:
    [engine] = found({"name": "s", "image": image, "args": list(args), **container})
    return engine


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.33.0", "0.33.0"),
        ("registry.example.com/mirror/vllm-openai:v0.11.2-cu129", "0.11.2"),
        ("vllm/vllm-openai:v0.8.5.post1@sha256:" + "0" * 64, "0.8.5.post1"),
        ("registry.example.com:5000/vllm", ""),
        ("vllm/vllm-openai:latest", ""),
        ("registry.example.com/vllm@sha256:" + "0" * 64, ""),
    ],
)
def test_the_version_is_in_the_tag_of_its_own_image(image: str, version: str) -> None:
    assert only("--model=a/b", image=image).version == version


def test_the_tag_of_another_image_is_another_program_s_version() -> None:
    container = {"name": "s", "image": "registry.example.com/our-chat:0.12.0", "command": ["vllm", "serve", "a/b"]}
    [engine] = found(container)
    assert engine.version == ""


DIGEST = "registry.example.com/our/server@sha256:" + "0" * 64
NOTES = {"platform.blueprint/engine": "vllm", "platform.blueprint/engine-version": "0.20.2"}


@pytest.mark.parametrize(
    ("image", "notes", "version"),
    [
        (DIGEST, NOTES, "0.20.2"),
        (OPENAI, NOTES, "0.33.0"),
        (DIGEST, {"platform.blueprint/engine-version": "0.20.2"}, ""),
        (DIGEST, {**NOTES, "platform.blueprint/engine": "sglang"}, ""),
    ],
)
def test_annotations_say_the_version_unless_the_image_does(image: str, notes: dict[str, str], version: str) -> None:
    manifest = pod({"name": "s", "image": image, "command": ["vllm", "serve", "a/b"]})
    manifest.body["metadata"]["annotations"] = notes
    [engine] = engines(Graph([manifest]))
    assert engine.version == version


@pytest.mark.parametrize(("asked", "known"), [("/weights/llama/v1", True), ("some/other-model", False)])
def test_an_annotation_says_what_a_folder_holds_and_no_more(asked: str, known: bool) -> None:
    manifest = pod({"name": "s", "image": OPENAI, "args": [asked]})
    manifest.body["metadata"]["annotations"] = {"platform.blueprint/model": "meta-llama/Llama-3.1-8B-Instruct"}
    [engine] = engines(Graph([manifest]))
    assert (engine.model is not None) is known


def test_a_label_can_say_the_version_of_a_digest() -> None:
    manifest = pod({"name": "s", "image": "registry.example.com/vllm@sha256:" + "0" * 64})
    manifest.body["metadata"]["labels"] = {"app.kubernetes.io/version": "v0.20.2"}
    [engine] = engines(Graph([manifest]))
    assert engine.version == "0.20.2"


@pytest.mark.parametrize(
    "container",
    [
        {"image": OPENAI, "command": ["sleep", "1"]},
        {"image": OPENAI, "command": ["vllm", "bench", "serve", "--model", "a"]},
        {"image": "lmcache/lmstack-router:latest", "args": ["--service-discovery", "k8s"]},
        {"image": "registry.example.com/vllm-router:v1.0.0", "args": ["--port", "80"]},
        {"image": "registry.example.com/app:1", "args": ["--url=http://vllm:80"]},
        {"image": OPENAI, "command": ["bash", "-c", "ray start --block"]},
    ],
)
def test_other_programs_are_no_servers(container: dict[str, Any]) -> None:
    assert found({"name": "s", **container}) == []


def test_words_and_where_they_are() -> None:
    engine = only(
        "serve-nothing", "--tensor_parallel_size", "4", "-pp=2", "--lora-modules", "a=1", "b=2", "--enable-lora"
    )
    assert (engine.tensor, engine.pipeline, engine.world) == (4, 2, 8)
    lora = engine.option("--lora-modules")
    assert lora and lora.value == "a=1 b=2" and lora.at == "args[4]"
    assert engine.switched_on("--enable-lora") and not engine.switched_on("--enable-expert-parallel")
    assert [word.text for word in engine.loose] == ["serve-nothing"]


def test_what_is_filled_in_later_is_unknown() -> None:
    engine = only("--tensor-parallel-size=$(TP)", "--max-model-len", "$LENGTH", env=[{"name": "TP", "valueFrom": {}}])
    assert engine.tensor is None and engine.world is None
    assert only("--config", "/etc/vllm.yaml").tensor is None
    assert only("--tensor-parallel-size=$(TP)", env=[{"name": "TP", "value": "4"}]).tensor == 4
    escaped = only("--tensor-parallel-size=$$(TP)", env=[{"name": "TP", "value": "4"}])
    assert escaped.tensor is None and escaped.command.words[0].text == "--tensor-parallel-size=$(TP)"
    assert commands({"command": ["$$$(A)"], "env": [{"name": "A", "value": "b"}]})[0].words[0].text == "$b"


def test_a_script_is_read_to_its_server() -> None:
    script = (
        "set -e\nexport A=1 # why\nA=2 exec python3 -m vllm.entrypoints.openai.api_server \\\n --model a/b --port 81"
    )
    [engine] = found({"name": "s", "image": "a", "command": ["/bin/sh", "-ec", script]})
    assert (engine.model_name, engine.port) == ("a/b", 81)
    assert engine.command.by_shell and engine.command.replaced and not engine.command.alone
    [alone] = commands({"command": ["bash", "-lc", "vllm serve a/b"]})
    assert alone.alone and not alone.replaced
    assert commands({"command": ["sh", "-c", "echo 'not closed"]}) == []


def test_served_names_come_before_the_model() -> None:
    assert only("--model=a/b").served_names == ("a/b",)
    assert only("--model=a/b", "--served-model-name", "x", "y").served_names == ("x", "y")
    assert only("--model=$(M)").served_names == ()


def test_gpus_of_every_sort() -> None:
    assert only(resources={"limits": {"nvidia.com/gpu": "4", "cpu": 3}}).gpus == 4
    assert only(resources={"limits": {"nvidia.com/mig-1g.10gb": 2}}).gpu_resources == {"nvidia.com/mig-1g.10gb": 2}
    assert only(resources={"claims": [{"name": "gpu"}]}).gpus is None
    assert only(resources={"limits": {"nvidia.com/gpu": "{{ n }}"}}).gpus is None
    assert only().gpus == 0


def test_devices_are_known_or_nothing() -> None:
    chosen = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}
    for spec, count in ((chosen, 1), ({}, 0), ({"nodeSelector": {"nvidia.com/gpu.product": "GeForce"}}, 0)):
        manifest = pod({"name": "s", "image": OPENAI, "resources": {"limits": {"nvidia.com/gpu": 1}}}, **spec)
        graph = Graph([manifest])
        [engine] = engines(graph)
        assert len(devices(graph, manifest, engine.pod, engine.gpu_resources)) == count


def test_times_of_probes_and_of_the_end() -> None:
    assert patience({"httpGet": {}}) == 30
    assert patience({"initialDelaySeconds": 60, "periodSeconds": 5, "failureThreshold": 4}) == 80
    assert patience({"periodSeconds": "{{ n }}"}) is None
    assert grace({}) == 30 and grace({"terminationGracePeriodSeconds": 90}) == 90
    assert pre_stop({"lifecycle": {"preStop": {"sleep": {"seconds": 7}}}}) == 7
    assert pre_stop({"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 15 && x"]}}}}) == 15
    assert pre_stop({}) == 0


def test_ports_and_mounts_by_name() -> None:
    container = {
        "ports": [{"name": "http", "containerPort": 8000}],
        "volumeMounts": [{"name": "root", "mountPath": "/"}, {"name": "hub", "mountPath": "/root/.cache/"}],
    }
    assert resolve_port("http", container) == 8000
    assert resolve_port(81, container) == 81
    assert resolve_port("other", container) is None
    spec = {"volumes": [{"name": "hub", "emptyDir": {}}]}
    assert mounted(spec, container, "/root/.cache/huggingface") == {"name": "hub", "emptyDir": {}}
    assert mounted(spec, container, "/root/.cached") is None
