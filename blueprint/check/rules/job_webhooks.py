"""What the webhooks of training operators refuse in a job, and nothing else looks at.

Sources: training-operator v1.9.3 pkg/webhooks/*; jobset v0.12.0 pkg/webhooks/jobset_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.graph import Graph
from blueprint.check.rules.say import one_of, say
from blueprint.check.shapes import known, mapping, maps, number, placeholder, text, texts
from blueprint.finding import Finding
from blueprint.objects import Manifest

#: Kind → the field with its roles, and the name that one container of each role must have.
_CONTAINERS = {
    "PyTorchJob.kubeflow.org": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob.kubeflow.org": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob.kubeflow.org": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob.kubeflow.org": ("paddleReplicaSpecs", "paddle"),
    "JAXJob.kubeflow.org": ("jaxReplicaSpecs", "jax"),
}
_SINGLE = frozenset({"Master"})
_JOBSET = "JobSet.jobset.x-k8s.io"


def roles(graph: Graph) -> Iterator[Finding]:
    """KQ117: a role without the container that the operator looks for, or with more than one master."""
    for kind, (field, wanted) in _CONTAINERS.items():
        for manifest in graph.kind(kind):
            for role, body in mapping(mapping(manifest.body.get("spec")).get(field)).items():
                spec = mapping(mapping(mapping(body).get("template")).get("spec"))
                names = [text(container.get("name")) for container in maps(spec.get("containers"))]
                path = f"spec.{field}.{role}"
                if names and wanted not in names and not any(map(placeholder, names)):
                    message = f"no container of {role} is called {wanted}: the operator's webhook refuses the job"
                    yield say("KQ117", manifest, message, f"{path}.template.spec.containers", f"name: {wanted}")
                replicas = number(mapping(body).get("replicas"), 1)
                if role in _SINGLE and replicas != 1:
                    message = f"{replicas} replicas of {role}: the operator's webhook takes 1"
                    yield say("KQ117", manifest, message, f"{path}.replicas", "replicas: 1, and more workers")


def jobs_of_a_set(graph: Graph) -> Iterator[Finding]:
    """KQ117: a JobSet that names replicated jobs which it does not have, or not yet."""
    for manifest in graph.kind(_JOBSET):
        spec = mapping(manifest.body.get("spec"))
        rows = maps(spec.get("replicatedJobs"))
        names = [text(row.get("name")) for row in rows]
        if not rows or any(map(placeholder, names)):
            continue
        for index, row in enumerate(rows):
            for number_, on in enumerate(maps(row.get("dependsOn"))):
                name = known(on.get("name"))
                if name and name not in names[:index]:
                    where = "stands behind it" if name in names else "is not there"
                    message = f"{names[index]} depends on {name}, which {where}: the webhook refuses the JobSet"
                    path = f"spec.replicatedJobs[{index}].dependsOn[{number_}].name"
                    yield say("KQ117", manifest, message, path, "name a job that is listed before")
        yield from _targets(manifest, names)


def _targets(manifest: Manifest, names: list[str]) -> Iterator[Finding]:
    spec = mapping(manifest.body.get("spec"))
    lists = {"spec.successPolicy": mapping(spec.get("successPolicy"))}
    rules = maps(mapping(spec.get("failurePolicy")).get("rules"))
    lists |= {f"spec.failurePolicy.rules[{index}]": rule for index, rule in enumerate(rules)}
    for path, body in lists.items():
        for index, name in enumerate(texts(body.get("targetReplicatedJobs"))):
            if name and name not in names and not placeholder(name):
                message = f"the JobSet has no replicated job {name}: the webhook refuses it"
                yield say("KQ117", manifest, message, f"{path}.targetReplicatedJobs[{index}]", one_of(names))


RULES = (roles, jobs_of_a_set)
TREE = ()
