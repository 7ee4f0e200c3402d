"""Flags and metrics of vllm by version."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.catalog.vllm import Metric, Presence, flag, metric, option_name, versions

PRESENT, ABSENT, UNKNOWN = Presence.PRESENT, Presence.ABSENT, Presence.UNKNOWN


@pytest.mark.parametrize(
    ("argument", "of", "presence"),
    [
        ("--tensor-parallel-size", "0.33.0", PRESENT),
        ("--tensor_parallel_size=4", "v0.33.0", PRESENT),
        ("-tp", "0.12.0", PRESENT),
        ("--no-enable-prefix-caching", "0.33.0", PRESENT),
        ("--compilation-config.level", "0.33.0", PRESENT),
        ("--tensor-parallel", "0.33.0", PRESENT),  # argparse completes it
        ("--enable-p", "0.33.0", ABSENT),  # to more than one flag
        ("--no-tensor-parallel-size", "0.33.0", ABSENT),  # takes a value
        ("--swap-space", "0.17.0", PRESENT),
        ("--swap-space", "0.17.1", PRESENT),
        ("--swap-space", "0.17.2", UNKNOWN),  # it went between the two versions around
        ("--swap-space", "0.18.1", ABSENT),
        ("--task", "0.12.0", PRESENT),
        ("--task", "0.20.2", ABSENT),
        ("--device", "0.9.2", PRESENT),
        ("--device", "0.10.2", ABSENT),
        ("--guided-decoding-backend", "0.12.0", ABSENT),
        ("--rope-scaling", "0.11.2", ABSENT),
        ("--shutdown-timeout", "0.17.1", ABSENT),
        ("--shutdown-timeout", "0.18.1", PRESENT),
        ("--shutdown-timeout", "0.33.0", PRESENT),
        ("--port", "latest", UNKNOWN),
        ("--port", "0.99.0", UNKNOWN),
        ("--port", "0.5.0", UNKNOWN),
        ("--no-such-thing", "0.33.0", ABSENT),
    ],
)
def test_flags_by_version(argument: str, of: str, presence: Presence) -> None:
    assert flag(argument, of).presence is presence


def test_disabled_log_requests() -> None:
    """The flag was dropped, and came back as the other side of --enable-log-requests."""
    old = flag("--disable-log-requests", "0.16.0")
    assert old.presence is PRESENT and old.flag is not None and old.flag.deprecated
    gone = flag("--disable-log-requests", "0.20.2")
    assert gone.presence is ABSENT and gone.removed == "0.17.1" and gone.instead
    back = flag("--disable-log-requests", "0.33.0")
    assert back.presence is PRESENT and back.negated
    assert back.flag is not None and back.flag.name == "--enable-log-requests"


@pytest.mark.parametrize(
    ("argument", "of", "default"),
    [
        ("--gpu-memory-utilization", "0.12.0", 0.9),
        ("--gpu-memory-utilization", "0.33.0", 0.92),
        ("--port", "0.33.0", 8000),
        ("--shutdown-timeout", "0.33.0", 0),
        ("--enable-prefix-caching", "0.33.0", True),
        ("--max-lora-rank", "0.33.0", 16),
        ("--tensor-parallel-size", "0.8.5.post1", 1),
    ],
)
def test_defaults(argument: str, of: str, default: object) -> None:
    found = flag(argument, of).flag
    assert found is not None and found.settled and found.default == default


def test_a_computed_default_is_not_claimed() -> None:
    found = flag("--max-num-seqs", "0.33.0").flag
    assert found is not None and not found.settled


def test_values_are_judged_by_the_choices() -> None:
    rank = flag("--max-lora-rank", "0.33.0").flag
    assert rank is not None and rank.accepts("64") and not rank.accepts("48")
    backend = flag("--moe-backend", "0.33.0").flag
    assert backend is not None and backend.folds
    assert backend.accepts("Deep-GEMM") and not backend.accepts("quantum")
    model = flag("--max-model-len", "0.33.0").flag
    assert model is not None and model.type == "size" and model.accepts("32k")


def test_details_between_two_versions_are_marked() -> None:
    assert flag("--port", "0.17.0").exact
    between = flag("--gpu-memory-utilization", "0.20.0")
    assert between.presence is PRESENT and not between.exact  # 0.19.1 says 0.9, 0.20.2 says 0.92


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("--kv_cache_dtype=fp8_e4m3", "--kv-cache-dtype"),
        ("--compilation-config.pass_config.x=1", "--compilation-config"),
        ("-tp", "-tp"),
        ("-O3", "-O3"),
    ],
)
def test_option_names(argument: str, name: str) -> None:
    assert option_name(argument) == name


@pytest.mark.parametrize(
    ("name", "of", "presence"),
    [
        ("vllm:kv_cache_usage_perc", "0.33.0", PRESENT),
        ("vllm:gpu_cache_usage_perc", "0.10.2", PRESENT),
        ("vllm:gpu_cache_usage_perc", "0.12.0", ABSENT),
        ("vllm:num_requests_waiting", "0.33.0", PRESENT),
        ("vllm:num_requests_waiting_by_reason", "0.19.1", ABSENT),
        ("vllm:time_to_first_token_seconds_bucket", "0.33.0", PRESENT),
        ("vllm:time_to_first_token_seconds_total", "0.33.0", ABSENT),
        ("vllm:iteration_tokens_total_bucket", "0.33.0", PRESENT),
        ("vllm:iteration_tokens_total_total", "0.33.0", ABSENT),
        ("vllm:request_success", "0.33.0", ABSENT),
        ("vllm:request_success_total", "0.33.0", PRESENT),
        ("vllm:request_success_created", "0.33.0", PRESENT),
        ("vllm:time_per_output_token_seconds_bucket", "0.33.0", ABSENT),
        ("vllm:num_incoming_requests_total", "0.33.0", ABSENT),  # a router's
        ("vllm:num_requests_running", "", UNKNOWN),
        ("vllm:num_requests_running", "0.34.0", UNKNOWN),
    ],
)
def test_metrics_by_version(name: str, of: str, presence: Presence) -> None:
    assert metric(name, of).presence is presence


def only(name: str, of: str) -> Metric:
    (found,) = metric(name, of).metrics
    return found


def test_labels() -> None:
    assert only("vllm:num_requests_running", "0.33.0").labels == ("model_name", "engine")
    assert only("vllm:request_success_total", "0.33.0").labels == ("model_name", "engine", "finished_reason")
    assert only("vllm:cache_config_info", "0.33.0").labels is None  # every field of a configuration
    old = {m.engine: m.labels for m in metric("vllm:num_requests_running", "0.9.2").metrics}
    assert old == {"v0": ("model_name",), "": ("model_name", "engine")}


def test_hidden_and_conditional_metrics() -> None:
    assert only("vllm:gpu_cache_usage_perc", "0.11.2").hidden
    assert only("vllm:time_per_output_token_seconds", "0.12.0").hidden
    assert not only("vllm:inter_token_latency_seconds", "0.12.0").hidden
    assert only("vllm:kv_block_lifetime_seconds", "0.33.0").when == "--kv-cache-metrics"
    assert only("vllm:lora_requests_info", "0.33.0").when == "--enable-lora"


def test_renamed_metrics() -> None:
    assert metric("vllm:gpu_cache_usage_perc", "0.33.0").instead == "vllm:kv_cache_usage_perc"
    assert metric("vllm:time_per_output_token_seconds_bucket", "0.33.0").instead == "vllm:inter_token_latency_seconds"
    assert metric("vllm:num_requests_running", "0.33.0").instead is None


def test_buckets() -> None:
    first = only("vllm:time_to_first_token_seconds", "0.33.0").boundaries()
    assert first is not None and 2.5 in first and 2.0 not in first and 0.8 not in first
    whole = only("vllm:e2e_request_latency_seconds", "0.33.0").boundaries()
    assert whole is not None and whole[0] == 0.3 and whole[-1] == 7680.0
    tokens = only("vllm:request_prompt_tokens", "0.33.0")
    assert tokens.boundaries() is None
    assert tokens.boundaries(300) == (1, 2, 5, 10, 20, 50, 100, 200)
    assert only("vllm:mooncake_bytes_transferred", "0.33.0").boundaries() is None  # computed


@given(st.integers(1, 10**7))
@settings(deadline=None)
def test_the_token_series_ends_at_the_model_length(length: int) -> None:
    series = only("vllm:request_prompt_tokens", "0.33.0").boundaries(length)
    assert series is not None and series[0] == 1 and series == tuple(sorted(series))
    assert series[-1] <= length < series[-1] * 2.5


def test_each_flag_that_is_read_is_found_in_its_version_and_not_in_others() -> None:
    read = versions()
    for name, rows in table("vllm_flags")["flags"].items():
        for at in (read[0], read[len(read) // 2], read[-1]):
            written = any(read.index(r["first"]) <= read.index(at) <= read.index(r.get("last", read[-1])) for r in rows)
            answer = flag(name, at)
            if written:
                assert answer.presence is PRESENT and answer.flag is not None and answer.flag.name == name
            else:  # another flag may begin with this name or be its other side
                assert answer.presence is ABSENT or answer.abbreviated or answer.negated or name in answer.flag.aliases


def test_the_tables_are_sound() -> None:
    read = versions()
    keys = [version(v) for v in read]
    assert None not in keys and keys == sorted(keys)  # type: ignore[type-var]
    assert tuple(table("vllm_metrics")["versions"]) == read
    for rows in (*table("vllm_flags")["flags"].values(), *table("vllm_metrics")["metrics"].values()):
        for row in rows:
            assert read.index(row["first"]) <= read.index(row.get("last", read[-1]))
    for name, rows in table("vllm_metrics")["metrics"].items():
        for row in rows:
            assert row["type"] != "counter" or name.endswith("_total")
            buckets = row.get("buckets")
            assert not isinstance(buckets, list) or buckets == sorted(set(buckets))
    renames = table("vllm_renames")
    assert renames["flags"].keys() <= table("vllm_flags")["flags"].keys()
    assert renames["metrics"].keys() <= table("vllm_metrics")["metrics"].keys()
    newest = read[-1]
    for successor in renames["flags"].values():
        for word in successor.split():
            if word.startswith("--"):
                assert flag(word.strip(",:;"), newest).presence is PRESENT, word
    for name in renames["metrics"]:
        assert metric(name, newest).presence is ABSENT


@pytest.mark.parametrize("text", ["latest", "", "nightly", "sha256:abc", "1", "0.33", "v0.33.0-cu129", "0.33.0.1"])
def test_what_is_no_version(text: str) -> None:
    assert (version(text) is None) == (text != "0.33")


def test_versions_sort() -> None:
    texts = ["0.8.5rc1", "0.8.5", "0.8.5.post1", "0.9.0", "0.10.0", "v1.0.0", "1.0.1+cu129"]
    keys = [version(t) for t in texts]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)  # type: ignore[type-var]
