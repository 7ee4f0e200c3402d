"""The controls of the Pod Security Standards, baseline and restricted.

Source: k8s.io/pod-security-admission@v0.35.4 policy/check_*.go. Controls that changed are told apart by the minor
version of the policy, back to v1.25; an older policy is read as v1.25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from blueprint.check.pods import PodTemplate, containers
from blueprint.check.shapes import Body, items, mapping, maps, text

LATEST = 35
"""The minor version that `latest` means."""

LEVELS = ("privileged", "baseline", "restricted")


class Policy(NamedTuple):
    """A level of the standards and the minor version whose controls count."""

    level: str
    minor: int = LATEST


class Violation(NamedTuple):
    """One control that a pod breaks; `path` is below the pod's spec, `where` says who breaks it."""

    code: str
    message: str
    path: str
    fix: str


class _Pod(NamedTuple):
    metadata: Body
    spec: Body
    security: Body
    containers: list[tuple[str, Body, Body]]
    minor: int

    @property
    def windows(self) -> bool:
        return mapping(self.spec.get("os")).get("name") == "windows"

    @property
    def own_users(self) -> bool:
        """In a user namespace of its own, which relaxes some controls since v1.35."""
        return self.spec.get("hostUsers") is False and self.minor >= 35


_Control = Callable[[_Pod], Iterator[Violation]]


def _names(breakers: Sequence[tuple[str, Body]], pod: bool = False) -> str:
    """Who breaks a control: `pod and container "a"`."""
    names = ", ".join(f'"{text(container.get("name"))}"' for _, container in breakers)
    who = f"container{'s' if len(breakers) > 1 else ''} {names}" if breakers else ""
    return " and ".join(part for part in ("pod" if pod else "", who) if part)


def _host_namespaces(pod: _Pod) -> Iterator[Violation]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(name) is True:
            yield Violation("PSS101", f"{name} shares a namespace of the node", name, f"remove {name}")


def _privileged(pod: _Pod) -> Iterator[Violation]:
    bad = [(path, c) for path, c, security in pod.containers if security.get("privileged") is True]
    if bad:
        path = f"{bad[0][0]}.securityContext.privileged"
        yield Violation("PSS102", f"{_names(bad)} must not be privileged", path, "remove privileged")


_CAPABILITIES = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"}
    | {"SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)


def _added_capabilities(pod: _Pod, allowed: frozenset[str], code: str) -> Iterator[Violation]:
    bad, names = [], set()
    for path, container, security in pod.containers:
        added = {str(name) for name in items(mapping(security.get("capabilities")).get("add"))} - allowed
        if added:
            bad.append((path, container))
            names |= added
    if bad:
        message = f"{_names(bad)} must not add the capabilities {', '.join(sorted(names))}"
        yield Violation(code, message, f"{bad[0][0]}.securityContext.capabilities.add", "remove them from add")


def _capabilities(pod: _Pod) -> Iterator[Violation]:
    yield from _added_capabilities(pod, _CAPABILITIES, "PSS103")


def _host_paths(pod: _Pod) -> Iterator[Violation]:
    for index, volume in enumerate(maps(pod.spec.get("volumes"))):
        if volume.get("hostPath") is not None:
            message = f'volume "{text(volume.get("name"))}" is a path of the node'
            yield Violation("PSS104", message, f"volumes[{index}].hostPath", "use another kind of volume")


def _host_ports(pod: _Pod) -> Iterator[Violation]:
    for path, container, _ in pod.containers:
        for index, port in enumerate(maps(container.get("ports"))):
            if port.get("hostPort"):
                message = f'container "{text(container.get("name"))}" uses port {port["hostPort"]} of the node'
                yield Violation("PSS105", message, f"{path}.ports[{index}].hostPort", "remove hostPort")


def _host_probes(pod: _Pod) -> Iterator[Violation]:
    if pod.minor < 34:
        return
    for path, container, _ in pod.containers:
        handlers = [(name, container.get(name)) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        lifecycle = mapping(container.get("lifecycle"))
        handlers += [(f"lifecycle.{name}", lifecycle.get(name)) for name in ("postStart", "preStop")]
        for name, handler in handlers:
            for action in ("httpGet", "tcpSocket"):
                if handler and mapping(mapping(handler).get(action)).get("host"):
                    message = f'container "{text(container.get("name"))}" names a host in {name}'
                    yield Violation("PSS106", message, f"{path}.{name}.{action}.host", "remove host: the pod is meant")


_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def _apparmor(pod: _Pod) -> Iterator[Violation]:
    def wrong(security: Body) -> bool:
        profile = security.get("appArmorProfile")
        return profile is not None and mapping(profile).get("type") not in ("RuntimeDefault", "Localhost")

    bad = [(path, c) for path, c, security in pod.containers if wrong(security)]
    if wrong(pod.security) or bad:
        path = "securityContext" if wrong(pod.security) else f"{bad[0][0]}.securityContext"
        message = f"{_names(bad, wrong(pod.security))} must not turn AppArmor off"
        yield Violation("PSS107", message, f"{path}.appArmorProfile.type", "write RuntimeDefault")
    for key, value in mapping(pod.metadata.get("annotations")).items():
        allowed = not text(value) or value == "runtime/default" or text(value).startswith("localhost/")
        if key.startswith(_APPARMOR) and not allowed:
            yield Violation("PSS107", f"annotation {key} turns AppArmor off", "", "remove the annotation")


def _selinux(pod: _Pod) -> Iterator[Violation]:
    types = {"", "container_t", "container_init_t", "container_kvm_t"}
    if pod.minor >= 31:
        types.add("container_engine_t")

    def wrong(security: Body) -> bool:
        options = mapping(security.get("seLinuxOptions"))
        return text(options.get("type")) not in types or bool(options.get("user")) or bool(options.get("role"))

    bad = [(path, c) for path, c, security in pod.containers if wrong(security)]
    if wrong(pod.security) or bad:
        path = "securityContext" if wrong(pod.security) else f"{bad[0][0]}.securityContext"
        message = f"{_names(bad, wrong(pod.security))} must not choose an SELinux user, role or foreign type"
        yield Violation("PSS108", message, f"{path}.seLinuxOptions", "remove user, role and type")


def _proc_mount(pod: _Pod, code: str) -> Iterator[Violation]:
    bad = [
        (path, c)
        for path, c, security in pod.containers
        if security.get("procMount", "Default") not in ("Default", None)
    ]
    if bad:
        path = f"{bad[0][0]}.securityContext.procMount"
        yield Violation(code, f"{_names(bad)} must not unmask /proc", path, "remove procMount")


def _proc_mount_baseline(pod: _Pod) -> Iterator[Violation]:
    if not pod.own_users:
        yield from _proc_mount(pod, "PSS109")


def _seccomp_set(security: Body) -> str:
    """`good`, `bad` or `` for a profile that is not given."""
    profile = security.get("seccompProfile")
    if profile is None:
        return ""
    return "good" if mapping(profile).get("type") in ("RuntimeDefault", "Localhost") else "bad"


def _seccomp(pod: _Pod) -> Iterator[Violation]:
    bad = [(path, c) for path, c, security in pod.containers if _seccomp_set(security) == "bad"]
    on_pod = _seccomp_set(pod.security) == "bad"
    if on_pod or bad:
        path = "securityContext" if on_pod else f"{bad[0][0]}.securityContext"
        message = f"{_names(bad, on_pod)} must not turn seccomp off"
        yield Violation("PSS110", message, f"{path}.seccompProfile.type", "write RuntimeDefault")


_SYSCTLS = {
    0: "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range "
    "net.ipv4.ip_unprivileged_port_start",
    27: "net.ipv4.ip_local_reserved_ports",
    29: "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl "
    "net.ipv4.tcp_keepalive_probes",
    32: "net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
}


def _sysctls(pod: _Pod) -> Iterator[Violation]:
    sysctls = maps(pod.security.get("sysctls"))
    if not sysctls:
        return
    allowed = {name for since, names in _SYSCTLS.items() if pod.minor >= since for name in names.split()}
    for index, sysctl in enumerate(sysctls):
        if text(sysctl.get("name")) not in allowed:
            message = f"sysctl {sysctl.get('name')} is not one of the safe ones"
            yield Violation("PSS111", message, f"securityContext.sysctls[{index}].name", "remove it")


def _host_process(pod: _Pod) -> Iterator[Violation]:
    def wrong(security: Body) -> bool:
        return mapping(security.get("windowsOptions")).get("hostProcess") is True

    bad = [(path, c) for path, c, security in pod.containers if wrong(security)]
    if wrong(pod.security) or bad:
        path = "securityContext" if wrong(pod.security) else f"{bad[0][0]}.securityContext"
        message = f"{_names(bad, wrong(pod.security))} must not run as a process of the Windows node"
        yield Violation("PSS112", message, f"{path}.windowsOptions.hostProcess", "remove hostProcess")


_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)


def _volumes(pod: _Pod) -> Iterator[Violation]:
    for index, volume in enumerate(maps(pod.spec.get("volumes"))):
        sources = [name for name, source in volume.items() if name != "name" and source is not None]
        if sources and _VOLUMES.isdisjoint(sources):
            message = f'volume "{text(volume.get("name"))}" is of kind {", ".join(sorted(sources))}'
            yield Violation(
                "PSS201", message, f"volumes[{index}]", "use a PersistentVolumeClaim or an ephemeral volume"
            )


def _escalation(pod: _Pod) -> Iterator[Violation]:
    bad = [(path, c) for path, c, security in pod.containers if security.get("allowPrivilegeEscalation") is not False]
    if bad and not pod.windows:
        path = f"{bad[0][0]}.securityContext.allowPrivilegeEscalation"
        yield Violation("PSS202", f"{_names(bad)} must not gain privileges", path, "allowPrivilegeEscalation: false")


def _non_root(pod: _Pod) -> Iterator[Violation]:
    if pod.own_users:
        return
    on_pod = pod.security.get("runAsNonRoot")
    said = [(path, c) for path, c, security in pod.containers if security.get("runAsNonRoot") is False]
    if on_pod is False or said:
        path = "securityContext" if on_pod is False else f"{said[0][0]}.securityContext"
        message = f"{_names(said, on_pod is False)} must not allow root"
        yield Violation("PSS203", message, f"{path}.runAsNonRoot", "runAsNonRoot: true")
        return
    silent = [(path, c) for path, c, security in pod.containers if security.get("runAsNonRoot") is None]
    if on_pod is not True and silent:
        message = f"the pod, or {_names(silent)}, must refuse root"
        yield Violation("PSS203", message, "securityContext.runAsNonRoot", "runAsNonRoot: true")


def _root_user(pod: _Pod) -> Iterator[Violation]:
    if pod.own_users:
        return

    def wrong(security: Body) -> bool:
        return security.get("runAsUser") == 0 and security.get("runAsUser") is not False

    bad = [(path, c) for path, c, security in pod.containers if wrong(security)]
    if wrong(pod.security) or bad:
        path = "securityContext" if wrong(pod.security) else f"{bad[0][0]}.securityContext"
        message = f"{_names(bad, wrong(pod.security))} must not run as user 0"
        yield Violation("PSS204", message, f"{path}.runAsUser", "choose another user")


def _seccomp_restricted(pod: _Pod) -> Iterator[Violation]:
    if pod.windows:
        return
    worse = list(_seccomp(pod))
    if worse:
        yield worse[0]._replace(code="PSS205")
        return
    silent = [(path, c) for path, c, security in pod.containers if not _seccomp_set(security)]
    if silent and not _seccomp_set(pod.security):
        message = f"the pod, or {_names(silent)}, must set a seccomp profile"
        yield Violation(
            "PSS205", message, "securityContext.seccompProfile.type", "seccompProfile: {type: RuntimeDefault}"
        )


def _drop_all(pod: _Pod) -> Iterator[Violation]:
    if pod.windows:
        return
    bad = [
        (path, c)
        for path, c, security in pod.containers
        if "ALL" not in items(mapping(security.get("capabilities")).get("drop"))
    ]
    if bad:
        path = f"{bad[0][0]}.securityContext.capabilities.drop"
        yield Violation("PSS206", f"{_names(bad)} must drop all capabilities", path, "capabilities: {drop: [ALL]}")
    yield from _added_capabilities(pod, frozenset({"NET_BIND_SERVICE"}), "PSS206")


def _proc_mount_restricted(pod: _Pod) -> Iterator[Violation]:
    yield from _proc_mount(pod, "PSS109")


_BASELINE: tuple[_Control, ...] = (
    _host_namespaces,
    _privileged,
    _host_paths,
    _host_ports,
    _host_probes,
    _apparmor,
    _selinux,
    _sysctls,
    _host_process,
)
_CONTROLS: dict[str, tuple[_Control, ...]] = {
    "privileged": (),
    "baseline": (*_BASELINE, _capabilities, _proc_mount_baseline, _seccomp),
    "restricted": (
        *_BASELINE,
        _volumes,
        _escalation,
        _non_root,
        _root_user,
        _seccomp_restricted,
        _drop_all,
        _proc_mount_restricted,
    ),
}


def violations(template: PodTemplate, policy: Policy) -> list[Violation]:
    """What of a pod a policy refuses, control by control."""
    spec = template.spec
    visited = [(path, each, mapping(each.get("securityContext"))) for path, each in containers(spec)]
    pod = _Pod(template.metadata, spec, mapping(spec.get("securityContext")), visited, max(policy.minor, 25))
    return [violation for control in _CONTROLS[policy.level] for violation in control(pod)]
