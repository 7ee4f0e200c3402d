"""Objects to draw: a rendered platform, and queues in any number."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from blueprint.check.parse import Reading
from blueprint.check.read import read, read_bytes
from blueprint.pipeline import render_platform

REPOSITORY = Path(__file__).parents[2]


@cache
def reference() -> Reading:
    with TemporaryDirectory() as folder:
        render_platform(REPOSITORY, Path(folder, "rendered"))
        return read(["rendered"], base=Path(folder))


def queues(count: int, flavors: int = 2) -> Reading:
    """A cohort for every ten queues, and a node for every flavor."""
    documents = []
    for number in range(flavors):
        documents.append(
            f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {{name: flavor-{number}}}\n"
            f"spec: {{nodeLabels: {{pool: p{number}}}}}\n"
        )
        documents.append(
            f"apiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}, labels: {{pool: p{number}}}}}\n"
            'status: {allocatable: {nvidia.com/gpu: "8", cpu: "64"}, conditions: [{type: Ready, status: "True"}]}\n'
        )
    for number in range(count):
        rows = "".join(
            f"    - {{name: flavor-{each}, resources: [{{name: nvidia.com/gpu, nominalQuota: {number % 7}}}]}}\n"
            for each in range(flavors)
        )
        documents.append(
            f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: team-{number:03}-queue}}\n"
            f"spec:\n  cohortName: cohort-{number // 10}\n  namespaceSelector: {{}}\n"
            f"  resourceGroups:\n  - coveredResources: [nvidia.com/gpu]\n    flavors:\n{rows}"
        )
    reading = Reading()
    read_bytes("---\n".join(documents).encode(), "queues.yaml", reading)
    assert not reading.findings
    return reading
