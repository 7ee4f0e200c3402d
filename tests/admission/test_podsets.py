"""Jobs of every kind become the pod sets that Kueue queues (kueue v0.17.0 pkg/controller/jobs)."""

from __future__ import annotations

import pytest

from blueprint.admission.podsets import Job, Wish, job, kinds, wish
from blueprint.finding import Ref
from tests.admission.writing import load, manifests, read

TEMPLATE = "{spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"

KINDS = {
    "AppWrapper": (
        "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: wrap}\nspec: {components: ["
        "{template: {apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, template: T}}},"
        "{template: {apiVersion: v1, kind: Service}},"
        "{template: {apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, template: T}}},"
        "{template: {apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {headGroupSpec: {template: T},"
        " workerGroupSpecs: [{replicas: 2, numOfHosts: 4, template: T}]}}}},"
        "{podSets: [{path: 'template.x[1].pods', replicas: 5}],"
        " template: {apiVersion: e/v1, kind: Own, x: [1, {pods: T}]}}]}",
        [("wrap-0", 2), ("wrap-1", 3), ("wrap-2", 1), ("wrap-3", 2), ("wrap-4", 5)],
    ),
    "Pod of a fast group": (
        "apiVersion: v1\nkind: Pod\nmetadata: {labels: {kueue.x-k8s.io/pod-group-name: g}, annotations: {"
        "kueue.x-k8s.io/pod-group-fast-admission: 'true', kueue.x-k8s.io/pod-group-total-count: '4'}}\n"
        "spec: {containers: [{name: c}]}",
        [("a8b98228", 4)],
    ),
    "Job": (
        "apiVersion: batch/v1\nkind: Job\nspec: {parallelism: 4, completions: 3, template: T}",
        [("main", 3)],
    ),
    "Job of one": ("apiVersion: batch/v1\nkind: Job\nspec: {template: T}", [("main", 1)]),
    "Job of none": ("apiVersion: batch/v1\nkind: Job\nspec: {parallelism: 0, template: T}", [("main", 0)]),
    "CronJob": (
        "apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {parallelism: 2, template: T}}}",
        [("main", 2)],
    ),
    "PyTorchJob": (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
        "spec: {pytorchReplicaSpecs: {Worker: {replicas: 3, template: T}, Master: {template: T}}}",
        [("master", 1), ("worker", 3)],
    ),
    "TFJob": (
        "apiVersion: kubeflow.org/v1\nkind: TFJob\n"
        "spec: {tfReplicaSpecs: {Worker: {replicas: 2, template: T}, Chief: {template: T}, PS: {template: T}}}",
        [("chief", 1), ("ps", 1), ("worker", 2)],
    ),
    "MPIJob": (
        "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\n"
        "spec: {mpiReplicaSpecs: {Worker: {replicas: 2, template: T}, Launcher: {template: T}}}",
        [("launcher", 1), ("worker", 2)],
    ),
    "JobSet": (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "spec: {replicatedJobs: [{name: W, replicas: 2, "
        "template: {spec: {parallelism: 4, completions: 3, template: T}}}]}",
        [("w", 6)],
    ),
    "RayJob": (
        "apiVersion: ray.io/v1\nkind: RayJob\nspec: {rayClusterSpec: {headGroupSpec: {template: T}, "
        "workerGroupSpecs: [{groupName: g, replicas: 2, numOfHosts: 4, template: T}]}}",
        [("head", 1), ("g", 8), ("submitter", 1)],
    ),
    "RayCluster": (
        "apiVersion: ray.io/v1\nkind: RayCluster\nspec: {headGroupSpec: {template: T}, "
        "workerGroupSpecs: [{groupName: g, template: T}]}",
        [("head", 1), ("g", 1)],
    ),
    "StatefulSet": ("apiVersion: apps/v1\nkind: StatefulSet\nspec: {replicas: 3, template: T}", [("main", 3)]),
    "Deployment": ("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3, template: T}", [("main", 1)] * 1),
    "LeaderWorkerSet": (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n"
        "spec: {replicas: 2, leaderWorkerTemplate: {size: 4, workerTemplate: T, leaderTemplate: T}}",
        [("leader", 1), ("worker", 3)],
    ),
    "LeaderWorkerSet without leader": (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n"
        "spec: {leaderWorkerTemplate: {size: 4, workerTemplate: T}}",
        [("main", 4)],
    ),
    "Pod": ("apiVersion: v1\nkind: Pod\nspec: {containers: []}", [("main", 1)]),
}


def read_job(text: str) -> Job:
    found = read(
        *load(
            text.replace("T}", TEMPLATE + "}")
            .replace("template: T,", f"template: {TEMPLATE},")
            .replace("workerTemplate: T,", f"workerTemplate: {TEMPLATE},")
        )
    )
    asked = job(found.manifests[-1], found.find, found.manifests)
    assert isinstance(asked, Job)
    return asked


@pytest.mark.parametrize(("text", "sets"), KINDS.values(), ids=KINDS.keys())
def test_kinds(text: str, sets: list[tuple[str, int]]) -> None:
    assert [(each.name, each.count) for each in read_job(text).podsets] == sets


def test_copies_are_queued_one_by_one() -> None:
    assert read_job(KINDS["Deployment"][0]).copies == 3
    assert read_job(KINDS["LeaderWorkerSet"][0]).copies == 2
    assert read_job(KINDS["StatefulSet"][0]).copies == 1


def test_every_kind_has_a_framework_or_is_known_without() -> None:
    from blueprint.catalog.tables import table

    without = {"CronJob.batch", "Rollout.argoproj.io", "Workload.kueue.x-k8s.io"}
    assert set(kinds()) - set(table("kueue")["frameworks"]) == without


def test_an_unknown_kind_is_not_queued() -> None:
    found = read(*load("apiVersion: v1\nkind: Service\nmetadata: {name: s}"))
    assert job(found.manifests[0], found.find) is None


def test_a_job_without_labels_takes_those_of_its_template() -> None:
    text = "apiVersion: batch/v1\nkind: Job\nspec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: q}}}}"
    assert read_job(text).labels == {"kueue.x-k8s.io/queue-name": "q"}
    own = text.replace("spec:", "metadata: {labels: {a: b}}\nspec:", 1)
    assert read_job(own).labels == {"a": "b"}


def test_a_deployment_hands_its_queue_on_and_a_rollout_does_not() -> None:
    text = (
        "apiVersion: {0}\nkind: {1}\nmetadata: {{labels: {{kueue.x-k8s.io/queue-name: q}}}}\nspec: {{template: {{}}}}"
    )
    assert read_job(text.format("apps/v1", "Deployment")).labels == {"kueue.x-k8s.io/queue-name": "q"}
    assert read_job(text.format("argoproj.io/v1alpha1", "Rollout")).labels == {}


def test_pods_of_a_group_are_counted_by_shape() -> None:
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: N, namespace: a, labels: {kueue.x-k8s.io/pod-group-name: g}}
spec: {containers: [{name: c, resources: {requests: {cpu: X}}}]}
"""
    texts = [pod.replace("N", name).replace("X", cpu) for name, cpu in (("a", "1"), ("b", "2"), ("c", "1"))]
    found = read(*(load(text)[0] for text in texts))
    asked = job(found.manifests[0], found.find, found.manifests)
    assert isinstance(asked, Job)
    assert sorted(each.count for each in asked.podsets) == [1, 2]


RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: dataset-initializer, resources: {requests: {cpu: 1}}}]}}}
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, resources: {requests: {cpu: 4}}}]}}}
"""
TRAIN = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t, namespace: a, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  runtimeRef: {name: torch}
  trainer: {numNodes: 3, resourcesPerNode: {requests: {nvidia.com/gpu: 8}}}
  runtimePatches:
  - manager: example.com/x
    trainingRuntimeSpec:
      template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {a: b}}}}}}]}}
"""


def test_a_train_job_is_its_runtime_with_its_own_numbers() -> None:
    found = read(*load(RUNTIME), *load(TRAIN))
    asked = job(found.manifests[1], found.find)
    assert isinstance(asked, Job)
    assert [(each.name, each.count) for each in asked.podsets] == [("dataset", 1), ("node", 3)]
    spec = asked.podsets[1].spec
    assert spec["nodeSelector"] == {"a": "b"}
    assert spec["containers"] == [{"name": "node", "resources": {"requests": {"nvidia.com/gpu": 8}}}]
    assert asked.labels == {"kueue.x-k8s.io/queue-name": "q"}


def test_a_runtime_without_trainer_step_keeps_its_own_count() -> None:
    found = read(*load(RUNTIME.replace("ancestor-step: trainer", "ancestor-step: other")), *load(TRAIN))
    asked = job(found.manifests[1], found.find)
    assert isinstance(asked, Job)
    assert [each.count for each in asked.podsets] == [1, 1]


def test_a_missing_runtime_is_named() -> None:
    found = read(*load(TRAIN))
    assert job(found.manifests[0], found.find) == Ref("trainer.kubeflow.org", "ClusterTrainingRuntime", "", "torch")


P = "kueue.x-k8s.io/podset-"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Wish()),
        ({f"{P}required-topology": "rack"}, Wish(required="rack")),
        ({f"{P}preferred-topology": "rack", f"{P}required-topology": "block"}, Wish(required="block")),
        ({f"{P}unconstrained-topology": "true"}, Wish(unconstrained=True)),
        ({f"{P}unconstrained-topology": "false"}, Wish(unconstrained=False)),
        ({f"{P}slice-required-topology": "rack"}, Wish()),
        ({f"{P}slice-required-topology": "rack", f"{P}slice-size": "4"}, Wish(slice_level="rack", slice_size=4)),
        ({f"{P}group-name": "g"}, Wish()),
        ({f"{P}group-name": "g", f"{P}required-topology": "rack"}, Wish(required="rack", group="g")),
    ],
)
def test_wishes_are_read_from_annotations(annotations: dict[str, str], expected: Wish) -> None:
    assert wish(annotations) == expected


def test_wrong_shapes_are_no_obstacle() -> None:
    for kind in kinds():
        name, _, group = kind.partition(".")
        for spec in ("x", [1], {"template": 3, "replicas": "x", "jobTemplate": [], "podSets": [None, {}]}):
            body = {
                "apiVersion": f"{group}/v1" if group else "v1",
                "kind": name,
                "metadata": {"name": "x"},
                "spec": spec,
            }
            found = manifests(body)[0]
            job(found, lambda *_: None, [found])
