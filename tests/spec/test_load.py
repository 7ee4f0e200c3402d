"""Specs to a platform."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.errors import UsageError
from blueprint.finding import Severity, Source
from blueprint.spec.load import KINDS, load
from blueprint.spec.outline import homes
from tests.spec.conftest import BAD, JOB, SERVICE, VERSION

Put = Callable[[str, str | bytes], Path]
REPOSITORY = Path(__file__).parents[2]


def test_documents_come_in_the_order_of_names(platform: Path, put: Put) -> None:
    put("apps/jobs.yaml", "---\n".join(JOB.replace("sft", name) for name in ("zeta", "alpha", "mid")))
    loaded = load(platform)
    assert not loaded.findings
    assert [d.model.metadata.name for d in loaded.platform.training_jobs] == ["alpha", "mid", "zeta"]
    assert loaded.documents == 7


def test_each_document_knows_its_lines(platform: Path, put: Put) -> None:
    put("apps/jobs.yaml", JOB + "---\n" + JOB.replace("sft", "second"))
    first, second = sorted(load(platform).platform.training_jobs, key=lambda d: d.source)
    assert (first.source, second.source) == (Source("apps/jobs.yaml", 1, 1), Source("apps/jobs.yaml", 11, 1))
    assert second.locate("spec.memory") == Source("apps/jobs.yaml", 18, 3)
    assert second.locate("spec.clusters[0]") == Source("apps/jobs.yaml", 16, 14)
    assert second.locate("spec.checkpoint.size") == Source("apps/jobs.yaml", 14, 1)


def test_the_reference_platform_has_no_mistake() -> None:
    loaded = load(REPOSITORY)
    assert not loaded.findings
    assert loaded.platform.clusters and loaded.platform.teams and loaded.platform.deliveries


def test_names_are_relative_to_the_root_wherever_one_stands(
    platform: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("apps/bad.yaml", JOB.replace("64Gi", "64GB"))
    here = load(platform).findings
    monkeypatch.chdir(platform.parent)
    assert load(Path("platform")).findings == here
    monkeypatch.chdir(platform / "apps")
    assert load(Path("..")).findings == here
    assert [str(finding.source) for finding in here] == ["apps/bad.yaml:8:11"]


def test_the_digest_is_that_of_names_and_bytes(platform: Path, put: Put, tmp_path: Path) -> None:
    first = load(platform).digest
    copy = tmp_path / "copy"
    shutil.copytree(platform, copy)
    assert load(copy).digest == first
    (copy / "apps/team.yaml").rename(copy / "apps/other.yaml")
    assert load(copy).digest != first
    put("apps/team.yaml", (platform / "apps/team.yaml").read_text() + "# a comment\n")
    assert load(platform).digest != first
    assert len(first) == 64


def test_the_order_of_a_folder_and_the_hash_seed_do_not_matter(platform: Path, put: Put) -> None:
    for name in "cab":
        put(f"apps/{name}.yaml", JOB.replace("sft", name).replace("64Gi", "64GB"))
    script = "import sys, pathlib; from blueprint.spec.load import load; print(load(pathlib.Path(sys.argv[1])))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, str(platform)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            check=True,
        ).stdout.split(b"findings=")[1]
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_root_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load(tmp_path / "nothing")
    with pytest.raises(UsageError, match="no platform"):
        load(tmp_path)


def test_a_platform_without_specs_is_one_finding(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    assert [finding.code for finding in load(tmp_path).findings] == ["SPC120"]


def test_a_missing_delivery_and_cluster_are_said(platform: Path) -> None:
    shutil.rmtree(platform / "argocd")
    [finding] = load(platform).findings
    assert (finding.code, finding.message) == ("SPC209", "the platform has no Delivery")


def test_fifty_megabytes_are_one_finding(platform: Path, put: Put) -> None:
    os.truncate(put("apps/large.yaml", ""), 50 << 20)
    [finding] = load(platform).findings
    assert (finding.code, str(finding.source)) == ("SPC101", "apps/large.yaml:1")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: &x yes, b: *x, a: 1}\n",
        "apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\n",
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\n",
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: a}\n",
    ],
    ids=["configmap", "kyverno", "kserve", "cluster-api", "policies"],
)
def test_what_is_no_spec_is_a_note(platform: Path, put: Put, text: str) -> None:
    put("apps/other.yaml", text)
    [finding] = load(platform).findings
    assert (finding.code, finding.severity) == ("SPC123", Severity.NOTE)
    assert not finding.fails


@pytest.mark.parametrize(
    ("text", "says", "severity"),
    [
        ("", "the file is empty", Severity.WARNING),
        ("\n---\n\n", "the file is empty", Severity.WARNING),
        ("# later\n", "only comments", Severity.NOTE),
        ("replicas: 3\n", "it has neither apiVersion nor kind", Severity.WARNING),
        ("metadata: {name: a}\nkind: 3\n", "it has neither apiVersion nor kind", Severity.WARNING),
        ("apiVersion: v1\nmetadata: {name: a}\n", "it has no kind", Severity.WARNING),
        ("kind: ConfigMap\nmetadata: {name: a}\n", "it has no apiVersion", Severity.WARNING),
    ],
)
def test_a_file_of_nothing_is_said(platform: Path, put: Put, text: str, says: str, severity: Severity) -> None:
    put("apps/other.yaml", text)
    [finding] = load(platform).findings
    assert (finding.code, finding.severity) == ("SPC124", severity)
    assert says in finding.message
    assert finding.source is not None and finding.source.file == "apps/other.yaml" and finding.source.line


def test_an_empty_document_beside_a_spec_is_nothing_to_say(platform: Path, put: Put) -> None:
    put("apps/job.yaml", f"---\n{JOB}---\n# end\n")
    assert not load(platform).findings


def test_a_mistake_hides_only_what_it_makes_unknowable(platform: Path, put: Put) -> None:
    """A cluster that cannot be read may be the one that is named."""
    put("apps/job.yaml", JOB.replace("[prod]", "[elsewhere]"))
    put("apps/bad.yaml", JOB.replace("sft", "bad").replace("memory", "memry"))
    put("clusters/broken.yaml", "kind: Cluster\nmetadata: {name: elsewhere\n")
    assert [finding.code for finding in load(platform).findings] == ["SPC132", "SPC131", "SPC103"]


def test_a_cluster_with_a_mistake_still_exists(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", text.replace("memory: 64Gi", "memory: 64GB"))
    put("apps/job.yaml", JOB)
    assert [finding.code for finding in load(platform).findings] == ["SPC136"]


def test_a_document_with_mistakes_is_not_part_of_the_platform(platform: Path, put: Put) -> None:
    put("apps/job.yaml", JOB + "  nodes: 2\n  nodes: 3\n")
    loaded = load(platform)
    assert not loaded.platform.training_jobs
    assert loaded.documents == 5


def test_a_document_gives_at_most_a_hundred_findings(platform: Path, put: Put) -> None:
    put("apps/job.yaml", JOB + "  args: [" + "y," * 5000 + "]\n")
    findings = load(platform).findings
    assert len(findings) == 101
    assert [f.message for f in findings if f.code == "SPC113"] == ["4900 more mistakes in this document"]


@pytest.mark.parametrize(
    "lines",
    [
        'env: {A: "yes", B: "1", C: "0777", "on": "off", D: "2026-11-30", E: "", F: "null", G: "1:30"}',
        "cpu: 8",
        'cpu: "8"',
        "cpu: 500m",
        'memory: "64Gi"',
        "args: [--steps=1_000, '-', \"~\", --since=2026-11-30, 10.0.0.1:5000]",
        "maxRuntime: 1h30m",
        "maxRuntime: null",
        "command: [\"a\\tb\", 'it''s', \"\\u2028\"]",
        "nodes: 0x4",
        "priority: \"low\"",
        "env:\n    A: |\n      yes\n    B: >-\n      0777",
        "checkpoint: {}",
        "datasets: [{name: a, claim: c, path: /a}, {name: b, claim: c, path: /b}]",
    ],
)  # fmt: skip
def test_near_misses_of_a_job_are_silent(platform: Path, put: Put, lines: str) -> None:
    key = lines.partition(":")[0]
    base = "".join(line for line in JOB.splitlines(keepends=True) if not line.startswith(f"  {key}:"))
    put("apps/job.yaml", f"{base}  {lines}\n")
    assert not load(platform).findings


@pytest.mark.parametrize(
    "lines",
    [
        "slo: {errors: 0.5%, outputRate: 120 / s, firstToken: {p90: 800ms}}",
        'slo: {errors: "5 %"}',
        "replicas: {min: 1, max: 4, scaleOn: request-rate, target: 6/s}",
        "replicas: {min: 1, max: 4, scaleOn: waiting-requests, target: 8}",
        "rollout: {canary: [5%, 99%]}\n  slo: {errors: 1%}",
        "adapters: [{name: a, path: a/v1.2}, {name: b, path: b}]",
        "servedName: null",
        "gpus: {pool: slices, profile: 1g.10gb, memory: 8Gi}",
        "traffic: {host: a.example.com, timeout: 90s}",
    ],
)
def test_near_misses_of_a_service_are_silent(platform: Path, put: Put, lines: str) -> None:
    key = lines.partition(":")[0]
    base = "".join(line for line in SERVICE.splitlines(keepends=True) if not line.startswith(f"  {key}:"))
    put("apps/service.yaml", f"{base}  {lines}\n")
    assert not load(platform).findings


def test_comments_line_ends_and_byte_order_mark_are_silent(platform: Path, put: Put) -> None:
    text = "\ufeff# yes: 0777 &x *y\n" + JOB.replace("\n", " # on\n").replace("\n", "\r\n")
    put("apps/job.yaml", text)
    assert not load(platform).findings


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One platform for all examples of a property."""
    root = tmp_path_factory.mktemp("shared") / "platform"
    shutil.copytree(BAD / "platform", root)
    return root


def _is_survived(root: Path, raw: bytes) -> None:
    """The loader returns, and its findings are within the file."""
    (root / "apps/x.yaml").write_bytes(raw)
    for finding in load(root).findings:
        if finding.source and finding.source.file == "apps/x.yaml":
            assert 1 <= finding.source.line <= len(raw.splitlines()) + 1


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_loader_raise(shared: Path, raw: bytes) -> None:
    _is_survived(shared, raw)


_FIELDS = sorted({field for model in KINDS.values() for field, _ in homes(model)})
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6)
    | st.sampled_from(["prod", "h100", "search", "1g.10gb", "5%", "10m", "9" * 30 + "d", "٣m", "120/s", "/a", ".."]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(_FIELDS) | st.text(max_size=4), inner, max_size=6),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(KINDS)), _VALUES, st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=8))
def test_no_structure_makes_the_loader_raise(shared: Path, kind: str, metadata: object, spec: object) -> None:
    document = {"kind": kind, "metadata": metadata, "spec": spec}
    raw = (VERSION + yaml.safe_dump(document, allow_unicode=True)).encode("utf-8", "replace")
    _is_survived(shared, raw)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_change_of_a_spec_makes_the_loader_raise(shared: Path, data: st.DataObject) -> None:
    """Real specs with values swapped, and lines dropped, doubled or cut."""
    pieces = (JOB + "---\n" + SERVICE + "---\n" + (BAD / "platform/clusters/prod.yaml").read_text()).splitlines(
        keepends=True
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        line = pieces[at]
        pieces[at] = data.draw(
            st.sampled_from(
                ["", line + line, line[: len(line) // 2], "  " + line, "\t" + line, line.partition(":")[0] + ":\n"]
            )
            | st.text(max_size=8).map(lambda text, line=line: f"{line.partition(':')[0]}: {text}\n")  # type: ignore[misc]
        )
    raw = "".join(pieces).encode("utf-8", "replace")
    _is_survived(shared, raw)


def test_an_empty_key_before_the_one_that_was_meant_is_one_mistake(platform: Path, put: Put) -> None:
    put("apps/a.yaml", JOB.replace("spec:\n", "spec:\nspec:\n"))
    assert [finding.code for finding in load(platform).findings] == ["SPC108"]
    put("apps/a.yaml", JOB.partition("spec:\n")[0] + "spec:\n")
    assert [finding.code for finding in load(platform).findings] == ["SPC133"]


def test_a_misspelt_api_version_is_one_mistake(platform: Path, put: Put) -> None:
    put("apps/a.yaml", JOB.replace("apiVersion:", "apiversion:"))
    [finding] = load(platform).findings
    assert finding.code == "SPC131"
    assert "did you mean apiVersion?" in finding.message
    put("apps/a.yaml", JOB.partition("\n")[2])
    assert [finding.code for finding in load(platform).findings] == ["SPC122"]
