"""Requests that the reference platform's policies must let through or refuse: near misses beside each refusal.

The same cases go through the expressions alone (tests/render), and through the API server, Gatekeeper and Kyverno
(tests/conformance).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

NAMESPACE = "team-a"
TEAM = "platform.blueprint/team"
QUEUE = "kueue.x-k8s.io/queue-name"

PERSON = "alice"
JOBS = "system:serviceaccount:kube-system:job-controller"
CLAIMS = "system:serviceaccount:kube-system:resourceclaim-controller"
OWN = f"system:serviceaccount:{NAMESPACE}:training"

DIGEST = "sha256:" + "a" * 64
IMAGE = f"registry.example.com/training/torch@{DIGEST}"
PROXY = "registry.example.com/istio/proxyv2:1.32.0"

Body = dict[str, Any]


class Kinds(NamedTuple):
    """What an admission request says of a kind."""

    group: str
    version: str
    plural: str
    namespaced: bool = True


KINDS = {
    "Pod": Kinds("", "v1", "pods"),
    "Service": Kinds("", "v1", "services"),
    "Secret": Kinds("", "v1", "secrets"),
    "Namespace": Kinds("", "v1", "namespaces", namespaced=False),
    "Job": Kinds("batch", "v1", "jobs"),
    "JobSet": Kinds("jobset.x-k8s.io", "v1alpha2", "jobsets"),
    "LeaderWorkerSet": Kinds("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
    "PyTorchJob": Kinds("kubeflow.org", "v1", "pytorchjobs"),
    "TrainJob": Kinds("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
    "ResourceClaim": Kinds("resource.k8s.io", "v1", "resourceclaims"),
    "ResourceClaimTemplate": Kinds("resource.k8s.io", "v1", "resourceclaimtemplates"),
    "RoleBinding": Kinds("rbac.authorization.k8s.io", "v1", "rolebindings"),
    "ClusterRoleBinding": Kinds("rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False),
    "PolicyException": Kinds("policies.kyverno.io", "v1", "policyexceptions"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One request: an object that somebody creates, or that replaces `old`; `refused` by the policy or not."""

    policy: str
    name: str
    refused: bool
    object: Body
    old: Body | None = None
    user: str = PERSON

    @property
    def operation(self) -> str:
        """The verb of the request."""
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def namespace(self) -> str:
        """Where the object is, "" for what is in no namespace."""
        return str(self.object["metadata"].get("namespace", ""))

    def review(self) -> Body:
        """The request as an AdmissionReview."""
        kinds = KINDS[self.object["kind"]]
        request: Body = {
            "uid": "00000000-0000-0000-0000-000000000000",
            "kind": {"group": kinds.group, "version": kinds.version, "kind": self.object["kind"]},
            "resource": {"group": kinds.group, "version": kinds.version, "resource": kinds.plural},
            "operation": self.operation,
            "name": self.object["metadata"]["name"],
            "userInfo": {"username": self.user},
            "object": self.object,
        }
        if self.namespace:
            request["namespace"] = self.namespace
        if self.old is not None:
            request["oldObject"] = self.old
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def body(kind: str, spec: Body | None = None, **metadata: Any) -> Body:
    """An object of a kind in the tenant's namespace, if it is in one."""
    kinds = KINDS[kind]
    meta = {"name": "sample", **({"namespace": NAMESPACE} if kinds.namespaced else {}), **metadata}
    version = f"{kinds.group}/{kinds.version}" if kinds.group else kinds.version
    return {"apiVersion": version, "kind": kind, "metadata": meta, **({} if spec is None else {"spec": spec})}


def owner(kind: str, api_version: str, *, controller: bool = True) -> list[Body]:
    """The owner references of a child."""
    uid = "00000000-0000-0000-0000-000000000001"
    return [{"apiVersion": api_version, "kind": kind, "name": "owner", "uid": uid, "controller": controller}]


def container(image: str = IMAGE, name: str = "main", **resources: Body) -> Body:
    """A container; `limits` and `requests` are its resources."""
    return {"name": name, "image": image, **({"resources": resources} if resources else {})}


GPUS = {"nvidia.com/gpu": "2", "memory": "64Gi"}


def pod(*containers: Body, spec: Body | None = None, **metadata: Any) -> Body:
    """A pod that breaks no policy unless told."""
    base = {"containers": list(containers) or [container()], "automountServiceAccountToken": False}
    return body("Pod", {**base, **(spec or {})}, **metadata)


TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
WORK: dict[str, Body] = {
    "Job": {"suspend": True, "template": TEMPLATE},
    "JobSet": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": TEMPLATE}}}]},
    "LeaderWorkerSet": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [container()]}}}},
    "PyTorchJob": {
        "runPolicy": {"suspend": True},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [container(name="pytorch")]}}}
        },
    },
    "TrainJob": {"suspend": True, "runtimeRef": {"name": "runtime", "kind": "TrainingRuntime"}},
}
TENANT = {
    TEAM: "a",
    "kubernetes.io/metadata.name": "sample",
    "pod-security.kubernetes.io/enforce": "restricted",
}


def work(kind: str, **metadata: Any) -> Body:
    """A workload of a kind."""
    return body(kind, WORK[kind], **metadata)


def claim(kind: str = "ResourceClaim", *, admin: bool = False, **metadata: Any) -> Body:
    """A claim of one device, or a template of such claims."""
    exactly: Body = {"deviceClassName": "h100-80gb", "allocationMode": "ExactCount", "count": 1}
    devices = {
        "devices": {"requests": [{"name": "gpu", "exactly": exactly | ({"adminAccess": True} if admin else {})}]}
    }
    return body(kind, {"spec": devices} if kind == "ResourceClaimTemplate" else devices, **metadata)


def namespace(**labels: str) -> Body:
    """A namespace with these labels; `_` in a key stands for nothing special."""
    return body("Namespace", labels={"kubernetes.io/metadata.name": "sample", **labels})


def binding(
    role: str, *subjects: Body, kind: str = "RoleBinding", role_kind: str = "ClusterRole", **metadata: Any
) -> Body:
    """A RoleBinding or ClusterRoleBinding."""
    group = "rbac.authorization.k8s.io"
    return {
        **body(kind, **metadata),
        "roleRef": {"apiGroup": group, "kind": role_kind, "name": role},
        "subjects": [{**({} if s["kind"] == "ServiceAccount" else {"apiGroup": group}), **s} for s in subjects],
    }


def _pods() -> list[Case]:
    init = {"initContainers": [container("docker.io/library/busybox:1", "init")]}
    digest = f"docker.io/library/busybox@{DIGEST}"
    bound = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    gpu_pod = pod(container(limits=GPUS, requests=GPUS))
    queued = {"labels": {QUEUE: "training"}}
    job, torch = owner("Job", "batch/v1"), owner("PyTorchJob", "kubeflow.org/v1")
    replica = owner("ReplicaSet", "apps/v1")
    parent = {"annotations": {"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset"}}
    init_gpu = {"initContainers": [container(name="init", limits=GPUS, requests=GPUS)]}

    def gpus(name: str, refused: bool, object_: Body, user: str = PERSON) -> Case:
        return Case("gpu-pods-are-queued", name, refused, object_, user=user)

    def token(**projected: Any) -> Body:
        return {
            "volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t", **projected}}]}}]
        }

    def meta(source: Body, **metadata: Any) -> Body:
        found = copy.deepcopy(source)
        found["metadata"] |= metadata
        return found

    def memory(name: str, refused: bool, limits: Body, requests: Body) -> Case:
        return Case("gpu-memory-is-reserved", name, refused, pod(container(limits=limits, requests=requests)))

    return [
        Case("images-by-digest", "digest", False, pod()),
        Case("images-by-digest", "tag and digest", False, pod(container(f"registry.example.com/x:1@{DIGEST}"))),
        Case("images-by-digest", "tag", True, pod(container("registry.example.com/training/torch:2.9"))),
        Case("images-by-digest", "no tag", True, pod(container("registry.example.com/training/torch"))),
        Case("images-by-digest", "short digest", True, pod(container("registry.example.com/x@sha256:abc"))),
        Case("images-by-digest", "tag in an init container", True, pod(spec=init)),
        Case("images-by-digest", "the mesh's proxy", False, pod(container(), container(PROXY, "istio-proxy"))),
        Case("images-by-digest", "a proxy of others", True, pod(container("docker.io/istio/proxyv2:1.32.0"))),
        Case("images-by-digest", "the proxy's name in a path", True, pod(container(f"evil.io/{PROXY}"))),
        Case("approved-registries", "ours", False, pod()),
        Case("approved-registries", "another", True, pod(container(digest))),
        Case("approved-registries", "a longer host", True, pod(container(f"registry.example.com.evil.io/x@{DIGEST}"))),
        Case("approved-registries", "another for an init container", True, pod(spec=init)),
        gpus("no GPUs", False, pod()),
        gpus("queued", False, meta(gpu_pod, **queued)),
        gpus("neither queued nor owned", True, gpu_pod),
        gpus("an empty queue", True, meta(gpu_pod, labels={QUEUE: ""})),
        gpus("of a job, by its controller", False, meta(gpu_pod, ownerReferences=job), JOBS),
        gpus("of a PyTorchJob, by its controller", False, meta(gpu_pod, ownerReferences=torch), JOBS),
        gpus("said to be of a job, by a person", True, meta(gpu_pod, ownerReferences=job)),
        gpus("said to be of a job, by a pod's own account", True, meta(gpu_pod, ownerReferences=job), OWN),
        gpus("of a ReplicaSet without a queue", True, meta(gpu_pod, ownerReferences=replica), JOBS),
        gpus("of a LeaderWorkerSet that Kueue holds", False, meta(gpu_pod, **parent), JOBS),
        gpus("GPUs for an init container", True, pod(spec=init_gpu)),
        gpus("MIG slices", True, pod(container(limits={"nvidia.com/mig-1g.10gb": "1"}))),
        gpus("a claim", True, pod(spec=bound)),
        memory("as much as the limit", False, GPUS, GPUS),
        memory("the same in other units", False, GPUS, {"nvidia.com/gpu": "2", "memory": "65536Mi"}),
        memory("less than the limit", True, GPUS, {"nvidia.com/gpu": "2", "memory": "32Gi"}),
        memory("no limit", True, {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2", "memory": "32Gi"}),
        memory("no GPUs", False, {"memory": "64Gi"}, {"memory": "32Gi"}),
        Case("platform-priorities", "none", False, pod()),
        Case("platform-priorities", "ours", False, pod(spec={"priorityClassName": "platform-low"})),
        Case("platform-priorities", "of the system", True, pod(spec={"priorityClassName": "system-node-critical"})),
        Case("no-api-tokens", "no token", False, pod()),
        Case("no-api-tokens", "not said", True, body("Pod", {"containers": [container()]})),
        Case("no-api-tokens", "a token", True, pod(spec={"automountServiceAccountToken": True})),
        Case("no-api-tokens", "for the mesh", False, pod(spec=token(audience="istio-ca"))),
        Case("no-api-tokens", "projected for the API", True, pod(spec=token())),
        Case("no-secondary-networks", "one network", False, pod(annotations={"a": "b"})),
        Case("no-secondary-networks", "two", True, pod(annotations={"k8s.v1.cni.cncf.io/networks": "storage"})),
    ]


def _work() -> list[Case]:
    cases = []
    for kind in WORK:
        queued = work(kind, labels={QUEUE: "training"})
        cases += [
            Case("require-queue-name", f"queued {kind}", False, queued),
            Case("require-queue-name", f"{kind} without a queue", True, work(kind)),
            Case("keep-queue-name", f"{kind} moves", False, work(kind, labels={QUEUE: "serving"}), queued),
            Case("keep-queue-name", f"{kind} leaves", True, work(kind, labels={"a": "b"}), queued),
            Case("keep-queue-name", f"{kind} was in none", False, work(kind, labels={"a": "b"}), work(kind)),
        ]
    child, of_cron = owner("JobSet", "jobset.x-k8s.io/v1alpha2"), owner("CronJob", "batch/v1")

    def job(name: str, refused: bool, owners: list[Body], user: str) -> Case:
        return Case("require-queue-name", name, refused, work("Job", ownerReferences=owners), user=user)

    return [
        *cases,
        job("child of a JobSet, by its controller", False, child, JOBS),
        job("said to be the child of a JobSet, by a person", True, child, PERSON),
        job("said to be the child of a JobSet, by a pod's own account", True, child, OWN),
        job("child of a CronJob", True, of_cron, JOBS),
        job("owned, but not controlled", True, owner("JobSet", "jobset.x-k8s.io/v1alpha2", controller=False), JOBS),
    ]


def _claims() -> list[Case]:
    of_pod = {"ownerReferences": owner("Pod", "v1")}
    template = "ResourceClaimTemplate"
    return [
        Case("no-device-admin-access", "claim", False, claim()),
        Case("no-device-admin-access", "claim with admin access", True, claim(admin=True)),
        Case("no-device-admin-access", "template", False, claim(template)),
        Case("no-device-admin-access", "template with admin access", True, claim(template, admin=True)),
        Case("claims-from-templates", "made for a pod", False, claim(**of_pod), user=CLAIMS),
        Case("claims-from-templates", "made by hand", True, claim()),
        Case("claims-from-templates", "said to be for a pod", True, claim(**of_pod)),
        Case("claims-from-templates", "in Git", True, claim(), user="system:serviceaccount:argocd:argocd-server"),
    ]


def _access() -> list[Case]:
    people = {"kind": "Group", "name": "oidc:team-a"}
    everyone = {"kind": "Group", "name": "system:authenticated"}
    masters = {"kind": "Group", "name": "system:masters"}
    account = {"kind": "ServiceAccount", "name": "training", "namespace": NAMESPACE}
    foreign = {"kind": "ServiceAccount", "name": "training", "namespace": "team-b"}
    whole = {"kind": "ClusterRoleBinding"}
    view = "platform-tenant-viewer"

    def tenant(name: str, refused: bool, object_: Body) -> Case:
        return Case("tenant-bindings", name, refused, object_)

    def cluster(name: str, refused: bool, object_: Body) -> Case:
        return Case("no-grants-to-everyone", name, refused, object_)

    return [
        tenant("a tenant's role", False, binding(view, people)),
        tenant("a Role of the namespace", False, binding("own", account, role_kind="Role")),
        tenant("cluster-admin", True, binding("cluster-admin", people)),
        tenant("to everybody", True, binding(view, people, everyone)),
        tenant("to another team's account", True, binding(view, foreign)),
        cluster("to people", False, binding("view", people, **whole)),
        cluster("to administrators", False, binding("cluster-admin", masters, **whole)),
        cluster("to everybody", True, binding("view", people, everyone, **whole)),
        cluster("by Kubernetes itself", False, binding("view", everyone, name="system:sample", **whole)),
    ]


def _namespaces() -> list[Case]:
    plain = namespace(a="b")
    tenant = body("Namespace", labels=TENANT)

    def labelled(**changes: str | None) -> Body:
        return body("Namespace", labels={k: v for k, v in {**TENANT, **changes}.items() if v is not None})

    admin = {"resource.kubernetes.io/admin-access": "true"}
    return [
        Case("tenant-namespaces", "of nobody", False, plain),
        Case("tenant-namespaces", "of a tenant", False, tenant),
        Case("tenant-namespaces", "privileged", True, labelled(**{"pod-security.kubernetes.io/enforce": "privileged"})),
        Case("tenant-namespaces", "without a standard", True, labelled(**{"pod-security.kubernetes.io/enforce": None})),
        Case("tenant-namespaces", "with admin access", True, labelled(**admin)),
        Case("tenant-namespaces", "of the platform, with admin access", False, namespace(**admin)),
        Case("tenant-namespaces", "hidden", True, labelled(**{"admission.gatekeeper.sh/ignore": "yes"})),
        Case("tenant-namespaces", "handed over", True, labelled(**{TEAM: "b"}), tenant),
        Case("tenant-namespaces", "let go", True, labelled(**{TEAM: None}), tenant),
        Case("tenant-namespaces", "taken on", False, tenant, plain),
        Case("tenant-namespaces", "changed otherwise", False, labelled(a="b"), tenant),
    ]


def _rest() -> list[Case]:
    ports = {"ports": [{"port": 80}]}
    foreign = {"type": "ExternalName", "externalName": "example.com"}
    exception = {"policyRefs": [{"kind": "ValidatingPolicy", "name": "images-by-digest"}]}
    secret = {**body("Secret"), "type": "kubernetes.io/service-account-token"}
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
    return [
        Case("internal-services", "internal", False, body("Service", ports)),
        Case("internal-services", "headless", False, body("Service", {**ports, "clusterIP": "None"})),
        Case("internal-services", "external address", True, body("Service", {**ports, "externalIPs": ["192.0.2.1"]})),
        Case("internal-services", "external name", True, body("Service", foreign)),
        Case("internal-services", "on every node", True, body("Service", {**ports, "type": "NodePort"})),
        Case("exceptions-in-platform", "of a tenant", True, body("PolicyException", exception)),
        Case("exceptions-in-platform", "in its place", False, body("PolicyException", exception, namespace="kyverno")),
        Case("no-token-secrets", "data", False, {**body("Secret"), "stringData": {"a": "b"}}),
        Case("no-token-secrets", "a token for ever", True, secret),
    ]


CASES = [*_pods(), *_work(), *_claims(), *_access(), *_namespaces(), *_rest()]
