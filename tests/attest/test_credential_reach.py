"""What a credential stands on must be whole: all kinds in the dump, engines that are asked, a backup that holds all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.dump import needed, read_dump
from blueprint.attest.engines import _matches
from blueprint.attest.evidence import World, written
from blueprint.errors import UsageError
from tests.attest.deployment import BACKUP, NOW, RULE, TEAM, Deployment, _manifests, ago

Change = Callable[[Deployment], Any]


def codes(world: World) -> list[str]:
    return [refused.code for refused in world.refusals]


def put(name: str, path: str, value: Any) -> Change:
    """Set a field of an object; numbers in the path are places in a list."""

    def change(deployment: Deployment) -> None:
        holder: Any = deployment.objects[name]
        *steps, last = (int(step) if step.isdigit() else step for step in path.split("/"))
        for step in steps:
            holder = holder[step] if isinstance(step, int) else holder.setdefault(step, {})
        holder[last] = value

    return change


def give(attribute: str, value: Any) -> Change:
    return lambda deployment: setattr(deployment, attribute, value)


def also(*changes: Change) -> Change:
    def change(deployment: Deployment) -> None:
        for each in changes:
            each(deployment)

    return change


def without(name: str) -> Change:
    return lambda deployment: deployment.objects.pop(name)


def elsewhere(name: str, **labels: str) -> Change:
    """A namespace that is no tenant's."""
    meta = {"name": name, "labels": labels}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    return lambda deployment: deployment.objects.update({name: space})


def hook(configuration: str, key: str, value: Any) -> Change:
    return put(configuration, f"webhooks/0/{key}", value)


def selector(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": operator, "values": list(values)}]}


def own_hook(policy: str, namespaces: dict[str, Any]) -> Change:
    """Kyverno asks for this policy by a webhook of its own, beside that of the others."""

    def change(deployment: Deployment) -> None:
        hooks = deployment.objects["kyverno"]["webhooks"]
        name = f"vpol.validate.kyverno.svc-fail-finegrained-{policy}"
        hooks.append({"name": name, "failurePolicy": "Fail", "namespaceSelector": namespaces, "rules": [RULE]})

    return change


def filters(text: str) -> Change:
    return put("settings", "data/resourceFilters", text)


def archived(claim: str, uid: str) -> Change:
    """The archive holds a claim of team-a with this UID, or the namespace itself."""

    def change(deployment: Deployment) -> None:
        place = f"persistentvolumeclaims/namespaces/team-a/{claim}" if claim else "namespaces/cluster/team-a"
        name = f"resources/{place}.json"
        deployment.members.append(name)
        deployment.archived[name] = {"metadata": {"name": claim or "team-a", "uid": uid}}

    return change


SOON = written(NOW + timedelta(minutes=1))
DELETED = ago(minutes=1)
CLAIM = {"pvcName": "models", "pvcNamespace": "team-a", "skipped": False, "result": "succeeded"}

#: Broken world → what is wrong, the code, and something near it that is right.
ROWS: dict[str, tuple[Change, str, Change]] = {
    # --- the dump
    "no list of exceptions": (give("unlisted", ["PolicyException"]), "CRE111", give("unlisted", ["Event"])),
    "no list of uploads": (
        also(give("unlisted", ["DataUpload"]), without("uploaded claim")),
        "CRE111",
        without("uploaded claim"),
    ),
    "no list of webhooks": (give("unlisted", ["ValidatingWebhookConfiguration"]), "CRE111", give("unlisted", [])),
    "no list of Gatekeeper's configurations": (give("unlisted", ["Config"]), "CRE111", without("config")),
    "no list of claims": (
        also(give("unlisted", ["PersistentVolumeClaim"]), without("claim")),
        "CRE111",
        without("claim"),
    ),
    "the first page of the reports": (
        give("list_meta", {"PolicyReport": {"continue": "eyJ2IjoibWV0YS5rOHMu"}}),
        "CRE111",
        give("list_meta", {"PolicyReport": {"continue": ""}}),
    ),
    "a list that says how many are left": (
        give("list_meta", {"Backup": {"remainingItemCount": 3}}),
        "CRE111",
        give("list_meta", {"Backup": {"remainingItemCount": 0}}),
    ),
    "a list of no moment": (
        give("list_meta", {"PolicyReport": {"resourceVersion": ""}}),
        "CRE111",
        give("list_meta", {"PolicyReport": {"resourceVersion": "1"}}),
    ),
    "a policy that is there twice": (give("twice", ["validating"]), "CRE111", give("twice", [])),
    # --- policies
    "a policy that is not ready": (
        put("validating", "status/conditionStatus/ready", False),
        "CRE105",
        put("validating", "status/conditionStatus/message", "ready"),
    ),
    "a policy that nobody took": (put("gate", "status", {}), "CRE105", put("gate", "status/autogen", {})),
    "a policy that is being deleted": (
        put("validating", "metadata/deletionTimestamp", DELETED),
        "CRE105",
        put("validating", "metadata/annotations", {"deletionTimestamp": DELETED}),
    ),
    "a binding that is being deleted": (
        put("native", "metadata/deletionTimestamp", DELETED),
        "CRE105",
        put("native", "metadata/finalizers", []),
    ),
    "a constraint that one pod does not enforce": (
        put("constraint", "status/byPod", [{"enforced": True}, {"enforced": False}]),
        "CRE105",
        put("constraint", "status/byPod", [{"enforced": True}, {"enforced": True}]),
    ),
    "a constraint with an error": (
        put("constraint", "status/byPod", [{"enforced": True, "errors": [{"message": "no such field"}]}]),
        "CRE105",
        put("constraint", "status/byPod", [{"enforced": True, "errors": []}]),
    ),
    "a reports controller that is being deleted": (
        put("reports", "metadata/deletionTimestamp", DELETED),
        "CRE107",
        put("reports", "metadata/labels", {"app": "kyverno"}),
    ),
    # --- whether Kyverno is asked
    "no webhook of Kyverno": (without("kyverno"), "CRE112", elsewhere("other")),
    "a webhook of Kyverno that is being deleted": (
        put("kyverno", "metadata/deletionTimestamp", DELETED),
        "CRE112",
        put("kyverno", "metadata/labels", {"webhook.kyverno.io/managed-by": "kyverno"}),
    ),
    "Kyverno is asked for images only": (
        hook("kyverno", "name", "mutate.kyverno.svc"),
        "CRE112",
        put("team", "spec", {}),
    ),
    "Kyverno is passed by when it is down": (
        hook("kyverno", "failurePolicy", "Ignore"),
        "CRE112",
        hook("kyverno", "timeoutSeconds", 5),
    ),
    "Kyverno is not asked about a tenant": (
        hook("kyverno", "namespaceSelector", selector("NotIn", "kube-system", "team-a")),
        "CRE112",
        hook("kyverno", "namespaceSelector", selector("NotIn", "kube-system", "team-ab")),
    ),
    "a policy's own webhook leaves a tenant out": (
        own_hook("images-by-digest", selector("In", "team-b")),
        "CRE112",
        own_hook("images-by-digest", selector("In", "team-a")),
    ),
    "Kyverno is asked about labelled objects": (
        hook("kyverno", "objectSelector", {"matchLabels": {"judge": "yes"}}),
        "CRE112",
        hook("kyverno", "objectSelector", {}),
    ),
    "Kyverno is asked on a condition": (
        hook("kyverno", "matchConditions", [{"name": "never", "expression": "false"}]),
        "CRE112",
        hook("kyverno", "matchConditions", []),
    ),
    "Kyverno is not asked about pods": (
        hook("kyverno", "rules", [RULE | {"resources": ["services"]}]),
        "CRE112",
        hook("kyverno", "rules", [RULE | {"resources": ["pods"]}]),
    ),
    "Kyverno is asked about deletions only": (
        hook("kyverno", "rules", [RULE | {"operations": ["DELETE"]}]),
        "CRE112",
        hook("kyverno", "rules", [RULE | {"operations": ["*"]}]),
    ),
    "Kyverno's filter takes a tenant out": (
        filters("[*/*,kube-system,*][*/*,team-*,*]"),
        "CRE112",
        filters("[*/*,kube-system,*][*/*,teams-*,*]"),
    ),
    "Kyverno's filter takes pods out": (filters("[v1/Pod,*,*]"), "CRE112", filters("[v1/Pod,*,one-of-many]")),
    "Kyverno lets a group by": (
        put("settings", "data/excludeGroups", "system:nodes,tenants"),
        "CRE112",
        put("settings", "data/excludeGroups", ""),
    ),
    "Kyverno lets a user by": (
        put("settings", "data/excludeUsernames", "jane"),
        "CRE112",
        put("settings", "data/excludeUsernames", ""),
    ),
    "nobody knows what Kyverno passes over": (
        without("settings"),
        "CRE112",
        put("settings", "data/generateSuccessEvents", "x"),
    ),
    # --- whether Gatekeeper is asked
    "no webhook of Gatekeeper": (without("gatekeeper"), "CRE112", elsewhere("other")),
    "Gatekeeper is passed by when it is down": (
        hook("gatekeeper", "failurePolicy", "Ignore"),
        "CRE112",
        put("gatekeeper", "webhooks/1/failurePolicy", "Ignore"),
    ),
    "a tenant whose label keeps Gatekeeper away": (
        also(
            hook(
                "gatekeeper", "namespaceSelector", {"matchExpressions": [{"key": "ignore", "operator": "DoesNotExist"}]}
            ),
            put("team", "metadata/labels", {TEAM: "a", "ignore": ""}),
        ),
        "CRE112",
        also(
            hook(
                "gatekeeper", "namespaceSelector", {"matchExpressions": [{"key": "ignore", "operator": "DoesNotExist"}]}
            ),
            elsewhere("kube-public", ignore=""),
        ),
    ),
    "Gatekeeper's Config leaves a tenant out": (
        put("config", "spec/match/0/excludedNamespaces", ["kube-*", "team-a"]),
        "CRE112",
        put("config", "spec/match", [{"processes": ["mutation-webhook", "sync"], "excludedNamespaces": ["team-a"]}]),
    ),
    "Gatekeeper's audit passes a tenant over": (
        put("config", "spec/match", [{"processes": ["audit"], "excludedNamespaces": ["*-a"]}]),
        "CRE112",
        put("config", "spec/match", [{"processes": ["audit"], "excludedNamespaces": ["*-system"]}]),
    ),
    # --- backups
    "a backup that is being deleted": (
        put("backup", "metadata/deletionTimestamp", DELETED),
        "CRE201",
        put("backup", "metadata/labels", {"velero.io/storage-location": "default"}),
    ),
    "a backup with warnings": (put("backup", "status/warnings", 1), "CRE202", put("backup", "status/warnings", 0)),
    "a store whose results tell of an error": (
        give("results", {"errors": {"namespaces": {"team-a": ["cannot read the volume"]}}}),
        "CRE202",
        give("results", {"errors": {"namespaces": {"team-a": []}}, "warnings": {}}),
    ),
    "a store whose results tell of a warning": (
        give("results", {"warnings": {"velero": ["a plugin is missing"]}}),
        "CRE202",
        give("results", {"warnings": {"velero": None}}),
    ),
    "a store seen in the future": (
        put("location", "status/lastValidationTime", ago(hours=-1)),
        "CRE205",
        put("location", "status/lastValidationTime", SOON),
    ),
    "a store that nobody has seen": (
        put("location", "status/lastValidationTime", None),
        "CRE205",
        put("location", "status/lastValidationTime", ago(minutes=59)),
    ),
    "a store that is being deleted": (
        put("location", "metadata/deletionTimestamp", DELETED),
        "CRE205",
        put("location", "metadata/generation", 2),
    ),
    "a status that somebody wrote": (
        give("kept", {"status.phase": "PartiallyFailed"}),
        "CRE206",
        give("kept", {"status.formatVersion": "1.1.0"}),
    ),
    "counters that somebody wrote": (give("kept", {"status.errors": 4}), "CRE206", give("kept", {"status.errors": 0})),
    "a spec that somebody wrote": (
        give("kept", {"spec.excludedNamespaces": ["team-b"]}),
        "CRE206",
        give("kept", {"spec.excludedNamespaces": []}),
    ),
    "a backup of another cluster's claims": (
        archived("models", "uid of another cluster"),
        "CRE206",
        archived("other", "x"),
    ),
    "a backup of another cluster's namespaces": (
        also(put("team", "metadata/uid", "team-a-uid"), archived("", "uid of another cluster")),
        "CRE206",
        also(put("team", "metadata/uid", "team-a-uid"), archived("", "team-a-uid")),
    ),
    "results that are not in the store": (
        give("lost", [f"{BACKUP}-results.gz"]),
        "CRE206",
        give("lost", [f"{BACKUP}-logs.gz"]),
    ),
    "a backup that expires never": (
        put("backup", "status/expiration", None),
        "CRE207",
        put("backup", "status/expiration", SOON),
    ),
    "an upload that is being deleted": (
        put("upload", "metadata/deletionTimestamp", DELETED),
        "CRE208",
        put("upload", "metadata/generation", 2),
    ),
    "a namespace that a star leaves out": (
        put("backup", "spec/excludedNamespaces", ["team-*"]),
        "CRE209",
        put("backup", "spec/excludedNamespaces", ["teams-*"]),
    ),
    "claims that are left out": (
        put("backup", "spec/excludedResources", ["persistentvolumeclaims"]),
        "CRE210",
        put("backup", "spec/excludedResources", ["pods", "volumesnapshots.snapshot.storage.k8s.io"]),
    ),
    "volumes that are left out": (
        put("backup", "spec/excludedClusterScopedResources", ["persistentvolumes"]),
        "CRE210",
        put("backup", "spec/excludedClusterScopedResources", ["volumesnapshotcontents.snapshot.storage.k8s.io"]),
    ),
    "a backup of configurations only": (
        put("backup", "spec/includedResources", ["configmaps"]),
        "CRE210",
        put("backup", "spec/includedResources", ["*"]),
    ),
    "a backup of what has a label": (
        put("backup", "spec/labelSelector", {"matchLabels": {"keep": "yes"}}),
        "CRE210",
        put("backup", "spec/labelSelector", {"matchLabels": {}}),
    ),
    "a backup of what has one of two labels": (
        put("backup", "spec/orLabelSelectors", [{"matchLabels": {"keep": "yes"}}]),
        "CRE210",
        put("backup", "spec/orLabelSelectors", []),
    ),
    "a rule for volumes that nobody rendered": (
        put("backup", "spec/resourcePolicy", {"kind": "configmap", "name": "skip-all"}),
        "CRE210",
        put("backup", "spec/resourcePolicy", {"kind": "configmap", "name": "v"}),
    ),
    "rules for volumes that somebody changed": (
        also(
            put("backup", "spec/resourcePolicy", {"kind": "configmap", "name": "v"}),
            put("rules", "data/policies.yaml", "version: v1\nvolumePolicies: [{action: {type: skip}}]\n"),
        ),
        "CRE210",
        also(
            put("backup", "spec/resourcePolicy", {"kind": "configmap", "name": "v"}),
            put("rules", "metadata/labels", {"app.kubernetes.io/managed-by": "blueprint"}),
        ),
    ),
    "rules for volumes that are not in the dump": (
        also(put("backup", "spec/resourcePolicy", {"kind": "configmap", "name": "v"}), without("rules")),
        "CRE210",
        without("rules"),
    ),
    "a backup without volumes' own objects": (
        put("backup", "spec/includeClusterResources", False),
        "CRE210",
        put("backup", "spec/includeClusterResources", True),
    ),
    "a claim that is not listed": (
        lambda deployment: deployment.resources.update({"v1/PersistentVolumeClaim": ["team-b/datasets"]}),
        "CRE210",
        lambda deployment: deployment.resources.update({"v1/Secret": ["team-b/token"]}),
    ),
}


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "store")


@pytest.mark.parametrize("name", ROWS)
def test_a_broken_world_is_refused_and_what_is_near_it_is_not(
    deployment: Deployment, name: str, tmp_path: Path
) -> None:
    change, code, near = ROWS[name]
    change(deployment)
    world, _, _ = deployment.judge()
    assert codes(world)[0] == code, [refused.message for refused in world.refusals]
    right = Deployment(tmp_path / "near")
    near(right)
    world, _, _ = right.judge()
    assert codes(world) == [], [refused.message for refused in world.refusals]


def test_a_policy_that_chose_to_fail_open_is_taken_at_its_word(deployment: Deployment) -> None:
    """It was reviewed so; that the webhook leaves a tenant out was not."""
    deployment.tree = json.loads(json.dumps(deployment.tree))
    deployment.tree[0]["spec"]["failurePolicy"] = deployment.objects["validating"]["spec"]["failurePolicy"] = "Ignore"
    hook("kyverno", "failurePolicy", "Ignore")(deployment)
    assert codes(deployment.judge()[0]) == []
    hook("kyverno", "namespaceSelector", selector("NotIn", "team-a"))(deployment)
    assert codes(deployment.judge()[0]) == ["CRE112"]


def test_a_tree_in_which_nothing_denies_allows_nothing(deployment: Deployment) -> None:
    """Rendered to audit and running so: it agrees, and refuses nobody anything."""
    deployment.tree = json.loads(json.dumps(deployment.tree))
    for policy, name in zip(deployment.tree, ("validating", "gate", "constraint", "native"), strict=False):
        for body in (policy, deployment.objects[name]):
            body["spec"].update(
                {"enforcementAction": "dryrun"} if name == "constraint" else {"validationActions": ["Audit"]}
            )
    assert codes(deployment.judge()[0]) == ["CRE104"]
    for body in (deployment.tree[3], deployment.objects["native"]):
        body["spec"]["validationActions"] = ["Deny"]
    assert codes(deployment.judge()[0]) == []


def test_what_kubectl_gives_of_several_kinds_says_not_which(deployment: Deployment, tmp_path: Path) -> None:
    """One List holds the same objects, and names no kind of which there is none."""
    tree = World.of(_manifests(deployment.tree))
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(deployment.objects.values())}))
    world = read_dump([file], needed(tree))
    assert len(world.refusals) == len(needed(tree))
    assert "kubectl get --raw /apis/policies.kyverno.io/v1/policyexceptions" in {each.fix for each in world.refusals}
    deployment.dump(tmp_path / "lists")
    assert read_dump([tmp_path / "lists"], needed(tree)).refusals == []
    (tmp_path / "lists/empty.json").write_text("")  # what `kubectl get --raw` leaves where it fails
    with pytest.raises(UsageError, match=r"no JSON|cannot be read"):
        read_dump([tmp_path / "lists"], needed(tree))


def test_reports_of_the_other_group_do(deployment: Deployment) -> None:
    report = deployment.objects.pop("report")
    deployment.objects["report"] = report | {"apiVersion": "openreports.io/v1alpha1", "kind": "Report"}
    other = {"apiVersion": "openreports.io/v1alpha1", "kind": "ClusterReport", "metadata": {"name": "x"}}
    deployment.objects["other"] = other
    deployment.unlisted = ["PolicyReport", "ClusterPolicyReport"]
    assert codes(deployment.judge()[0]) == []
    deployment.unlisted = ["PolicyReport", "ClusterPolicyReport", "ClusterReport"]
    assert codes(deployment.judge()[0]) == ["CRE111"]


def test_stars_as_gatekeeper_reads_them() -> None:
    for pattern, name, matches in (
        ("team-*", "team-a", True),
        ("*-a", "team-a", True),
        ("*eam*", "team-a", True),
        ("*", "team-a", True),
        ("team-a", "team-a", True),
        ("team", "team-a", False),
        ("*team", "team-a", False),
    ):
        assert _matches(pattern, name) is matches, pattern
