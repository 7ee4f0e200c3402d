"""Credentials in specs are told, and never repeated."""

from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.finding import Finding, Severity
from blueprint.spec.load import load
from tests.spec.conftest import JOB, SERVICE, VERSION

Put = Callable[[str, str | bytes], Path]
PASSWORD = "correct-horse-battery"
TOKEN = "hf" + "_" + "aB3" * 11 + "x"


def _one(platform: Path, secret: str) -> Finding:
    [finding] = load(platform).findings
    assert secret not in repr(finding)
    return finding


@pytest.mark.parametrize(
    ("value", "severity"), [(TOKEN, Severity.ERROR), (PASSWORD, Severity.WARNING)], ids=["form", "name"]
)
def test_a_variable_holds_no_credential(platform: Path, put: Put, value: str, severity: Severity) -> None:
    put("apps/a.yaml", f"{JOB}  env: {{HF_TOKEN: {value}}}\n")
    finding = _one(platform, value)
    assert (finding.code, finding.severity, finding.path) == ("SPC226", severity, "spec.env.HF_TOKEN")


def test_an_argument_holds_no_credential(platform: Path, put: Put) -> None:
    put("apps/a.yaml", SERVICE.replace("engine: {", f'engine: {{args: ["--hf-token={TOKEN}"], '))
    finding = _one(platform, TOKEN)
    assert (finding.code, finding.path) == ("SPC226", "spec.engine.args[0]")


@pytest.mark.parametrize("value", ["$(HF)", "/run/secrets/token", "true", "${TOKEN}"])
def test_what_refers_to_one_is_none(platform: Path, put: Put, value: str) -> None:
    put("apps/a.yaml", f'{JOB}  env: {{HF_TOKEN: "{value}"}}\n')
    assert not load(platform).findings


def test_the_address_of_a_repository_holds_no_password(platform: Path) -> None:
    [file] = (platform / "argocd").iterdir()
    url = f"https://bot:{PASSWORD}@git.example.com/p.git"
    file.write_text(f"{VERSION}kind: Delivery\nmetadata: {{name: platform}}\nspec: {{repository: {{url: '{url}'}}}}\n")
    finding = _one(platform, PASSWORD)
    assert (finding.code, finding.path) == ("SPC136", "spec.repository.url")
    assert "password" in finding.message
