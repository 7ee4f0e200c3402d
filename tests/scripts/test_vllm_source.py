"""The reader of vllm's sources, on a source tree in miniature."""

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

FILES = {
    "config/cache.py": '''
CacheDType = Literal["auto", "fp8"]

@config
class CacheConfig:
    block_size: SkipValidation[int] = None
    """Size."""
    utilization: float = Field(default=0.9, gt=0)
    """Share."""
    cache_dtype: CacheDType = "auto"
    """Kind."""
    open_dtype: CacheDType | str = "auto"
    """Kind, open."""
    prefix: bool | None = None
    """Reuse."""
    max_len: int | None = None
    """Length."""
    extra: dict[str, Any] = field(default_factory=dict)
    """More."""
    names: list[str] | None = None
    """Names."""
    token: bool | str | None = None
    """Token."""
    computed: int = SOMETHING.elsewhere()
    """Computed."""
''',
    "engine/arg_utils.py": """
from typing import TYPE_CHECKING

_OLD = "--old-flag is deprecated and will be removed."

def get_kwargs(cls):
    if name in {"max_len"}:
        kwargs[name]["type"] = human_readable_int

@dataclass
class EngineArgs:
    port: int = 1

    def add_cli_args(parser):
        cache_kwargs = get_kwargs(CacheConfig)
        group = parser.add_argument_group("x")
        group.add_argument("--block-size", **cache_kwargs["block_size"])
        group.add_argument("-u", "--utilization", "--use", **cache_kwargs["utilization"])
        group.add_argument("--cache-dtype", **cache_kwargs["cache_dtype"])
        group.add_argument("--open-dtype", **cache_kwargs["open_dtype"])
        group.add_argument("--prefix", **cache_kwargs["prefix"])
        group.add_argument("--max-len", **cache_kwargs["max_len"])
        group.add_argument("--extra", **cache_kwargs["extra"])
        group.add_argument("--names", **cache_kwargs["names"])
        group.add_argument("--token", **cache_kwargs["token"])
        group.add_argument("--computed", **cache_kwargs["computed"])
        backend_kwargs = cache_kwargs["cache_dtype"]
        backend_kwargs["type"] = lambda s: s.lower().replace("-", "_")
        group.add_argument("--backend", **backend_kwargs)
        group.add_argument("--headless", action="store_true", help="No server.")
        group.add_argument("--old-flag", type=int, default=EngineArgs.port)
        group.add_argument("--gone", action=argparse.BooleanOptionalAction, help="[DEPRECATED] gone soon")
""",
    "entrypoints/openai/cli_args.py": '''
class BaseFrontendArgs:
    lora_modules: list[str] | None = None
    """Adapters."""

class FrontendArgs(BaseFrontendArgs):
    host: str | None = None
    """Host."""
    allowed_origins: list[str] = field(default_factory=lambda: ["*"])
    """Origins."""
    middleware: list[str] = field(default_factory=lambda: [])
    """Middleware."""

    def customize(frontend_kwargs):
        frontend_kwargs["allowed_origins"]["type"] = json.loads
        del frontend_kwargs["allowed_origins"]["nargs"]
        frontend_kwargs["middleware"]["action"] = "append"
''',
    "v1/metrics/loggers.py": """
class Logger:
    _counter_cls = Counter

    def __init__(self, config):
        labelnames = ["model_name", "engine"]
        buckets = [1, 2, 3]
        self.a = self._gauge_cls(name="vllm:running", documentation="", labelnames=labelnames)
        self.b = self._counter_cls(name="vllm:done", documentation="", labelnames=labelnames + ["reason"])
        self.c = self._histogram_cls(name="vllm:ttft", documentation="", buckets=buckets, labelnames=labelnames)
        buckets = [0.5, 1.5]
        self.d = self._histogram_cls(name="vllm:itl", documentation="", buckets=buckets[1:], labelnames=labelnames)
        self.e = self._histogram_cls(name="vllm:tokens", buckets=build_1_2_5_buckets(n), labelnames=labelnames)
        if self.show_hidden_metrics:
            self.f = self._gauge_cls(name="vllm:old", documentation="", labelnames=labelnames)
        name = "vllm:info"
        self.g = self._gauge_cls(name=name, documentation="", labelnames=info.keys())
""",
    "v1/spec_decode/metrics.py": """
class Prom:
    _counter_cls = Counter

    def __init__(self, labelnames):
        specs = [("vllm:drafts", "Drafts."), ("vllm:accepted", "Accepted.")]
        counters = [self._counter_cls(name=name, documentation=doc, labelnames=labelnames) for name, doc in specs]
""",
    "v1/metrics/reader.py": """
Counter = object
HELP = "vllm:mentioned"
""",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vllm-0.0.1")
    for name, text in FILES.items():
        path = root / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_flags(root: Path) -> None:
    import vllm_flags_source as source

    flags = source.flags(source.Tree.read(root))
    assert flags == {
        "--block-size": {"takes": "value", "type": "int", "default": None},
        "--utilization": {"takes": "value", "type": "float", "default": 0.9, "aliases": ["--use", "-u"]},
        "--cache-dtype": {"takes": "value", "type": "str", "default": "auto", "choices": ["auto", "fp8"]},
        "--open-dtype": {"takes": "value", "type": "str", "default": "auto"},
        "--prefix": {"takes": "boolean", "type": "bool", "default": None},
        "--max-len": {"takes": "value", "type": "size", "default": None},
        "--extra": {"takes": "value", "type": "json", "default": {}},
        "--names": {"takes": "values", "type": "list", "default": None},
        "--token": {"takes": "optional", "type": "str", "default": None},
        "--computed": {"takes": "value", "type": "int"},
        "--backend": {"takes": "value", "type": "str", "default": "auto", "choices": ["auto", "fp8"], "folds": True},
        "--headless": {"takes": "switch", "type": "bool", "default": False},
        "--old-flag": {"takes": "value", "type": "int", "default": 1, "deprecated": True},
        "--gone": {"takes": "boolean", "type": "bool", "default": None, "deprecated": True},
        "--lora-modules": {"takes": "values", "type": "list", "default": None},
        "--host": {"takes": "value", "type": "str", "default": None},
        "--allowed-origins": {"takes": "value", "type": "json", "default": ["*"]},
        "--middleware": {"takes": "repeated", "type": "list", "default": []},
    }


def test_metrics(root: Path) -> None:
    import vllm_metrics_source as source

    common = ["model_name", "engine"]
    assert dict(source.metrics(root)) == {
        "vllm:running": {"type": "gauge", "labels": common},
        "vllm:done_total": {"type": "counter", "labels": [*common, "reason"]},
        "vllm:ttft": {"type": "histogram", "labels": common, "buckets": [1.0, 2.0, 3.0]},
        "vllm:itl": {"type": "histogram", "labels": common, "buckets": [1.5]},
        "vllm:tokens": {"type": "histogram", "labels": common, "buckets": "1-2-5"},
        "vllm:old": {"type": "gauge", "labels": common, "when": "hidden"},
        "vllm:info": {"type": "gauge"},
        "vllm:drafts_total": {"type": "counter", "labels": common, "when": "speculative decoding"},
        "vllm:accepted_total": {"type": "counter", "labels": common, "when": "speculative decoding"},
        "vllm:mentioned": {"type": "unknown"},
    }


def test_rows_of_neighbouring_versions_are_merged() -> None:
    import vllm_tables as tables

    old, new = {"takes": "value", "default": 1}, {"takes": "value", "default": 2}
    versions = {key: [("--x", new)] for key in tables.VERSIONS}
    for version in tables.VERSIONS[:2]:
        versions[version] = [("--x", old)]
    versions[tables.VERSIONS[4]] = []
    first, second, third = tables.merge(versions)["--x"]
    v = tables.VERSIONS
    assert first == {"first": v[0], "last": v[1], **old}
    assert second == {"first": v[2], "last": v[3], **new}
    assert third == {"first": v[5], **new}


def test_a_name_that_is_only_mentioned_gives_way_to_one_that_is_registered() -> None:
    import vllm_tables as tables

    rows = [("vllm:a", {"type": "unknown"}), ("vllm:a_total", {"type": "counter"}), ("vllm:b", {"type": "unknown"})]
    assert tables.settled(rows) == rows[1:]


def teardown_module() -> None:
    for name in ("vllm_flags_source", "vllm_metrics_source", "vllm_tables"):
        sys.modules.pop(name, None)
