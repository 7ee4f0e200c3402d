"""Certain means certain, where the judge is kube-apiserver: it refuses the bad example, and takes the good one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from blueprint.check import tree_rules, validate
from blueprint.conform.client import Answer, Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.daemon import NotReady
from blueprint.objects import Manifest
from tests.conformance.certain.replay import ids, pack, reading
from tests.conformance.certain.table import Case, cases
from tests.conformance.kueue.oracle import Body

NAMESPACE = "certain"


def sent(plane: ControlPlane, text: str) -> Iterator[tuple[Manifest, Answer]]:
    """What the server says to each object of an example; namespaces are really made, and their labels set."""
    found = reading(text)
    for manifest in sorted(found.manifests, key=lambda each: each.kind != "Namespace"):
        body = manifest.body
        if manifest.kind == "Namespace" and len(manifest.ref.name) < 64 and manifest.ref.name != "kube-system":
            plane.client.apply(body)
        else:
            with suppress(NotReady):  # a namespace whose name no server takes
                plane.namespace(manifest.ref.namespace or "default")
        if manifest.kind == "Pod" and isinstance(body.get("spec"), dict):
            _named(plane, body["spec"], manifest.ref.namespace or "default")
        answer = plane.client.create(body, at=_target(body), dry_run=True)
        yield manifest, answer if answer.status != 409 else Answer(200, {}, answer.warnings)


def _named(plane: ControlPlane, spec: Body, namespace: str) -> None:
    """Make what admission plugins look up for a pod."""
    if account := spec.get("serviceAccountName"):
        meta = {"name": account, "namespace": namespace}
        plane.client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    if name := spec.get("runtimeClassName"):
        kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
        plane.client.apply({**kind, "metadata": {"name": name}, "handler": "runc"})
    if name := spec.get("priorityClassName"):
        how = {"preemptionPolicy": spec["preemptionPolicy"]} if "preemptionPolicy" in spec else {}
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        plane.client.apply({**kind, "metadata": {"name": name}, "value": 9, **how})


def _target(body: Body) -> Target:
    of = Target.of(body)
    meta = body.get("metadata")
    return (
        of if isinstance(meta, dict) and meta.get("namespace") else Target(of.api_version, of.kind, "default", of.name)
    )


@ids(cases("apiserver"))
def test_the_server_refuses_it(case: Case, platform_plane: ControlPlane) -> None:
    good = [answer.message for _, answer in sent(platform_plane, case.good) if not answer.ok]
    bad = [answer.message for _, answer in sent(platform_plane, case.bad) if not answer.ok]
    assert (good, bool(bad)) == ([], True)


@ids(cases("text"))
def test_the_server_does_not_read_it(case: Case, control_plane: ControlPlane) -> None:
    def answer(text: str) -> Answer:
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        path = "/api/v1/namespaces/default/configmaps"
        return control_plane.client.request("POST", path, text.encode(), content_type="application/yaml", query=query)

    assert answer(case.good).ok
    assert not answer(case.bad).ok


@ids(cases("warning"))
def test_the_server_warns_of_it(case: Case, platform_plane: ControlPlane) -> None:
    assert [answer.warnings for _, answer in sent(platform_plane, case.bad) if answer.warnings]
    assert not [answer.warnings for _, answer in sent(platform_plane, case.good) if answer.warnings]


def test_a_status_is_dropped(platform_plane: ControlPlane) -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": NAMESPACE},
        "spec": {"clusterQueue": "a"},
        "status": {"pendingWorkloads": 3},
    }
    answer = platform_plane.client.create(body, dry_run=True)
    assert answer.ok
    assert "status" not in answer.body or not answer.body["status"].get("pendingWorkloads")


def test_what_json_has_not_cannot_be_sent(control_plane: ControlPlane) -> None:
    text = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": NaN}}'
    assert not control_plane.client.request("POST", "/api/v1/namespaces/default/configmaps", text).ok


@pytest.mark.parametrize(("code", "size"), [("SIZ101", 257), ("SIZ102", 1025), ("SIZ103", 1537)])
def test_what_is_too_large_is_refused(code: str, size: int, platform_plane: ControlPlane) -> None:
    def sized(kib: int) -> Body:
        body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{NAMESPACE}-{code.lower()}"}}
        text = "x" * (kib * 1024)
        if code == "SIZ101":
            body["metadata"]["annotations"] = {"a": text}
        elif code == "SIZ102":
            body["data"] = {"a": text}
        else:
            # Anything that a CRD lets through unread: etcd's limit is that of the request.
            argument = {"name": "a", "value": text}
            spec = {
                "args": [argument],
                "metrics": [{"name": "m", "provider": {"web": {"url": "http://a", "jsonPath": "$"}}}],
            }
            body |= {"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "spec": spec}
        return body

    def said(body: Body) -> set[str]:
        return {finding.code for finding in validate([Manifest(body, _HERE)], pack()).findings if finding.fails}

    small, large = sized(size - 128), sized(size)
    assert code in said(large) and not said(small)
    assert platform_plane.client.create(small).ok
    platform_plane.client.delete(Target.of(small))
    assert not platform_plane.client.create(large).ok


_HERE = reading("{apiVersion: v1, kind: A, metadata: {name: a}}").manifests[0].source

SECURE = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
PODS: dict[str, tuple[str, Body, Body]] = {
    # level, what is added to the spec, what is added to the security context of the container
    "PSS101": ("baseline", {"hostNetwork": True}, {}),
    "PSS102": ("baseline", {}, {"privileged": True, "allowPrivilegeEscalation": True}),
    "PSS103": ("baseline", {}, {"capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": True}),
    "PSS104": ("baseline", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, {}),
    "PSS107": ("baseline", {}, {"appArmorProfile": {"type": "Unconfined"}}),
    "PSS108": ("baseline", {}, {"seLinuxOptions": {"user": "u"}}),
    "PSS109": ("baseline", {}, {"procMount": "Unmasked"}),
    "PSS110": ("baseline", {}, {"seccompProfile": {"type": "Unconfined"}}),
    "PSS111": ("baseline", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {}),
    "PSS201": ("restricted", {"volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}]}, {}),
    "PSS202": ("restricted", {}, {"allowPrivilegeEscalation": True}),
    "PSS203": ("restricted", {}, {"runAsNonRoot": False}),
    "PSS204": ("restricted", {}, {"runAsUser": 0}),
    "PSS205": ("restricted", {}, {"seccompProfile": None}),
    "PSS206": ("restricted", {}, {"capabilities": {"drop": ["NET_RAW"]}}),
}


@pytest.mark.parametrize("code", PODS)
def test_pods_that_a_level_does_not_allow_are_refused(code: str, control_plane: ControlPlane) -> None:
    level, added, security = PODS[code]
    name = f"{NAMESPACE}-{level}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    control_plane.namespace(name, labels)

    def pod(spec: Body, context: Body) -> Body:
        container = {"name": "c", "image": "registry.example.com/c", "securityContext": {**SECURE, **context}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": name}}
        return {**body, "spec": {"containers": [container], **spec}}

    def said(body: Body) -> set[str]:
        found = validate([Manifest(namespace, _HERE), Manifest(body, _HERE)], pack(), tree_rules=tree_rules()).findings
        return {finding.code for finding in found if finding.code.startswith("PSS") and finding.fails}

    good, bad = pod({}, {}), pod(added, security)
    assert said(good) == set()
    assert code in said(bad)
    assert control_plane.client.create(good, dry_run=True).ok
    answer = control_plane.client.create(bad, dry_run=True)
    assert not answer.ok and ("violates PodSecurity" in answer.message or "Unmasked" in answer.message)
