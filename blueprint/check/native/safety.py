"""Security contexts: forms and contradictions (what a Pod Security level allows is another matter).

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidateSecurityContext,
validatePodSpecSecurityContext).
"""

from __future__ import annotations

import re

from blueprint.check import forms
from blueprint.check.native.problems import MAX_INT32, Problems
from blueprint.check.shapes import Body, items, mapping, maps, number, text

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_PROFILES = ("RuntimeDefault", "Localhost", "Unconfined")


def _identities(problems: Problems, at: str, security: Body) -> None:
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        value = number(security.get(name))
        if value is not None and not 0 <= value <= MAX_INT32:
            problems.add("NAT114", f"{at}.{name}", f"{name} {value} is not between 0 and {MAX_INT32}")


def _profiles(problems: Problems, at: str, security: Body) -> None:
    for name in ("seccompProfile", "appArmorProfile"):
        if security.get(name) is None:
            continue
        profile, here = mapping(security[name]), f"{at}.{name}"
        kind, local = profile.get("type"), profile.get("localhostProfile")
        if "type" in profile:
            problems.choice("NAT114", f"{here}.type", kind, _PROFILES, True)
        if kind == "Localhost" and (local is None or (local == "" and name == "appArmorProfile")):
            problems.add("NAT114", here, "Localhost needs a localhostProfile")
        elif kind == "Localhost" and name == "seccompProfile" and (problem := forms.relative_path(text(local))):
            problems.add("NAT114", f"{here}.localhostProfile", f"{local!r} {problem}")
        elif kind != "Localhost" and local is not None:
            problems.add("NAT114", f"{here}.localhostProfile", f"{kind} takes no localhostProfile")


def container_security(problems: Problems, at: str, security: Body) -> None:
    """NAT114 for a container."""
    _identities(problems, at, security)
    _profiles(problems, at, security)
    if security.get("procMount") is not None:
        problems.choice("NAT114", f"{at}.procMount", security["procMount"], ("Default", "Unmasked"), True)
    if security.get("allowPrivilegeEscalation") is False:
        if security.get("privileged") is True:
            problems.add("NAT114", at, "privileged contradicts allowPrivilegeEscalation: false")
        if "CAP_SYS_ADMIN" in items(mapping(security.get("capabilities")).get("add")):
            problems.add("NAT114", at, "CAP_SYS_ADMIN contradicts allowPrivilegeEscalation: false")


def pod_security(problems: Problems, at: str, spec: Body) -> None:
    """NAT114 for a pod; `at` is the path of its spec."""
    security = mapping(spec.get("securityContext"))
    here = f"{at}.securityContext"
    _identities(problems, here, security)
    _profiles(problems, here, security)
    for index, group in enumerate(items(security.get("supplementalGroups"))):
        if (value := number(group)) is not None and not 0 <= value <= MAX_INT32:
            problems.add(
                "NAT114", f"{here}.supplementalGroups[{index}]", f"group {value} is not between 0 and {MAX_INT32}"
            )
    if spec.get("hostPID") is True and spec.get("shareProcessNamespace") is True:
        problems.add("NAT114", f"{at}.shareProcessNamespace", "shareProcessNamespace and hostPID exclude each other")
    for name, allowed in _CHOICES.items():
        if security.get(name) is not None:
            problems.choice("NAT114", f"{here}.{name}", security[name], allowed, True)
    _sysctls(problems, f"{here}.sysctls", security, spec)
    if spec.get("hostUsers") is False:
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(name) is True:
                problems.add("NAT114", f"{at}.{name}", f"{name} excludes hostUsers: false")
    elif any(
        mapping(each.get("securityContext")).get("procMount") == "Unmasked" for each in maps(spec.get("containers"))
    ):
        problems.add("NAT114", f"{at}.hostUsers", "an unmasked /proc needs hostUsers: false")


_CHOICES = {
    "fsGroupChangePolicy": ("OnRootMismatch", "Always"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("Recursive", "MountOption"),
}
_OF_THE_NETWORK = ("net.",)
_OF_IPC = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _sysctls(problems: Problems, at: str, security: Body, spec: Body) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(maps(security.get("sysctls"))):
        name = text(sysctl.get("name"))
        here = f"{at}[{index}].name"
        if not name or len(name) > 253 or not _SYSCTL.fullmatch(name):
            problems.add("NAT114", here, f"{name!r} is no name of a sysctl")
        elif name in seen:
            problems.add("NAT114", here, f"sysctl {name} is given twice")
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") is True and dotted.startswith(_OF_THE_NETWORK):
            problems.add("NAT114", here, f"sysctl {name} is that of the node, because of hostNetwork")
        if spec.get("hostIPC") is True and dotted.startswith(_OF_IPC):
            problems.add("NAT114", here, f"sysctl {name} is that of the node, because of hostIPC")
