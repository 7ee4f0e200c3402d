"""A cluster that may be deployed to, with its reports, its backup and the object store; tests break one thing of it."""

from __future__ import annotations

import copy
import gzip
import io
import json
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from blueprint.attest.backup_evidence import BackupEvidence, backup_evidence
from blueprint.attest.dump import needed, read_dump
from blueprint.attest.engines import asked
from blueprint.attest.evidence import Window, World, written
from blueprint.attest.policy_evidence import PolicyEvidence, from_cluster
from blueprint.finding import Source
from blueprint.objects import Manifest

NOW = datetime.now(UTC).replace(microsecond=0)
FILTERS = "[Event,*,*] [*/*,kube-system,*] [Pod/binding,*,*] [Pod/?*,kyverno,kyverno-*] [ReplicaSet,*,*]"
UID = "0b8c7c1e-3f2d-4f0f-9a44-7a5f6a1a2b3c"
BACKUP = "daily-20261201"


def ago(**span: float) -> str:
    return written(NOW - timedelta(**span))


def seconds(**span: float) -> dict[str, int]:
    return {"seconds": int((NOW - timedelta(**span)).timestamp()), "nanos": 0}


TEAM = "platform.blueprint/team"
RULE = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}
VALIDATING = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "images-by-digest"},
    "spec": {
        "validationActions": ["Deny"],
        "evaluation": {"background": {"enabled": True}},
        "matchConstraints": {
            "namespaceSelector": {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]},
            "resourceRules": [RULE | {"apiVersions": ["v1"], "resources": ["pods"]}],
        },
        "validations": [{"expression": "true", "message": "by digest"}],
    },
}
GATE = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ImageValidatingPolicy",
    "metadata": {"name": "signed-images"},
    "spec": {"validationActions": ["Deny"], "evaluation": {"background": {"enabled": False}}},
}
CONSTRAINT = {
    "apiVersion": "constraints.gatekeeper.sh/v1beta1",
    "kind": "BlueprintTenantBindings",
    "metadata": {"name": "tenant-bindings"},
    "spec": {"enforcementAction": "deny", "match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}},
}
NATIVE = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "no-token-secrets"},
    "spec": {"policyName": "no-token-secrets", "validationActions": ["Deny", "Audit"]},
}


SCHEDULE = {
    "apiVersion": "velero.io/v1",
    "kind": "Schedule",
    "metadata": {"name": "daily", "namespace": "velero"},
    "spec": {
        "template": {"excludedResources": ["events", "pods"], "resourcePolicy": {"kind": "configmap", "name": "v"}}
    },
}


RULES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "v", "namespace": "velero"},
    "data": {"policies.yaml": "version: v1\nvolumePolicies: []\n"},
}


def as_seen(policy: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The policy as an API server gives it: with times; defaults are in tests/conformance/test_credential_run.py."""
    body = copy.deepcopy(policy)
    entry = {"manager": "argocd-controller", "time": ago(hours=3)}
    body["metadata"] |= {"creationTimestamp": ago(days=9), "generation": 2, "managedFields": [entry]}
    body["spec"] |= changed
    match policy["apiVersion"].partition("/")[0]:
        case "policies.kyverno.io":
            body["status"] = {"conditionStatus": {"ready": True}}
        case "constraints.gatekeeper.sh":
            body["status"] = {"byPod": [{"id": "gatekeeper-audit-0", "enforced": True}]}
        case "templates.gatekeeper.sh":
            body["status"] = {"created": True, "byPod": [{"id": "gatekeeper-audit-0"}]}
    return body


class Deployment:
    """Everything that a credential stands on; `objects` by a short name, so that a test can find what it breaks."""

    def __init__(self, store: Path) -> None:
        self.tree = [VALIDATING, GATE, CONSTRAINT, NATIVE, SCHEDULE, RULES]
        self.store: Path | None = store
        self.audit: Path | None = None
        self.objects: dict[str, dict[str, Any]] = {
            "namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}},
            "validating": as_seen(VALIDATING),
            "gate": as_seen(GATE),
            "native": as_seen(NATIVE),
            "constraint": _audited(as_seen(CONSTRAINT)),
            "team": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {TEAM: "a"}}},
            "settings": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kyverno", "namespace": "kyverno"},
                "data": {"resourceFilters": FILTERS, "excludeGroups": "system:nodes"},
            },
            "rules": copy.deepcopy(RULES),
            "kyverno": _webhooks(
                "kyverno-resource-validating-webhook-cfg",
                "vpol.validate.kyverno.svc-fail",
                "ivpol.validate.kyverno.svc-fail",
            ),
            "gatekeeper": _webhooks(
                "gatekeeper-validating-webhook-configuration",
                "validation.gatekeeper.sh",
                "check-ignore-label.gatekeeper.sh",
            ),
            "config": {
                "apiVersion": "config.gatekeeper.sh/v1alpha1",
                "kind": "Config",
                "metadata": {"name": "config", "namespace": "gatekeeper-system"},
                "spec": {"match": [{"processes": ["*"], "excludedNamespaces": ["kube-*", "kyverno"]}]},
            },
            "reports": _deployment("kyverno", "kyverno-reports-controller"),
            "report": {
                "apiVersion": "wgpolicyk8s.io/v1alpha2",
                "kind": "PolicyReport",
                "metadata": {"name": "5f1f3c1e", "namespace": "team-a"},
                "scope": {"apiVersion": "v1", "kind": "Pod", "namespace": "team-a", "name": "chat-0"},
                "results": [
                    {
                        "policy": "images-by-digest",
                        "rule": "images-by-digest",
                        "result": "pass",
                        "source": "KyvernoValidatingPolicy",
                        "message": "success",
                        "timestamp": seconds(minutes=2),
                    }
                ],
            },
            "backup": {
                "apiVersion": "velero.io/v1",
                "kind": "Backup",
                "metadata": {"name": BACKUP, "namespace": "velero", "uid": "backup-uid"},
                "spec": {"storageLocation": "default", "includedNamespaces": ["*"], "excludedResources": ["events"]},
                "status": {
                    "phase": "Completed",
                    "startTimestamp": ago(hours=2),
                    "completionTimestamp": ago(hours=1),
                    "expiration": written(NOW + timedelta(days=30)),
                    "progress": {"totalItems": 3, "itemsBackedUp": 3},
                    "csiVolumeSnapshotsAttempted": 1,
                    "csiVolumeSnapshotsCompleted": 1,
                },
            },
            "location": {
                "apiVersion": "velero.io/v1",
                "kind": "BackupStorageLocation",
                "metadata": {"name": "default", "namespace": "velero"},
                "spec": {"provider": "aws", "objectStorage": {"bucket": "backups"}},
                "status": {"phase": "Available", "lastValidationTime": ago(minutes=1)},
            },
            "claim": _claim("team-a", "models"),
            "uploaded claim": _claim("team-b", "datasets"),
            "upload": {
                "apiVersion": "velero.io/v1",
                "kind": "PodVolumeBackup",
                "metadata": {
                    "name": "datasets-x",
                    "namespace": "velero",
                    "labels": {"velero.io/backup-name": BACKUP},
                    "annotations": {"velero.io/pvc-name": "datasets"},
                },
                "spec": {"pod": {"namespace": "team-b", "name": "loader"}, "volume": "data"},
                "status": {"phase": "Completed", "progress": {"bytesDone": 5000, "totalBytes": 5000}},
            },
        }
        self.volumes = [
            {"pvcName": "models", "pvcNamespace": "team-a", "skipped": False, "result": "succeeded"},
        ]
        self.resources: dict[str, list[str]] = {
            "v1/Pod": ["team-a/chat-0"],
            "v1/PersistentVolumeClaim": ["team-a/models", "team-b/datasets"],
        }
        claim = "resources/persistentvolumeclaims/namespaces/team-a/models.json"
        self.members = ["metadata/version", "resources/pods/namespaces/team-a/chat-0.json", claim]
        self.archived: dict[str, Any] = {claim: self.objects["claim"]}
        self.kept: dict[str, Any] = {}
        self.results: dict[str, Any] = {"errors": {}, "warnings": {}}
        self.lost: list[str] = []
        self.unlisted: list[str] = []
        self.list_meta: dict[str, dict[str, Any]] = {}
        self.twice: list[str] = []

    def write_store(self) -> None:
        """What Velero leaves under backups/ (pkg/persistence/object_store_layout.go)."""
        assert self.store is not None
        folder = self.store / "backups" / BACKUP
        folder.mkdir(parents=True)
        kept = copy.deepcopy(self.objects["backup"])
        for path, value in self.kept.items():
            part, _, key = path.partition(".")
            kept[part][key] = value
        (folder / "velero-backup.json").write_text(json.dumps(kept))
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name in self.members:
                data = json.dumps(self.archived.get(name, {})).encode()
                row = tarfile.TarInfo(name)
                row.size = len(data)
                archive.addfile(row, io.BytesIO(data))
        (folder / f"{BACKUP}.tar.gz").write_bytes(buffer.getvalue())
        for name, value in (
            ("resource-list.json.gz", self.resources),
            ("volumeinfo.json.gz", self.volumes),
            ("podvolumebackups.json.gz", [one for one in self.objects.values() if one["kind"] == "PodVolumeBackup"]),
            ("results.gz", self.results),
            ("logs.gz", {}),
        ):
            (folder / f"{BACKUP}-{name}").write_bytes(gzip.compress(json.dumps(value).encode(), mtime=0))
        for name in self.lost:
            (folder / name).unlink()

    def dump(self, folder: Path) -> None:
        """What `kubectl get --raw` gives: a list for each kind that is needed, whether there are any or none."""
        folder.mkdir(parents=True)
        lists: dict[tuple[str, str], list[Any]] = {}
        for each in needed(World.of(_manifests(self.tree))):
            lists[f"{each.path.removeprefix('/apis/').removeprefix('/api/').rpartition('/')[0]}", each.kind] = []
        for space in ("kyverno", "velero"):
            lists.pop((f"v1/namespaces/{space}", "ConfigMap"), None)
        for name, body in self.objects.items():
            place = lists.setdefault((body["apiVersion"], body["kind"]), [])
            place += [body] * (2 if name in self.twice else 1)
        for (version, kind), bodies in lists.items():
            if kind not in self.unlisted:
                meta = {"resourceVersion": "4711"} | self.list_meta.get(kind, {})
                found = {"apiVersion": version, "kind": f"{kind}List", "metadata": meta, "items": bodies}
                (folder / f"{version.replace('/', '_')}_{kind}.json").write_text(json.dumps(found))

    def judge(self) -> tuple[World, PolicyEvidence, BackupEvidence]:
        tree, window = World.of(_manifests(self.tree)), Window(NOW)
        if self.store is not None and not self.store.exists() and "backup" in self.objects:
            self.write_store()
        with tempfile.TemporaryDirectory() as folder:
            self.dump(Path(folder) / "objects")
            world = read_dump([Path(folder) / "objects"], needed(tree))
        policies = from_cluster(tree, world, window, self.audit)
        asked(tree, world)
        return world, policies, backup_evidence(world, window, store=self.store, tree=tree)


def _audited(constraint: dict[str, Any]) -> dict[str, Any]:
    constraint["status"] |= {"auditTimestamp": ago(minutes=1), "totalViolations": 0}
    return constraint


def _webhooks(configuration: str, *names: str) -> dict[str, Any]:
    """As the engines register them: nothing but their own namespaces is left out."""
    own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kyverno"]}
    hooks = [
        {"name": name, "failurePolicy": "Fail", "namespaceSelector": {"matchExpressions": [own]}, "rules": [RULE]}
        for name in names
    ]
    meta = {"name": configuration}
    kind = "ValidatingWebhookConfiguration"
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": meta, "webhooks": hooks}


def _manifests(bodies: Any) -> list[Manifest]:
    return [Manifest(body, Source("cluster")) for body in bodies]


def _deployment(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "status": {"availableReplicas": 1},
    }


def _claim(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "status": {"phase": "Bound"},
    }
