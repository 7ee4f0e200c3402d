"""Certain means certain, where vLLM is the judge: its own code refuses the bad example, and takes the good one.

Options go through the parser and the configurations of `vllm serve`; for the rest the numbers that the rule reads from
an example go into the function of vLLM that refuses them. Torch and GPUs are stand-ins: none of the code that is asked
computes with them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blueprint.catalog.gpus import gpu
from blueprint.catalog.models import models, parallelism_problem
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.probes import port_of
from blueprint.objects import Manifest
from scripts import vllm_sources
from tests.check.rules.cases import findings
from tests.conformance.certain.replay import ids, reading
from tests.conformance.certain.table import Case, cases
from tests.conformance.certain.vllm import Vllm
from tests.conformance.conftest import program

Says = Callable[[Vllm, Engine, list[Manifest]], str]


@pytest.fixture(scope="module")
def vllm() -> Iterator[Vllm]:
    """vLLM's own code."""
    with Vllm() as started:
        yield started


def served(text: str) -> tuple[Engine, list[Manifest]]:
    """The one server of an example, and all its objects."""
    found = list(reading(text).manifests)
    (engine,) = engines(Graph(found))
    return engine, found


def start(vllm: Vllm, engine: Engine) -> dict[str, Any]:
    """What `vllm serve` comes to with the words of a container, on as many GPUs as it asks for or, without, wants."""
    words = [word for word in engine.container.get("args", ()) if word != "serve"]
    return vllm.ask("command", words=words, gpus=engine.gpus or 1024)


def refused(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The command line is refused, or what it comes to."""
    return str(start(vllm, engine)["refused"])


def heads(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The attention heads over the tensor-parallel size."""
    assert engine.model
    return str(vllm.ask("heads", heads=engine.model.heads, tensor=engine.tensor)["refused"])


def attention(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The key-value heads over the tensor-parallel size, in the layer that the model is built of."""
    shape = engine.model
    assert shape and shape.id.startswith("Qwen/Qwen2")
    sizes = {"heads": shape.heads, "kv_heads": shape.kv_heads, "hidden": shape.hidden}
    return str(vllm.ask("attention", tensor=engine.tensor, **sizes)["refused"])


def width(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The feed-forward width over the tensor-parallel size."""
    assert engine.model and not engine.model.experts
    return str(vllm.ask("width", width=engine.model.intermediate, tensor=engine.tensor)["refused"])


def block(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The FP8 blocks of the feed-forward layer over the tensor-parallel size."""
    shape = engine.model
    assert shape and shape.block and not shape.experts
    sizes = {"width": shape.intermediate, "hidden": shape.hidden, "block": shape.block}
    return str(vllm.ask("block", tensor=engine.tensor, **sizes)["refused"])


def memory(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """What the weights leave for the cache, at most, and what vLLM says of it."""
    shape, tensor = engine.model, engine.tensor
    card = gpu(engine.pod.spec["nodeSelector"]["nvidia.com/gpu.product"])
    said = start(vllm, engine)
    assert shape and tensor and card and not said["refused"]
    weights = shape.weights_bytes()
    assert weights
    available = int(card.memory_mib * 2**20 * said["share"] - weights / tensor)
    sizes = {"kv_heads": shape.kv_heads, "head_dim": shape.head_dim, "layers": shape.layers, "context": shape.context}
    length = {None: shape.context, -1: 0}.get(said["length"], said["length"])
    return str(vllm.ask("memory", tensor=tensor, available=available, length=length, **sizes)["refused"])


def variable(vllm: Vllm, engine: Engine, objects: list[Manifest]) -> str:
    """VLLM_PORT, as the kubelet makes it of a Service, as vLLM reads it."""
    (service,) = (each.body for each in objects if each.kind == "Service")
    service = {**service, "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", **service["spec"]}}
    for each in service["spec"]["ports"]:
        each.setdefault("protocol", "TCP")  # the API server's default
    done = subprocess.run(
        [program("kubernetes-verdicts")],
        input=json.dumps({"service": service}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    variables = json.loads(done.stdout) if engine.pod.spec.get("enableServiceLinks", True) else {}
    return str(vllm.ask("port", variables=variables)["refused"])


def probed(vllm: Vllm, engine: Engine, _: list[Manifest]) -> str:
    """The port of the probe is none that the server binds."""
    said = start(vllm, engine)
    assert said["refused"] == ""
    asked = port_of(engine.probe("readinessProbe"), engine.container)
    return "" if asked is None or asked in said["ports"] else f"it binds {said['ports']} and starts {said['started']}"


def series(vllm: Vllm, _: Engine, objects: list[Manifest]) -> str:
    """The metric of the one alert is none that the server registers, and no file of vLLM has its name."""
    (rule,) = (each.body for each in objects if each.kind == "PrometheusRule")
    name = rule["spec"]["groups"][0]["rules"][0]["expr"].split()[0]
    if name in vllm.ask("metrics")["names"]:
        return ""
    files = (vllm_sources.folder() / "vllm").rglob("*.py")
    assert not any(name.removeprefix("vllm:") in file.read_text("utf-8") for file in files)
    return f"no {name}"


JUDGES: dict[str, Says] = {
    **dict.fromkeys(("SRV202", "SRV203", "SRV205", "SRV206", "SRV216"), refused),
    "SRV211": heads,
    "SRV212": attention,
    "SRV214": width,
    "SRV215": block,
    **dict.fromkeys(("SRV218", "SRV219"), memory),
    "SRV239": variable,
    **dict.fromkeys(("SRV240", "SRV242"), probed),
    "PQL201": series,
}


@ids(cases("vllm"))
def test_vllm_refuses_it(case: Case, vllm: Vllm) -> None:
    says = JUDGES[case.code]
    assert says(vllm, *served(case.good)) == ""
    assert says(vllm, *served(case.bad))


def pod(*words: str) -> str:
    """A server with these words."""
    container = {"name": "s", "image": f"vllm/vllm-openai:v{vllm_sources.version()}", "args": list(words)}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    return json.dumps(body)


@pytest.mark.parametrize(
    ("words", "mended"),
    [
        (["--data-parallel-external-lb"], ["--data-parallel-external-lb", "--data-parallel-size=2"]),
        (["--data-parallel-size=2", "--data-parallel-size-local=4"], ["--data-parallel-size=4"]),
        (
            ["--tensor-parallel-size=4", "--decode-context-parallel-size=3"],
            ["--tensor-parallel-size=4", "--decode-context-parallel-size=2"],
        ),
        (["--headless", "--api-server-count=2"], ["--headless"]),
        (["--enable-lora", "--max-loras=2", "--max-cpu-loras=1"], ["--enable-lora", "--max-cpu-loras=1"]),
        (["--collect-detailed-traces=all"], ["--collect-detailed-traces=all", "--otlp-traces-endpoint=http://a:1"]),
        (["--gpu-memory-utilization=1.2"], ["--gpu-memory-utilization=1"]),
        (["--gpu-memory-utilization=0"], ["--gpu-memory-utilization=0.1"]),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_each_pair_of_options_is_refused(words: list[str], mended: list[str], vllm: Vllm) -> None:
    for text, wrong in ((pod("--model=a/b", *words), True), (pod("--model=a/b", *mended), False)):
        engine, objects = served(text)
        assert bool(refused(vllm, engine, objects)) is wrong
        assert ("SRV206" in {finding.code for finding in findings(text)}) is wrong


@pytest.mark.parametrize("size", range(1, 33))
def test_sizes_of_every_model_are_those_that_vllm_takes(size: int, vllm: Vllm) -> None:
    """Heads, widths and blocks of each dense model of the table: what is called impossible is what vLLM refuses."""
    for shape in models():
        if shape.experts or shape.attention in ("mla", "encoder", "mixed"):
            continue
        said = [vllm.ask("heads", heads=shape.heads, tensor=size)["refused"]]
        if not said[0]:
            sizes = {"heads": shape.heads, "kv_heads": shape.kv_heads, "hidden": shape.hidden}
            said.append(vllm.ask("attention", tensor=size, **sizes)["refused"])
            said.append(vllm.ask("width", width=shape.intermediate, tensor=size)["refused"])
        if shape.block and not any(said):
            sizes = {"width": shape.intermediate, "hidden": shape.hidden, "block": shape.block}
            said.append(vllm.ask("block", tensor=size, **sizes)["refused"])
        assert bool(any(said)) is bool(parallelism_problem(shape, size)), (shape.id, size, said)
