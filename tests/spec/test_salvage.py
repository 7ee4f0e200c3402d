"""What is wrong with the names of a spec is told beside what is wrong with its fields; nothing follows from either."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.spec.load import load
from blueprint.spec.positions import segments
from tests.spec.conftest import JOB, SERVICE, VERSION

Put = Callable[[str, str | bytes], Path]
POLICY = f"""{VERSION}kind: Policy
metadata: {{name: p}}
spec:
  description: d
  clusters: [prod]
  engines: [ValidatingAdmissionPolicy, Kyverno]
  match: {{resources: [pods]}}
  variables: [{{name: v, expression: "true"}}]
  rules: [{{expression: "true", message: m}}]
"""
RUN = (
    JOB
    + """  api: TrainJob
  nodes: 2
  placement: {required: rack, groupSize: 2}
  datasets: [{name: data, claim: corpus, path: /data, size: 1Ti}]
  checkpoint: {size: 10Gi, grace: 5m}
  env: {A: b}
"""
)
CHAT = (
    SERVICE
    + """  replicas: {min: 1, max: 2, scaleOn: waiting-requests, target: 4}
  replicasOn: {prod: {min: 1, max: 3, scaleOn: waiting-requests, target: 4}}
  slo: {errors: 1%, firstToken: {p90: 800ms}}
  rollout: {canary: [5%, 20%]}
  adapters: [{name: tuned, path: tuned}]
  traffic: {clients: [search], host: chat.example.com}
"""
)


def _told(platform: Path) -> list[tuple[str, str]]:
    return sorted((finding.code, finding.path) for finding in load(platform).findings)


NOBODY = ("SPC203", "spec.team")
HIDDEN = [
    (JOB.replace("64Gi", "64").replace("search", "nobody"), [("SPC136", "spec.memory"), NOBODY]),
    (JOB.replace("64Gi", "64").replace("h100", "h200"), [("SPC136", "spec.memory"), ("SPC204", "spec.pool")]),
    (JOB.replace("[prod]", "[prd]") + "  gpsu: 1\n", [("SPC131", "spec.gpsu"), ("SPC202", "spec.clusters[0]")]),
    (JOB.replace("h100", "claims") + "  args: 5\n", [("SPC133", "spec.args"), ("SPC206", "spec.pool")]),
    (JOB.replace("sft", "SFT").replace("search", "nobody"), [("SPC136", "metadata.name"), NOBODY]),
    (JOB.replace("search", "nobody") + "  env: {A: yes}\n", [("SPC110", "spec.env.A"), NOBODY]),
    (JOB.replace("v1alpha1", "v1").replace("search", "nobody"), [("SPC122", "apiVersion"), NOBODY]),
    (
        SERVICE.replace("a100, memory", "b100, memry"),
        [("SPC131", "spec.gpus.memry"), ("SPC132", "spec.gpus.memory"), ("SPC204", "spec.gpus.pool")],
    ),
    (
        POLICY.replace("[prod]", "[prd]").replace("pods", "Pods"),
        [("SPC136", "spec.match.resources[0]"), ("SPC202", "spec.clusters[0]")],
    ),
]


@pytest.mark.parametrize(("text", "told"), HIDDEN)
def test_a_field_hides_no_name(platform: Path, put: Put, text: str, told: list[tuple[str, str]]) -> None:
    put("apps/x.yaml", text)
    assert _told(platform) == told


def test_a_quota_hides_no_other(platform: Path, put: Put) -> None:
    team = (platform / "apps/team.yaml").read_text()
    put(
        "apps/team.yaml",
        team.replace("h100, gpus: 16", "h100, gpus: x").replace("pool: a100, gpus: 8", "pool: a1, gpus: 8", 1),
    )
    assert _told(platform) == [("SPC133", "spec.quotas[0].gpus"), ("SPC204", "spec.quotas[1].pool")]


def test_a_cluster_with_a_mistake_still_has_its_pools(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", text.replace("cpu: 180", "cpu: 180x", 1))
    put("apps/job.yaml", JOB.replace("h100", "h200"))
    assert _told(platform) == [("SPC136", "spec.nodePools[0].cpu"), ("SPC204", "spec.pool")]
    put("clusters/prod.yaml", text.replace("name: h100", "nam: h100"))
    assert _told(platform) == [("SPC131", "spec.nodePools[0].nam"), ("SPC132", "spec.nodePools[0].name")]


def test_a_name_that_an_unreadable_document_may_declare_is_not_called_missing(platform: Path, put: Put) -> None:
    put("apps/job.yaml", JOB.replace("search", "vision"))
    put("apps/vision.yaml", f"{VERSION}kind: Team\nmetadata: {{name: 'vision'\n")
    assert [code for code, _ in _told(platform)] == ["SPC103"]
    put("apps/vision.yaml", f"{VERSION}kind: Team\nmetadata: {{name: 'vision-x'\n")
    assert [code for code, _ in _told(platform)] == ["SPC103", "SPC203"]
    put("apps/vision.yaml", f"{VERSION}kind: Taem\nmetadata: {{name: vision}}\n")
    assert [code for code, _ in _told(platform)] == ["SPC121"]
    put("apps/vision.yaml", b"name: \xff")
    assert [code for code, _ in _told(platform)] == ["SPC102"]


def test_a_file_that_is_no_spec_makes_no_name_unknowable(platform: Path, put: Put) -> None:
    put("apps/job.json", "{}")
    put("apps/job.yaml", JOB.replace("search", "nobody"))
    assert sorted(code for code, _ in _told(platform)) == ["SPC123", "SPC203"]


def test_names_of_nobody_are_told_a_hundred_times_and_no_more(platform: Path, put: Put) -> None:
    quotas = "".join(f"    - {{cluster: prod, pool: p{number}, gpus: 1}}\n" for number in range(150))
    put(
        "apps/many.yaml",
        f"{VERSION}kind: Team\nmetadata: {{name: many}}\nspec:\n  members: [{{group: g}}]\n  quotas:\n{quotas}",
    )
    told = _told(platform)
    assert [code for code, _ in told].count("SPC204") == 100
    assert ("SPC113", "") in told


def _fields(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield (*path, key)
        yield from _fields(child, (*path, key))


def _related(one: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    return one[: len(other)] == other[: len(one)]


SPOILT: list[object] = [{"x": 1}, "\u00a7"]
FILES = ["apps/run.yaml", "apps/chat.yaml", "apps/team.yaml", "policies/p.yaml", "clusters/prod.yaml", "argocd/d.yaml"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_follows_from_a_mistake(platform: Path, put: Put, name: str) -> None:
    """Each field of each spec is spoilt in turn: only it is told of, or what contradicts it in the same spec."""
    (platform / "clusters/stage.yaml").unlink()
    (platform / "argocd/delivery.yaml").rename(platform / "argocd/d.yaml")
    more = {
        "clusters/prod.yaml": "  gateway: {domain: models.example.com}\n  components: {kueue: 0.17.0}\n",
        "argocd/d.yaml": "  promotion: [[prod]]\n",
    }
    for file, text in more.items():
        put(file, (platform / file).read_text() + text)
    lines = (platform / "apps/team.yaml").read_text().splitlines(keepends=True)
    put("apps/team.yaml", "".join(line for line in lines if "stage" not in line))
    put("apps/run.yaml", RUN)
    put("apps/chat.yaml", CHAT)
    put("policies/p.yaml", POLICY)
    assert _told(platform) == []

    whole = (platform / name).read_text()
    for path in _fields(yaml.safe_load(whole)):
        if path[0] in ("apiVersion", "kind", "metadata"):
            continue  # then it is another document, which others miss
        for value in SPOILT:
            spec = yaml.safe_load(whole)
            place: Any = spec
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            put(name, yaml.safe_dump(spec, allow_unicode=True))
            told = load(platform).findings
            if any(finding.code.startswith("SPC13") for finding in told):
                strays = [f for f in told if not _related(segments(f.path), path) and f.code != "SPC137"]
                assert not strays, (path, value)
