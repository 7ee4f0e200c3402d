"""Material that projects publish: whatever rules call certain there was looked at, one by one.

The files are read from the Go module cache when the test runs; a module that is not there is left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from blueprint.check.read import read
from blueprint.check.rules import across
from blueprint.finding import Confidence, Finding, Severity

FAMILIES = ("ARG", "WAV", "REF", "DRF", "IMG", "BAK", "UPG", "RBA", "TEN", "POL")

FOLDERS = (
    "sigs.k8s.io/kueue@*/config",
    "sigs.k8s.io/jobset@*/config",
    "sigs.k8s.io/lws@*/docs",
    "sigs.k8s.io/gateway-api@*/examples",
    "github.com/argoproj/argo-rollouts@*/examples",
    "github.com/argoproj/argo-rollouts@*/docs",
    "github.com/argoproj/argo-cd/v3@*/examples",
    "github.com/argoproj/argo-cd/v3@*/applicationset/examples",
    "github.com/argoproj/argo-cd/v3@*/test/e2e/testdata",
    "github.com/argoproj/argo-cd/v3@*/docs",
    "github.com/kubeflow/training-operator@*/examples",
    "github.com/kubeflow/trainer/v2@*/examples",
    "github.com/kedacore/keda/v2@*/config",
    "github.com/kyverno/kyverno@*/test/conformance",
    "github.com/kyverno/kyverno@*/test/cli",
    "github.com/open-policy-agent/gatekeeper/v3@*/demo",
    "github.com/open-policy-agent/gatekeeper/v3@*/config",
    "github.com/open-policy-agent/gatekeeper/v3@*/test",
    "github.com/prometheus-operator/prometheus-operator@*/example",
    "github.com/vmware-tanzu/velero@*/examples",
)


@cache
def modules() -> Path:
    """The Go module cache."""
    environment = os.environ | {"GOWORK": "off"}
    done = subprocess.run(["go", "env", "GOMODCACHE"], env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def reviewed(finding: Finding) -> bool:
    """Whether a finding is one that was looked at."""
    rows = yaml.safe_load(Path(__file__).with_name("published.yaml").read_text("utf-8"))
    file = finding.source.file if finding.source else ""
    return any(row["code"] == finding.code and (row["file"] == "*" or file.endswith(row["file"])) for row in rows)


def sure(folder: Path) -> Iterator[Finding]:
    """What is an error with certainty, in the families of this list."""
    for finding in across(read([folder]).manifests):
        certain = finding.severity is Severity.ERROR and finding.confidence is Confidence.CERTAIN
        if certain and finding.code[:3] in FAMILIES:
            yield finding


@pytest.mark.parametrize("pattern", FOLDERS)
def test_nothing_certain_that_was_not_looked_at(pattern: str) -> None:
    folders = sorted(modules().glob(pattern))
    if not folders:
        pytest.skip(f"no {pattern} in the module cache")
    for folder in folders:
        assert [finding for finding in sure(folder) if not reviewed(finding)] == []
