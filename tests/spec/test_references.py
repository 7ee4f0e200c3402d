"""What specs say of each other, where the table of bad specs does not reach."""

from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.finding import Finding, Severity
from blueprint.spec.load import load
from tests.spec.conftest import JOB, SERVICE, VERSION

Put = Callable[[str, str | bytes], Path]


def _delivery(promotion: str) -> str:
    return (
        f"{VERSION}kind: Delivery\nmetadata: {{name: platform}}\n"
        f"spec:\n  repository: {{url: https://git.example.com/p.git}}\n  promotion: {promotion}\n"
    )


def _team(name: str, quotas: str) -> str:
    return f"{VERSION}kind: Team\nmetadata: {{name: {name}}}\nspec:\n  members: [{{group: g}}]\n  quotas: [{quotas}]\n"


def _found(platform: Path) -> list[tuple[str, str]]:
    return [(finding.code, str(finding.source)) for finding in load(platform).findings]


def test_a_cluster_left_out_of_promotion_is_a_warning(platform: Path, put: Put) -> None:
    put("argocd/delivery.yaml", _delivery("[[prod]]"))
    [finding] = load(platform).findings
    assert (finding.code, finding.severity, str(finding.source)) == (
        "SPC213",
        Severity.WARNING,
        "argocd/delivery.yaml:6:3",
    )
    assert "stage" in finding.message


def test_an_order_that_reaches_all_clusters_is_silent(platform: Path, put: Put) -> None:
    put("argocd/delivery.yaml", _delivery("[[stage], [prod]]"))
    assert not load(platform).findings


def test_a_cluster_promoted_to_twice(platform: Path, put: Put) -> None:
    put("argocd/delivery.yaml", _delivery("[[stage], [prod, stage]]"))
    assert _found(platform) == [("SPC212", "argocd/delivery.yaml:6:31")]


def test_more_promised_than_there_is_names_who(platform: Path, put: Put) -> None:
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: h100, gpus: 17}"))
    [finding] = load(platform).findings
    assert (finding.code, finding.severity, str(finding.source)) == (
        "SPC210",
        Severity.WARNING,
        "clusters/prod.yaml:9:7",
    )
    assert finding.message == "33 GPUs of h100 are promised (search 16, vision 17), there are 32"


def test_all_that_there_is_may_be_promised(platform: Path, put: Put) -> None:
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: h100, gpus: 16}"))
    assert not load(platform).findings


def test_slices_are_counted_by_profile(platform: Path, put: Put) -> None:
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: slices, profile: 1g.10gb, gpus: 16}"))
    assert not load(platform).findings
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: slices, profile: 2g.20gb, gpus: 17}"))
    [finding] = load(platform).findings
    assert finding.message == "17 slices 2g.20gb of slices are promised (vision 17), there are 16"


def test_a_quota_of_another_profile_is_none(platform: Path, put: Put) -> None:
    put("apps/chat.yaml", SERVICE.replace("pool: a100", "pool: slices, profile: 2g.20gb"))
    [finding] = load(platform).findings
    assert finding.code == "SPC206"
    assert "slices (2g.20gb)" in finding.message


def test_clusters_without_quota_are_said_together(platform: Path, put: Put) -> None:
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: a100, gpus: 1}"))
    put("apps/job.yaml", JOB.replace("search", "vision").replace("[prod]", "[prod, stage]"))
    [finding] = load(platform).findings
    assert finding.code == "SPC206"
    assert "on prod, stage" in finding.message


def test_a_namespace_of_the_gateway_is_reserved(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", text + "  gateway: {name: edge/models, domain: models.example.com}\n")
    put("apps/edge.yaml", _team("edge", "{cluster: prod, pool: h100, gpus: 1}"))
    assert [finding.code for finding in load(platform).findings] == ["SPC208"]


def test_names_that_only_look_reserved_are_silent(platform: Path, put: Put) -> None:
    for name in ("kubernetes-research", "default-team", "argocd-users"):
        put(f"apps/{name}.yaml", _team(name, "{cluster: prod, pool: h100, gpus: 1}"))
    assert not load(platform).findings


def test_the_same_name_in_two_kinds_is_silent(platform: Path, put: Put) -> None:
    put("apps/a.yaml", JOB.replace("sft", "search") + "---\n" + SERVICE.replace("chat", "search"))
    assert not load(platform).findings


def test_a_third_of_a_name_points_to_the_first(platform: Path, put: Put) -> None:
    put("apps/a.yaml", "---\n".join([JOB] * 3))
    assert _found(platform) == [("SPC201", "apps/a.yaml:13:12"), ("SPC201", "apps/a.yaml:23:12")]


def test_policies_need_their_engine_on_every_cluster_they_hold_on(platform: Path, put: Put) -> None:
    def policy(extra: str) -> Finding | None:
        rule = '  match: {resources: [pods]}\n  rules: [{expression: "true", message: a}]\n'
        put(
            "policies/p.yaml",
            f"{VERSION}kind: Policy\nmetadata: {{name: p}}\nspec:\n  description: d\n{rule}  {extra}\n",
        )
        findings = load(platform).findings
        assert len(findings) <= 1
        return findings[0] if findings else None

    assert policy("engines: [ValidatingAdmissionPolicy, Kyverno]") is None
    assert policy("engines: [Gatekeeper]\n  clusters: [prod]") is None
    finding = policy("engines: [Gatekeeper]")
    assert finding is not None
    assert (finding.code, finding.path, finding.fails) == ("SPC214", "spec.engines[0]", True)
    assert "stage" in finding.message


def test_an_engine_that_is_missing_is_a_note_where_another_enforces(platform: Path, put: Put) -> None:
    rule = 'match: {resources: [pods]}\n  rules: [{expression: "true", message: a}]'
    put(
        "policies/p.yaml",
        f"{VERSION}kind: Policy\nmetadata: {{name: p}}\nspec:\n  description: d\n  {rule}\n"
        "  engines: [Kyverno, Gatekeeper]\n",
    )
    [finding] = load(platform).findings
    assert (finding.code, finding.path, finding.fails) == ("SPC217", "spec.engines[1]", False)


def test_a_backup_without_snapshots_says_what_it_misses(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", text + "  backup: {bucket: b}\n")
    [finding] = load(platform).findings
    assert (finding.code, finding.fails) == ("SPC218", False)
    put("clusters/prod.yaml", text + "  backup: {bucket: b}\n  storage: {snapshots: fast}\n")
    assert not load(platform).findings


def test_services_need_what_they_ask_for(platform: Path, put: Put) -> None:
    on_stage = SERVICE.replace("[prod]", "[stage]")
    for line, component in (
        ("rollout: {canary: [5%]}\n  slo: {errors: 1%}", "argoRollouts"),
        ("replicas: {max: 2, scaleOn: request-rate, target: 6/s}", "keda"),
    ):
        put("apps/chat.yaml", f"{on_stage}  {line}\n")
        [finding] = load(platform).findings
        assert finding.code == "SPC214"
        assert f"needs {component}" in finding.message
    put("apps/chat.yaml", on_stage.replace("pool: a100", "pool: a100, tensorParallel: 2, nodes: 2"))
    [finding] = load(platform).findings
    assert "needs lws" in finding.message


def test_cpu_runs_need_no_gpus(platform: Path, put: Put) -> None:
    cluster = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", cluster.replace("purpose: system", "purpose: shared"))
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: system, gpus: 0, cpu: 16}"))
    put("apps/job.yaml", JOB.replace("search", "vision").replace("pool: h100", "pool: system\n  gpus: 0"))
    assert not load(platform).findings


def test_a_pool_of_the_platform_is_no_place_for_a_team(platform: Path, put: Put) -> None:
    put("apps/vision.yaml", _team("vision", "{cluster: prod, pool: system, gpus: 0, cpu: 16}"))
    [finding] = load(platform).findings
    assert (finding.code, finding.path, finding.fails) == ("SPC221", "spec.quotas[0].pool", False)


GATEWAY = "  gateway: {domain: models.example.com}\n"


def _with_gateway(platform: Path) -> None:
    file = platform / "clusters/prod.yaml"
    file.write_text(file.read_text() + GATEWAY)


def test_a_host_leads_to_one_service(platform: Path, put: Put) -> None:
    _with_gateway(platform)
    put("apps/chat.yaml", SERVICE)
    other = SERVICE.replace("name: chat", "name: other")
    put("apps/other.yaml", other + "  traffic: {host: chat.models.example.com}\n")
    [finding] = load(platform).findings
    assert (finding.code, str(finding.source)) == ("SPC219", "apps/other.yaml:11:13")
    assert finding.message == "chat.models.example.com on prod already leads to chat"
    put("apps/other.yaml", other + "  traffic: {host: other.example.com}\n")
    assert not load(platform).findings


def test_hosts_without_a_gateway_are_nobodys(platform: Path, put: Put) -> None:
    for name in ("chat", "other"):
        put(f"apps/{name}.yaml", SERVICE.replace("name: chat", f"name: {name}") + "  traffic: {host: a.example.com}\n")
    assert not load(platform).findings


def test_checkpoints_may_be_read_as_data(platform: Path, put: Put) -> None:
    put("apps/sft.yaml", f"{JOB}  checkpoint: {{size: 1Ti}}\n")
    data = "  datasets: [{name: old, claim: sft-checkpoints, path: /old%s}]\n"
    put("apps/next.yaml", JOB.replace("name: sft", "name: next") + data % "")
    assert not load(platform).findings
    put("apps/next.yaml", JOB.replace("name: sft", "name: next") + data % ", size: 1Ti")
    assert [code for code, _ in _found(platform)] == ["SPC220"]


def test_weights_do_not_lie_among_checkpoints(platform: Path, put: Put) -> None:
    put("apps/sft.yaml", f"{JOB}  checkpoint: {{size: 1Ti}}\n")
    put("apps/chat.yaml", SERVICE.replace("claim: weights", "claim: sft-checkpoints"))
    assert [code for code, _ in _found(platform)] == ["SPC220"]


def _single(platform: Path, layout: str) -> None:
    file = platform / "clusters/prod.yaml"
    text = file.read_text()
    file.write_text(text.replace("{strategy: mixed, layout: {1g.10gb: 3, 2g.20gb: 2}}", layout))


def test_slices_of_one_kind_are_counted_once(platform: Path, put: Put) -> None:
    _single(platform, "{strategy: single, layout: {1g.10gb: 7}}")
    named, plain = (
        "{cluster: prod, pool: slices, profile: 1g.10gb, gpus: 40}",
        "{cluster: prod, pool: slices, gpus: 40}",
    )
    put("apps/vision.yaml", _team("vision", named))
    put("apps/run.yaml", JOB.replace("team: search", "team: vision").replace("pool: h100", "pool: slices"))
    assert not load(platform).findings
    put("apps/speech.yaml", _team("speech", plain))
    [finding] = load(platform).findings
    assert finding.message == "88 GPUs of slices are promised (search 8, speech 40, vision 40), there are 56"
    put("apps/speech.yaml", _team("speech", f"{plain[:-3]}1}}, {named[:-3]}1}}"))
    assert _found(platform) == [("SPC212", "apps/speech.yaml:6:52")]


def test_strategy_single_takes_one_profile(platform: Path) -> None:
    _single(platform, "{strategy: single, layout: {1g.10gb: 3, 2g.20gb: 2}}")
    [finding] = [finding for finding in load(platform).findings if finding.path.endswith("layout")]
    assert "strategy single takes one profile" in finding.message


@pytest.mark.parametrize(
    ("old", "new", "path", "words"),
    [
        ("nodes: 4", "labels: {platform.blueprint/pool: x}\n      nodes: 4", "labels", "follows from name"),
        ("product: NVIDIA-H100-80GB-HBM3", "product: NVIDIA H100", "product", "not a label value"),
        ("cpu: 180", "cpu: 0", "cpu", "above zero"),
        ("memory: 1900Gi", "memory: 0.0Gi", "memory", "above zero"),
        ("  environment", "  backup: {bucket: ''}\n  environment", "bucket", "bucket"),
        ("  environment", "  backup: {bucket: b, keep: 0s}\n  environment", "keep", "1h at least"),
        ("  environment", "  monitoring: {scrapeInterval: 0s}\n  environment", "scrapeInterval", "1s at least"),
    ],
)
def test_clusters_that_cannot_be(platform: Path, old: str, new: str, path: str, words: str) -> None:
    file = platform / "clusters/prod.yaml"
    file.write_text(file.read_text().replace(old, new, 1))
    found = [finding for finding in load(platform).findings if finding.severity is Severity.ERROR]
    assert any(path in finding.path and words in f"{finding.path} {finding.message}" for finding in found)


@pytest.mark.parametrize("gpus", [8, 9])
def test_a_pod_may_fill_a_node_and_no_more(gpus: int, platform: Path, put: Put) -> None:
    put("apps/job.yaml", JOB + f"  gpus: {gpus}\n")
    assert [code for code, _ in _found(platform)] == (["SPC223"] if gpus > 8 else [])


def test_a_pod_too_large_on_two_clusters_is_said_once(platform: Path, put: Put) -> None:
    put("apps/job.yaml", JOB.replace("[prod]", "[prod, stage]") + "  gpus: 16\n")
    assert [code for code, _ in _found(platform)] == ["SPC223"]


def test_a_group_of_pods_is_judged_by_the_pod(platform: Path, put: Put) -> None:
    put("apps/chat.yaml", SERVICE.replace("pool: a100", "pool: a100, tensorParallel: 8, pipelineParallel: 2, nodes: 2"))
    assert not load(platform).findings


def test_slices_of_one_profile_are_counted_as_the_node_offers_them(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    put("clusters/prod.yaml", text.replace("{strategy: mixed, layout: {1g.10gb: 3, 2g.20gb: 2}}",
                                           "{strategy: single, layout: {1g.10gb: 7}}"))  # fmt: skip
    put("apps/team.yaml", _team("search", "{cluster: prod, pool: slices, gpus: 56}"))
    job = JOB.replace("pool: h100", "pool: slices")
    put("apps/job.yaml", job + "  gpus: 56\n")
    assert not load(platform).findings
    put("apps/job.yaml", job + "  gpus: 57\n")
    assert [code for code, _ in _found(platform)] == ["SPC223"]


def test_racks_of_two_blocks_and_of_two_pools_may_have_one_name(platform: Path, put: Put) -> None:
    text = (platform / "clusters/prod.yaml").read_text()
    racks = "racks: [{block: block-1, rack: rack-1, nodes: 1}, {block: block-2, rack: rack-1, nodes: 1}]"
    put(
        "clusters/prod.yaml",
        text.replace("purpose: serving\n      nodes: 2", f"purpose: serving\n      {racks}\n      nodes: 2"),
    )
    assert not load(platform).findings


def test_one_claim_has_one_size(platform: Path, put: Put) -> None:
    small = SERVICE.replace("size: 1Ti", "size: 500Gi").replace("name: chat", "name: other")
    put("apps/a.yaml", SERVICE)
    put("apps/b.yaml", small)
    [finding] = load(platform).findings
    assert (finding.code, finding.severity) == ("SPC222", Severity.WARNING)
    assert finding.source is not None and finding.source.file == "apps/b.yaml"
    assert "500Gi here and 1Ti in apps/a.yaml:" in finding.message
    for same in (
        small.replace("500Gi", "1024Gi"),
        small.replace("[prod]", "[stage]"),
        small.replace("claim: ", "claim: my-"),
    ):
        put("apps/b.yaml", same)
        assert not load(platform).findings


def test_one_name_that_could_be_meant_is_one(platform: Path, put: Put) -> None:
    put("apps/a.yaml", JOB.replace("team: search", "team: nobody"))
    [finding] = load(platform).findings
    assert (finding.code, finding.fix) == ("SPC203", "there is search")
