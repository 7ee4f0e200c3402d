import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog import vllm as facts
from blueprint.check.graph import Graph
from blueprint.check.rules.vllm_fit import parallelism
from blueprint.check.rules.vllm_flags import unknown_flags
from blueprint.render import slo, vllm
from blueprint.render.vllm import Bound
from tests.render.sites import one, rendered, site

EVERYTHING = {
    "context": 8192,
    "gpus.tensorParallel": 4,
    "gpus.pipelineParallel": 2,
    "gpus.nodes": 2,
    "adapters": [{"name": "billing", "path": "adapters/billing", "rank": 20}],
    "slo": {"firstToken": {"p90": "800ms"}, "latency": {"p95": "200ms"}, "outputRate": "120/s", "errors": "0.5%"},
}
KNOWN = "meta-llama/Llama-3.1-8B-Instruct"
TTFT = "vllm:time_to_first_token_seconds"


@pytest.mark.parametrize("version", [v for v in facts.versions() if facts.flag("--nnodes", v).flag])
def test_every_argument_is_one_that_the_version_takes(version: str) -> None:
    for changes in (EVERYTHING, {"gpus.pool": "mig", "gpus.profile": "1g.10gb"}, {}):
        service = one({**changes, "engine.vllm": version})
        for line in (vllm.arguments(service, slo.bounds(service)), vllm.worker_arguments(service, [])):
            for argument in line[1:]:
                if argument.startswith("-"):
                    answer = facts.flag(argument, version)
                    name, _, value = argument.partition("=")
                    if name == "--custom-histogram-buckets" and version < "0.32.0":
                        continue  # the promise itself is a finding then
                    assert answer.presence is facts.Presence.PRESENT, argument
                    assert answer.flag is not None
                    assert not answer.abbreviated
                    assert answer.flag.accepts(value) or "$(" in value, argument


def test_a_version_without_drain_or_groups_is_a_finding() -> None:
    old = one({"model": KNOWN, "engine.vllm": "0.10.2", "gpus.tensorParallel": 2, "gpus.nodes": 2})
    vllm.judge(old)
    assert [finding.code for finding in old.site.problems] == ["SRV103", "SRV104"]
    new = one({"model": KNOWN, "gpus.tensorParallel": 2, "gpus.nodes": 2})
    vllm.judge(new)
    assert new.site.problems == []


def test_a_version_that_was_never_read_is_taken_to_be_newer() -> None:
    service = one({"engine.vllm": "0.99.0", "slo": {"firstToken": {"p90": "800ms"}}})
    arguments = vllm.arguments(service, slo.bounds(service))
    assert "--shutdown-timeout=120" in arguments
    assert any(argument.startswith("--custom-histogram-buckets=") and "0.8" in argument for argument in arguments)


def test_the_weights_are_those_of_the_version() -> None:
    assert vllm.arguments(one(), [])[0] == "/weights/model-8b/v1"
    assert vllm.arguments(one({"weights.version": "v2"}), [])[0] == "/weights/model-8b/v2"


def test_a_bound_that_is_a_bucket_needs_no_flag() -> None:
    assert vllm.custom_buckets([Bound(TTFT, "time_to_first_token", 0.75)], "0.33.0") == {}


def test_other_bounds_are_added_to_the_defaults() -> None:
    buckets = vllm.custom_buckets([Bound(TTFT, "time_to_first_token", 0.8)], "0.33.0")
    assert set(buckets) == {"time_to_first_token"}
    assert set(buckets["time_to_first_token"]) == {0.8, *vllm.boundaries(TTFT, "0.33.0")}


def test_the_flag_is_json_that_the_version_reads() -> None:
    service = one(EVERYTHING)
    [flag] = [a for a in vllm.arguments(service, slo.bounds(service)) if a.startswith("--custom-histogram-buckets")]
    given_buckets = json.loads(flag.partition("=")[2])
    assert set(given_buckets) == {"time_to_first_token", "request_latency", "inter_token_latency"}
    assert 0.2 in given_buckets["request_latency"]
    assert 0.008333 in given_buckets["inter_token_latency"]


@given(st.lists(st.floats(0.0001, 9000), max_size=4))
def test_every_bound_becomes_a_boundary(seconds: list[float]) -> None:
    bounds = [Bound(TTFT, "time_to_first_token", value) for value in seconds]
    buckets = vllm.custom_buckets(bounds, "0.33.0").get("time_to_first_token", vllm.boundaries(TTFT, "0.33.0"))
    assert set(seconds) <= set(buckets)
    assert all(a < b for a, b in pairwise(buckets))


def test_boundaries_are_written_as_floats() -> None:
    assert [vllm.le(value) for value in (5, 0.75, 2.5)] == ["5.0", "0.75", "2.5"]


def test_ranks_are_rounded_up_to_what_kernels_exist_for() -> None:
    assert "--max-lora-rank=32" in vllm.arguments(one(EVERYTHING), [])
    assert "--max-lora-rank=16" in vllm.arguments(one({"adapters": [{"name": "a", "path": "a"}]}), [])


def test_workers_load_adapters_by_order_of_the_leader_and_serve_nothing() -> None:
    worker = vllm.worker_arguments(one(EVERYTHING), [])
    assert "--enable-lora" in worker
    assert "--headless" in worker
    assert not any(a.startswith(("--port", "--lora-modules")) for a in worker)
    leader = vllm.arguments(one(EVERYTHING), [])
    assert "--headless" not in leader
    assert "--port=8000" in leader


def test_own_arguments_come_last_and_own_variables_win() -> None:
    service = one({"engine.args": ["--max-num-seqs=64"], "engine.env": {"HOME": "/tmp", "X": "1"}})
    assert vllm.arguments(service, [])[-1] == "--max-num-seqs=64"
    values = {entry["name"]: entry.get("value") for entry in vllm.environment(service)}
    assert values["HOME"] == "/tmp"
    assert values["X"] == "1"


def test_the_engine_is_as_patient_as_the_probe() -> None:
    def patience(load: str) -> object:
        environment = vllm.environment(one({"weights.loadTime": load}))
        return {e["name"]: e.get("value") for e in environment}.get("VLLM_ENGINE_READY_TIMEOUT_S")

    assert patience("4m") is None
    assert patience("25m") == "2250"


def test_nothing_is_downloaded_and_no_client_changes_a_server() -> None:
    names = {entry["name"] for entry in vllm.environment(one())}
    assert {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} <= names
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING" not in names


def test_no_bucket_is_asked_for_where_nobody_reads_it() -> None:
    cluster = {"components": {"prometheusOperator": None}}
    assert slo.bounds(one({"slo": {"firstToken": {"p90": "800ms"}}}, cluster=cluster)) == []
    assert site().problems == []


@pytest.mark.parametrize(
    ("version", "args", "says"),
    [
        ("0.33.0", ["--no-such-thing"], "does not know --no-such-thing; it exits at once"),
        ("0.33.0", ["--max-num-seq=4"], ""),  # argparse completes it
        ("0.33.0", ["--max-num-sequences=4"], "does not know --max-num-sequences"),
        ("0.33.0", ["--max-num-seqs 4"], "does not know --max-num-seqs 4"),
        ("0.33.0", ["--max-num-seqs", "4"], ""),
        ("0.6.0", ["--nnodes-of-mine"], ""),  # older than what was read: nobody knows
        ("0.99.0", ["--no-such-thing"], ""),
    ],
)
def test_an_argument_of_no_use_to_the_pinned_version(version: str, args: list[str], says: str) -> None:
    service = one({"engine.vllm": version, "engine.args": args, "model": KNOWN})
    vllm.judge(service)
    found = [finding for finding in service.site.problems if finding.code == "SRV105"]
    assert [says in finding.message for finding in found] == ([True] if says else [])
    assert all(finding.source and finding.source.file.endswith("args[0]") for finding in found)


def test_an_argument_that_came_later_is_named_with_its_version() -> None:
    service = one({"engine.vllm": "0.10.2", "engine.args": ["--nnodes-x", "--disable-access-log-for-endpoints=/x"]})
    vllm.judge(service)
    messages = [finding.message for finding in service.site.problems if finding.code == "SRV105"]
    assert any("it comes with" in message for message in messages)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (KNOWN, None),
        (KNOWN.upper(), None),
        ("meta-llama/Llama-3.1-8B-Instuct", "did you mean meta-llama/Llama-3.1-8B-Instruct?"),
        ("our-own/thing", "is not known: whether it fits its GPUs is not judged"),
    ],
)
def test_a_model_of_unknown_shape_is_said_to_be_unknown(model: str, says: str | None) -> None:
    service = one({"model": model})
    vllm.judge(service)
    found = [finding for finding in service.site.problems if finding.code == "SRV106"]
    assert [says in finding.message for finding in found if says] == ([True] if says else [])
    assert bool(found) is (says is not None)
    assert not any(finding.fails for finding in found)
    assert ("did you mean" in str(found)) is ("did you mean" in str(says))


def test_the_tree_tells_a_check_which_engine_and_model_it_has() -> None:
    objects = rendered({"model": KNOWN, "engine.args": ["--no-such-thing"], "gpus.tensorParallel": 3})
    graph = Graph([item.manifest for item in objects.items])
    assert [finding.code for finding in unknown_flags(graph)] == ["SRV202"]
    assert [finding.code for finding in parallelism(graph)] == ["SRV211"]
    right = Graph([item.manifest for item in rendered({"model": KNOWN, "gpus.tensorParallel": 4}).items])
    assert not [*unknown_flags(right), *parallelism(right)]
