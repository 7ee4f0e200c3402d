"""Services that two specs need under one name, those among them that a controller makes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.finding import Finding
from blueprint.spec.load import load
from tests.spec.conftest import JOB, SERVICE

Put = Callable[[str, str | bytes], Path]


def _named(text: str, name: str, more: str = "") -> str:
    first, _, rest = text.partition("metadata: {name: ")
    return f"{first}metadata: {{name: {name}}}{rest.partition('}')[2]}{more}"


def _said(platform: Path) -> list[Finding]:
    return [finding for finding in load(platform).findings if finding.code == "SPC225"]


TRAINJOB = "  api: TrainJob\n"
CANARY = "  slo: {availability: 99.9}\n  rollout: {}\n"


def test_the_pods_of_a_train_job_have_a_service(platform: Path, put: Put) -> None:
    put("apps/a.yaml", _named(SERVICE, "chat"))
    put("apps/b.yaml", _named(JOB, "chat", TRAINJOB))
    [finding] = _said(platform)
    assert finding.message == "Service search/chat is needed twice: by service chat and by the pods of TrainJob chat"
    assert (str(finding.source), finding.path) == ("apps/b.yaml:3:12", "metadata.name")
    assert "rename" in finding.fix


def test_a_pytorch_job_or_another_name_is_none_of_it(platform: Path, put: Put) -> None:
    put("apps/a.yaml", _named(SERVICE, "chat"))
    put("apps/b.yaml", _named(JOB, "chat"))
    assert not _said(platform)
    put("apps/b.yaml", _named(JOB, "chats", TRAINJOB))
    assert not _said(platform)


def test_the_groups_of_a_model_have_a_service(platform: Path, put: Put) -> None:
    wide = SERVICE.replace("memory: 96Gi}", "memory: 96Gi, tensorParallel: 2, nodes: 2}")
    assert wide != SERVICE
    put("apps/a.yaml", _named(wide, "deep"))
    put("apps/b.yaml", _named(SERVICE, "deep-group"))
    [finding] = _said(platform)
    assert "by the groups of deep and by service deep-group" in finding.message
    put("apps/a.yaml", _named(SERVICE, "deep"))
    assert not _said(platform)


@pytest.mark.parametrize(("rollout", "count"), [(CANARY, 1), ("", 0)])
def test_a_canary_has_a_service(platform: Path, put: Put, rollout: str, count: int) -> None:
    put("apps/a.yaml", _named(SERVICE, "chat", rollout))
    put("apps/b.yaml", _named(SERVICE, "chat-canary"))
    said = [finding.message for finding in _said(platform)]
    assert said == ["Service search/chat-canary is rendered twice, by chat and chat-canary"] * count
