"""One wrong name or value in a good platform is one finding, where it was most likely made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blueprint.finding import Severity
from blueprint.new import FOLDERS, examples
from blueprint.spec.load import load

CLUSTER, TEAM, JOB, SERVICE = (
    "clusters/prod-a.yaml",
    "apps/chat/team.yaml",
    "apps/search-ai/llama3-8b-sft.yaml",
    "apps/chat/chat-70b.yaml",
)

#: The file, what is written there, what is written instead, the code and line of the finding, and its words.
SLIPS = [
    (CLUSTER, "name: prod-a", "name: prod-b", "SPC202", 4, "nothing names prod-b (Cluster), and 20 places name prod-a"),
    (CLUSTER, "name: prod-a", "name: Prod-A", "SPC136", 4, "not a name"),
    (TEAM, "name: chat\n", "name: chatt\n", "SPC203", 4, "did you mean chat?"),
    (TEAM, "name: chat\n", "name: Chat\n", "SPC136", 4, "not a name"),
    (CLUSTER, "- name: a100-serve", "- name: a100-served", "SPC204", 30, "5 places name a100-serve"),
    (TEAM, "pool: a100-serve, gpus: 56", "pool: a100-srve, gpus: 56", "SPC204", 13, "did you mean a100-serve?"),
    ("apps/chat/assist-8b.yaml", "pool: a100-serve", "pool: a100-srve", "SPC204", 13, "on prod-a, preprod"),
    (TEAM, "profile: 1g.10gb, gpus: 24", "profile: 1g.10g, gpus: 24", "SPC205", 14, "did you mean 1g.10gb?"),
    (CLUSTER, "layout: {1g.10gb: 2", "layout: {1g.11gb: 2", "SPC205", 14, "also in apps/chat/guard-1b.yaml:13:26"),
    ("apps/search-ai/team.yaml", "{cluster: prod-a, pool: h100-train", "{cluster: prod-aa, pool: h100-train", "SPC202",
     11, "did you mean prod-a?"),
    (JOB, "clusters: [prod-a, preprod]", "clusters: [prod-a, preprd]", "SPC202", 7, "did you mean preprod?"),
    (SERVICE, "team: chat", "team: chats", "SPC203", 6, "did you mean chat?"),
    ("argocd/delivery.yaml", "[[preprod], [prod-a]]", "[[preprod], [prod-b]]", "SPC202", 11, "did you mean prod-a?"),
    ("argocd/delivery.yaml", "[[preprod], [prod-a]]", "[preprod, prod-a]", "SPC133", 11, "and 1 more entry"),
    (CLUSTER, "{cilium: 1.20.2}", "{prometheusOperator: null}", "SPC214", 22, "which prod-a does not have (also in"),
    (JOB, "path: /data/sft,", "path: /checkpoints,", "SPC137", 19, "where the checkpoints are"),
    (JOB, "path: /data/sft,", "path: /dev/shm,", "SPC137", 19, "where shared memory is"),
    (JOB, "path: /data/sft,", "path: /,", "SPC137", 19, "where the whole image is"),
    (JOB, "{name: sft, claim", "{name: tmp, claim", "SPC137", 19, "every run has a volume called tmp"),
    (JOB, "checkpoint: {path: /checkpoints,", "checkpoint: {path: /tmp/,", "SPC137", 20, "where scratch space is"),
    (JOB, 'env: {HF_HUB_OFFLINE: "1",', 'env: {"HF=OFFLINE": "1",', "SPC136", 16, "not the name of a variable"),
    (JOB, "command: [torchrun,", 'command: ["",', "SPC135", 14, "empty text"),
    (SERVICE, "[5%, 20%, 50%]", "[5, 20, 50]", "SPC136", 24, "and 2 more entries"),
    (SERVICE, "target: 8}\n  replicasOn", "target: -8}\n  replicasOn", "SPC137", 16, "above zero"),
    (SERVICE, "traffic: {timeout: 10m}", "traffic: {timeout: 0s}", "SPC137", 27, "at least 1s"),
    (SERVICE, "pause: 10m", "pause: 0s", "SPC137", 25, "at least 1s"),
    (TEAM, '{group: "oidc:support", role: viewer}', '{group: "", role: viewer}', "SPC135", 10, "empty text"),
    (TEAM, '"oidc:support", role: viewer', '"oidc:chat", role: developer', "SPC212", 10, "second time"),
    (CLUSTER, "value: training}]", "value: training}, {key: nvidia.com/gpu}]", "SPC212", 15, "second time"),
    (CLUSTER, '["oidc:platform-admins"]', '[""]', "SPC135", 81, "empty text"),
    (JOB, "gpus: 2\n", "nodes: 100\n  gpus: 8\n", "SPC224", 10, "all 16 nodes of h100-train on prod-a have 128"),
    (CLUSTER, "    keep: 90d", '    keep: 90d\n    schedule: "61 2 * * *"', "SPC137", 81, "is not between 0 and 59"),
    (CLUSTER, "    keep: 90d", "    keep: 90d\n    schedule: every night", "SPC137", 81, "it has 2 fields, not 5"),
    (CLUSTER, "{cilium: 1.20.2}", "{keda: false}", "SPC136", 68, "not a version: false"),
    (CLUSTER, "{cilium: 1.20.2}", "{cilium: v1.20.2}", "SPC136", 68, "write 1.20.2"),
    (SERVICE, "vllm: 0.33.0", "vllm: 0.33", "SPC136", 11, "write three numbers, such as"),
    (SERVICE, "memory: 200Gi", "memory: 200gb", "SPC136", 13, "write 200Gi"),
    (JOB, "spec:\n", "<<<<<<< HEAD\nspec:\n", "SPC103", 5, "a Git merge conflict"),
    (CLUSTER, "metadata:\n  name: prod-a", "metadata: {}", "SPC132", 3, "name is missing in metadata"),
    (CLUSTER, "metadata:\n  name: prod-a", "metadata: prod-a", "SPC133", 3, "a mapping is expected"),
    (CLUSTER, "apiVersion: platform.blueprint/v1alpha1", "apiVersion:", "SPC122", 1, "apiVersion is missing"),
    (TEAM, "{cluster: prod-a, pool: a100-serve, gpus: 56, lend: 0}", "{}", "SPC132", 13, "and so are "),
    (CLUSTER, "nodes: 2\n      cpu: 120", "nodes: 1\n      cpu: 120", "SPC210", 39, "; "),
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("good")
    for folder in FOLDERS:
        shutil.copytree(examples()["reference"] / folder, root / folder)
    assert not load(root).findings
    return root


@pytest.mark.parametrize(("file", "old", "new", "code", "line", "says"), SLIPS, ids=lambda value: str(value)[:24])
def test_a_slip_is_told_once(
    good: Path, tmp_path: Path, file: str, old: str, new: str, code: str, line: int, says: str
) -> None:
    platform = tmp_path / "platform"
    shutil.copytree(good, platform)
    text = (platform / file).read_text()
    assert old in text
    (platform / file).write_text(text.replace(old, new, 1))

    [finding] = load(platform).findings

    assert finding.source is not None
    named = file if code != "SPC214" else "apps/chat/assist-8b.yaml"
    named = TEAM if "layout" in old else named
    assert (finding.code, finding.source.file, finding.source.line) == (code, named, line)
    assert says in finding.message
    assert finding.severity is not Severity.NOTE


def test_two_wrong_names_are_two_findings(good: Path, tmp_path: Path) -> None:
    """Only what follows from a mistake is silent, not the mistake beside it."""
    platform = tmp_path / "platform"
    shutil.copytree(good, platform)
    for file, old, new in ((SERVICE, "team: chat", "team: chats"), (JOB, "team: search-ai", "team: serch-ai")):
        text = (platform / file).read_text()
        (platform / file).write_text(text.replace(old, new, 1))
    assert [finding.code for finding in load(platform).findings] == ["SPC203", "SPC203"]


def test_a_quota_that_is_not_there_is_told_of_every_run(good: Path, tmp_path: Path) -> None:
    platform = tmp_path / "platform"
    shutil.copytree(good, platform)
    lines = (platform / TEAM).read_text().splitlines(keepends=True)
    (platform / TEAM).write_text("".join(line for line in lines if "a100-serve" not in line))
    found = load(platform).findings
    assert [finding.code for finding in found] == ["SPC206"] * 3
    assert len({finding.source for finding in found}) == 3
