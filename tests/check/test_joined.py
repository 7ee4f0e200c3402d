"""One fault is one finding; what is another fault stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.check.config import Config
from blueprint.check.run import check

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: fetch, namespace: web}
spec:
  volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]
  containers:
"""
IMAGE = "registry.example.com/fetch@sha256:" + "b" * 64
QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1, borrowingLimit: 1}]}]
"""


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{POD}  - {{name: fetch, imagee: '{IMAGE}'}}\n", ["SCH104"]),
        (f"{POD}  - {{name: fetch, comand: [x]}}\n", ["NAT102", "SCH104"]),
        (f"{POD}  - {{name: one, imagee: '{IMAGE}'}}\n  - {{name: two}}\n", ["NAT102", "SCH104"]),
        (
            f"{POD}  - {{name: fetch, image: '{IMAGE}', "
            "volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]}\n",
            ["NAT104"],
        ),
        (
            f"{POD}  - {{name: fetch, image: '{IMAGE}', env: [{{name: A, value: w}}, {{name: A, value: z}}], "
            "volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]}\n",
            ["NAT104", "SCH110"],
        ),
        (QUEUE, ["KQ123"]),
        (QUEUE.replace("nominalQuota: 1, borrowingLimit: 1", "nominalQuota: -1, borrowingLimit: 1"), ["KQ123"] * 2),
    ],
    ids=["misspelt image", "no image", "both", "mount twice", "mount and variable twice", "no cohort", "below zero"],
)
def test_what_is_told(tmp_path: Path, text: str, codes: list[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    told = [finding.code for finding in check([str(file)], Config()).findings if finding.fails or "SCH" in finding.code]
    assert sorted(told) == codes
