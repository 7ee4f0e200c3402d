"""Each control: a pod that breaks it, the same pod mended, and one beside it that must pass.

The whole was also compared with the pods under test/testdata of k8s.io/pod-security-admission@v0.35.4 (v1.25 to v1.35).
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from blueprint.check.pods import PodTemplate
from blueprint.check.standards import Policy, violations
from tests.check.test_security import GOOD


def pod(**changes: Any) -> dict[str, Any]:
    """The good pod with fields of the pod, its `security`, its container `c`, or the container's `inner` security."""
    spec = copy.deepcopy(GOOD)
    container: dict[str, Any] = spec["containers"][0]  # type: ignore[assignment,index]
    spec["securityContext"].update(changes.pop("security", {}))  # type: ignore[union-attr]
    container["securityContext"].update(changes.pop("inner", {}))
    container.update(changes.pop("c", {}))
    return {**spec, **changes}


def judge(spec: dict[str, Any], level: str, minor: int = 35, **annotations: str) -> list[str]:
    metadata = {"annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}
    return [violation.code for violation in violations(PodTemplate("", metadata, spec), Policy(level, minor))]


BREAKING = [
    ("PSS101", pod(hostNetwork=True), pod(hostNetwork=False)),
    ("PSS101", pod(hostPID=True), pod(hostPID=False)),
    ("PSS101", pod(hostIPC=True), pod(hostIPC=False)),
    ("PSS102", pod(inner={"privileged": True}), pod(inner={"privileged": False})),
    ("PSS103", pod(inner={"capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}), pod()),
    ("PSS104", pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), pod(volumes=[{"name": "v", "emptyDir": {}}])),
    ("PSS105", pod(c={"ports": [{"hostPort": 80}]}), pod(c={"ports": [{"hostPort": 0, "containerPort": 80}]})),
    (
        "PSS106",
        pod(c={"livenessProbe": {"httpGet": {"host": "a"}}}),
        pod(c={"livenessProbe": {"httpGet": {"host": ""}}}),
    ),
    ("PSS106", pod(c={"lifecycle": {"preStop": {"tcpSocket": {"host": "a"}}}}), pod(c={"lifecycle": {"preStop": {}}})),
    (
        "PSS107",
        pod(security={"appArmorProfile": {"type": "Unconfined"}}),
        pod(security={"appArmorProfile": {"type": "Localhost"}}),
    ),
    (
        "PSS108",
        pod(inner={"seLinuxOptions": {"type": "spc_t"}}),
        pod(inner={"seLinuxOptions": {"type": "container_t"}}),
    ),
    ("PSS108", pod(security={"seLinuxOptions": {"user": "u"}}), pod(security={"seLinuxOptions": {"level": "s0"}})),
    ("PSS109", pod(inner={"procMount": "Unmasked"}), pod(inner={"procMount": "Default"})),
    (
        "PSS111",
        pod(security={"sysctls": [{"name": "kernel.msgmax"}]}),
        pod(security={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}),
    ),
    ("PSS112", pod(security={"windowsOptions": {"hostProcess": True}}), pod(security={"windowsOptions": {}})),
]


@pytest.mark.parametrize(("code", "bad", "good"), BREAKING, ids=lambda value: value if isinstance(value, str) else "")
def test_baseline(code: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    assert judge(bad, "baseline") == [code]
    assert judge(good, "baseline") == []
    assert judge(good, "restricted") == []
    assert judge(bad, "restricted")
    assert judge(bad, "privileged") == []


def test_seccomp_may_be_unset_in_baseline_only() -> None:
    off = pod(security={"seccompProfile": {"type": "Unconfined"}})
    unset = pod(security={"seccompProfile": None})
    each = pod(security={"seccompProfile": None}, inner={"seccompProfile": {"type": "Localhost"}})
    assert (judge(off, "baseline"), judge(off, "restricted")) == (["PSS110"], ["PSS205"])
    assert (judge(unset, "baseline"), judge(unset, "restricted")) == ([], ["PSS205"])
    assert judge(each, "restricted") == []


RESTRICTING = [
    (
        "PSS201",
        pod(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
        pod(volumes=[{"name": "v", "csi": {}}]),
    ),
    ("PSS202", pod(inner={"allowPrivilegeEscalation": True}), pod()),
    ("PSS202", pod(inner={"allowPrivilegeEscalation": None}), pod()),
    (
        "PSS203",
        pod(security={"runAsNonRoot": None}),
        pod(security={"runAsNonRoot": None}, inner={"runAsNonRoot": True}),
    ),
    ("PSS203", pod(inner={"runAsNonRoot": False}), pod(inner={"runAsNonRoot": True})),
    ("PSS204", pod(security={"runAsUser": 0}), pod(security={"runAsUser": 1})),
    ("PSS204", pod(inner={"runAsUser": 0}), pod(inner={"runAsUser": 1000})),
    ("PSS206", pod(inner={"capabilities": {"drop": ["NET_RAW"]}}), pod()),
    (
        "PSS206",
        pod(inner={"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
        pod(inner={"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
    ),
]


@pytest.mark.parametrize(
    ("code", "bad", "good"), RESTRICTING, ids=lambda value: value if isinstance(value, str) else ""
)
def test_restricted(code: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    assert judge(bad, "restricted") == [code]
    assert judge(good, "restricted") == []
    assert judge(bad, "baseline") == []


def test_every_container_counts() -> None:
    init = pod(initContainers=[{"name": "i"}])
    assert judge(init, "restricted") == ["PSS202", "PSS206"]
    debug = pod(ephemeralContainers=[{"name": "e", "securityContext": {"privileged": True}}])
    assert judge(debug, "baseline") == ["PSS102"]


def test_a_user_namespace_relaxes_some_controls_since_1_35() -> None:
    own = pod(hostUsers=False, security={"runAsNonRoot": None, "runAsUser": 0})
    assert judge(own, "restricted") == []
    assert judge(own, "restricted", minor=34) == ["PSS203", "PSS204"]
    unmasked = pod(hostUsers=False, inner={"procMount": "Unmasked"})
    assert (judge(unmasked, "baseline"), judge(unmasked, "restricted")) == ([], ["PSS109"])


def test_windows_pods_are_let_off_what_they_have_not() -> None:
    spec = pod(os={"name": "windows"}, security={"seccompProfile": None}, c={"securityContext": {}})
    assert judge(spec, "restricted") == []


def test_controls_that_came_later() -> None:
    probe = pod(c={"livenessProbe": {"tcpSocket": {"host": "a"}}})
    assert (judge(probe, "baseline", 33), judge(probe, "baseline", 34)) == ([], ["PSS106"])
    engine = pod(security={"seLinuxOptions": {"type": "container_engine_t"}})
    assert (judge(engine, "baseline", 30), judge(engine, "baseline", 31)) == (["PSS108"], [])
    keepalive = pod(security={"sysctls": [{"name": "net.ipv4.tcp_keepalive_time"}]})
    assert (judge(keepalive, "baseline", 28), judge(keepalive, "baseline", 29)) == (["PSS111"], [])


def test_apparmor_annotations() -> None:
    key = "container.apparmor.security.beta.kubernetes.io__c"
    assert judge(pod(), "baseline", 35, **{key: "unconfined"}) == ["PSS107"]
    assert judge(pod(), "baseline", 35, **{key: "runtime/default"}) == []
    assert judge(pod(), "baseline", 35, **{key: "localhost/x"}) == []
