"""Containers: names, images, ports, environment, mounts, probes and hooks.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (validateContainerCommon and what it calls).
"""

from __future__ import annotations

from collections.abc import Callable

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.problems import Problems, port_number, port_or_name
from blueprint.check.native.safety import container_security
from blueprint.check.shapes import Body, items, mapping, maps, number, text

PROTOCOLS = frozenset({"TCP", "UDP", "SCTP"})
_PULL = frozenset({"Always", "IfNotPresent", "Never"})
_MESSAGE = frozenset({"File", "FallbackToLogsOnError"})
_PROPAGATION = frozenset({"None", "HostToContainer", "Bidirectional"})
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FIELD_PATHS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"}
    | {"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)
_RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)


def container(
    problems: Problems, at: str, body: Body, volumes: dict[str, Body], claims: set[str], needs_image: bool
) -> None:
    """NAT101 to NAT110: what holds for every container of a pod; `at` is its path."""
    name = body.get("name")
    if isinstance(name, str) and (problem := forms.label_1123(name)):
        problems.add("NAT101", f"{at}.name", f"container name {name!r} {problem}")
    if needs_image and not body.get("image") and isinstance(body.get("image", ""), str):
        problems.add("NAT102", f"{at}.image" if "image" in body else at, "the container has no image")
    if "imagePullPolicy" in body and body["imagePullPolicy"] != "":
        problems.choice("NAT102", f"{at}.imagePullPolicy", body["imagePullPolicy"], _PULL)
    if body.get("terminationMessagePolicy"):
        problems.choice("NAT102", f"{at}.terminationMessagePolicy", body["terminationMessagePolicy"], _MESSAGE)
    if "ports" in body:
        _ports(problems, f"{at}.ports", body["ports"])
    if "env" in body:
        _env(problems, f"{at}.env", body["env"])
    if "envFrom" in body:
        _env_from(problems, f"{at}.envFrom", body["envFrom"])
    if "volumeMounts" in body:
        _mounts(problems, at, body, volumes)
    if "volumeDevices" in body:
        _devices(problems, at, body, volumes)
    if "resources" in body:
        given = mapping(body["resources"])
        resources.requirements(problems, f"{at}.resources", given)
        if "claims" in given:
            resources.claims(problems, f"{at}.resources", given, claims)
    if "securityContext" in body:
        container_security(problems, f"{at}.securityContext", mapping(body["securityContext"]))


def _ports(problems: Problems, at: str, value: object) -> None:
    seen: set[str] = set()
    for index, port in enumerate(maps(value)):
        name = port.get("name")
        if isinstance(name, str) and name:
            if problem := forms.port_name(name):
                problems.add("NAT106", f"{at}[{index}].name", f"port name {name!r} {problem}")
            elif name in seen:
                problems.add("NAT106", f"{at}[{index}].name", f"port name {name!r} is given twice in one container")
            seen.add(name)
        if problem := port_number(port.get("containerPort")):
            problems.add("NAT106", f"{at}[{index}].containerPort", problem)
        if port.get("hostPort") and (problem := port_number(port["hostPort"])):
            problems.add("NAT106", f"{at}[{index}].hostPort", problem)
        if port.get("protocol"):
            problems.choice("NAT106", f"{at}[{index}].protocol", port["protocol"], PROTOCOLS)


def _env(problems: Problems, at: str, value: object) -> None:
    for index, variable in enumerate(maps(value)):
        name = variable.get("name")
        if isinstance(name, str) and (problem := forms.env_name(name)):
            problems.add("NAT105", f"{at}[{index}].name", f"variable {name!r}: the name {problem}")
        if variable.get("valueFrom") is not None:
            _env_source(problems, f"{at}[{index}]", variable)


def _env_source(problems: Problems, at: str, variable: Body) -> None:
    source = mapping(variable["valueFrom"])
    given = [name for name in source if source[name] is not None]
    if not given:
        problems.add("NAT105", f"{at}.valueFrom", "valueFrom names no source")
    elif variable.get("value"):
        problems.add("NAT105", at, f"variable {variable.get('name')} has a value and a source", "keep one of the two")
    elif len(given) > 1:
        problems.add("NAT105", f"{at}.valueFrom", f"valueFrom names {len(given)} sources: {', '.join(given)}")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            reference = mapping(source[name])
            if problem := forms.subdomain(text(reference.get("name"))):
                problems.add("NAT105", f"{at}.valueFrom.{name}.name", f"name {reference.get('name')!r} {problem}")
            key = reference.get("key")
            if isinstance(key, str) and (problem := forms.config_key(key)):
                problems.add("NAT105", f"{at}.valueFrom.{name}.key", f"key {key!r} {problem}")
    if "fieldRef" in source:
        field_reference(problems, "NAT105", f"{at}.valueFrom.fieldRef", mapping(source["fieldRef"]), _FIELD_PATHS)
    if "resourceFieldRef" in source:
        resource_reference(problems, "NAT105", f"{at}.valueFrom.resourceFieldRef", mapping(source["resourceFieldRef"]))


def field_reference(problems: Problems, code: str, at: str, reference: Body, allowed: frozenset[str]) -> None:
    """A field of the pod that a variable or a file shows."""
    path = reference.get("fieldPath")
    if not isinstance(path, str):
        return
    base, bracket, rest = path.partition("['")
    if bracket and rest.endswith("']"):
        key = rest[:-2]
        if base not in ("metadata.labels", "metadata.annotations"):
            problems.add(code, f"{at}.fieldPath", f"{base} takes no key")
        elif problem := forms.qualified_name(key if base == "metadata.labels" else key.lower()):
            problems.add(code, f"{at}.fieldPath", f"key {key!r}: {problem}")
    elif path not in allowed:
        problems.add(code, f"{at}.fieldPath", f"{path!r} is no field that a pod can show to its containers")


def resource_reference(problems: Problems, code: str, at: str, reference: Body) -> None:
    """A request or limit that a variable or a file shows."""
    name = reference.get("resource")
    huge = ("limits.hugepages-", "requests.hugepages-")
    if isinstance(name, str) and name not in _RESOURCES and not name.startswith(huge):
        problems.add(code, f"{at}.resource", f"{name!r} is no request or limit that can be shown to containers")


def _env_from(problems: Problems, at: str, value: object) -> None:
    for index, source in enumerate(maps(value)):
        prefix = source.get("prefix")
        if isinstance(prefix, str) and prefix and (problem := forms.env_name(prefix)):
            problems.add("NAT105", f"{at}[{index}].prefix", f"prefix {prefix!r} {problem}")
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        if len(given) != 1:
            problems.add("NAT105", f"{at}[{index}]", "exactly one of configMapRef and secretRef must be given")
        for name in given:
            target = text(mapping(source[name]).get("name"))
            if problem := forms.subdomain(target):
                problems.add("NAT105", f"{at}[{index}].{name}.name", f"name {target!r} {problem}")


def _mounts(problems: Problems, at: str, body: Body, volumes: dict[str, Body]) -> None:
    paths: set[str] = set()
    devices = {text(device.get("name")): device.get("devicePath") for device in maps(body.get("volumeDevices"))}
    for index, mount in enumerate(maps(body["volumeMounts"])):
        name, path = mount.get("name"), mount.get("mountPath")
        here = f"{at}.volumeMounts[{index}]"
        if isinstance(name, str) and name not in volumes:
            problems.add("NAT104", f"{here}.name", f"the pod has no volume {name!r}", "add the volume or mend the name")
        if path == "":
            problems.add("NAT104", f"{here}.mountPath", "mountPath is empty")
        if isinstance(path, str):
            if path in paths:
                problems.add("NAT104", f"{here}.mountPath", f"{path} is mounted twice in one container")
            paths.add(path)
        if devices and (name in devices or path in devices.values()):
            problems.add("NAT104", here, f"{name} is mounted and given as a device, too")
        for field in ("subPath", "subPathExpr"):
            if mount.get(field) and (problem := forms.relative_path(text(mount[field]))):
                problems.add("NAT104", f"{here}.{field}", f"{field} {mount[field]!r} {problem}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            problems.add("NAT104", here, "subPath and subPathExpr exclude each other")
        if mount.get("mountPropagation") is not None:
            problems.choice("NAT104", f"{here}.mountPropagation", mount["mountPropagation"], _PROPAGATION, True)
            privileged = mapping(body.get("securityContext")).get("privileged") is True
            if mount["mountPropagation"] == "Bidirectional" and not privileged:
                problems.add("NAT104", f"{here}.mountPropagation", "Bidirectional needs a privileged container")
        if mount.get("recursiveReadOnly") is not None:
            _recursive(problems, here, mount)


def _recursive(problems: Problems, at: str, mount: Body) -> None:
    how = mount["recursiveReadOnly"]
    problems.choice("NAT104", f"{at}.recursiveReadOnly", how, ("Disabled", "IfPossible", "Enabled"), True)
    if how in ("IfPossible", "Enabled"):
        if mount.get("readOnly") is not True:
            problems.add("NAT104", f"{at}.recursiveReadOnly", f"{how} needs readOnly: true")
        if mount.get("mountPropagation") not in (None, "None"):
            problems.add("NAT104", f"{at}.recursiveReadOnly", f"{how} excludes mount propagation")


def _devices(problems: Problems, at: str, body: Body, volumes: dict[str, Body]) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(maps(body["volumeDevices"])):
        name, path = text(device.get("name")), text(device.get("devicePath"))
        here = f"{at}.volumeDevices[{index}]"
        if name not in volumes:
            problems.add("NAT104", f"{here}.name", f"the pod has no volume {name!r}")
        elif not volumes[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
            problems.add("NAT104", f"{here}.name", f"volume {name} is no claim: only claims can be devices")
        if name in names or path in paths:
            problems.add("NAT104", here, f"{name} or {path} is given twice")
        if not path or forms.relative_path(path.lstrip("/")):
            problems.add("NAT104", f"{here}.devicePath", "devicePath must be a path without '..'")
        names.add(name)
        paths.add(path)


def probes_and_hooks(problems: Problems, at: str, body: Body, grace: int) -> None:
    """NAT107: probes and lifecycle hooks; `grace` is the pod's time to end, in seconds."""
    for name in _PROBES:
        if body.get(name) is not None:
            _probe(problems, f"{at}.{name}", name, mapping(body[name]), grace)
    if body.get("lifecycle") is not None:
        lifecycle = mapping(body["lifecycle"])
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                _handler(problems, f"{at}.lifecycle.{name}", mapping(lifecycle[name]), _HOOKS, grace)


def _probe(problems: Problems, at: str, name: str, probe: Body, grace: int) -> None:
    _handler(problems, at, probe, _CHECKS, grace)
    problems.at_least(
        "NAT107",
        at,
        probe,
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    )
    if name != "readinessProbe" and number(probe.get("successThreshold"), 1) not in (0, 1):
        problems.add("NAT107", f"{at}.successThreshold", f"successThreshold of a {name} must be 1")
    ends = probe.get("terminationGracePeriodSeconds")
    if ends is not None and name == "readinessProbe":
        problems.add("NAT107", f"{at}.terminationGracePeriodSeconds", "a readinessProbe ends nothing: remove it")
    elif (number(ends, 1) or 0) < 1:
        problems.add("NAT107", f"{at}.terminationGracePeriodSeconds", "must be at least 1")


def _handler(problems: Problems, at: str, handler: Body, known: dict[str, _Action], grace: int) -> None:
    given = [name for name in known if handler.get(name) is not None]
    if not given:
        problems.add("NAT107", at, f"none of {', '.join(known)} is given")
    elif len(given) > 1:
        problems.add("NAT107", at, f"{' and '.join(given)} exclude each other", "keep one of them")
    for name in given[:1]:
        known[name](problems, f"{at}.{name}", mapping(handler[name]), grace)


_Action = Callable[[Problems, str, Body, int], None]


def _exec(problems: Problems, at: str, action: Body, grace: int) -> None:
    if not items(action.get("command")):
        problems.add("NAT107", f"{at}.command", "the command is empty")


def _http(problems: Problems, at: str, action: Body, grace: int) -> None:
    if problem := port_or_name(action.get("port")):
        problems.add("NAT107", f"{at}.port", problem)
    if action.get("scheme"):
        problems.choice("NAT107", f"{at}.scheme", action["scheme"], ("HTTP", "HTTPS"))
    for index, header in enumerate(maps(action.get("httpHeaders"))):
        name = header.get("name")
        if isinstance(name, str) and (problem := forms.header_name(name)):
            problems.add("NAT107", f"{at}.httpHeaders[{index}].name", f"header {name!r} {problem}")


def _tcp(problems: Problems, at: str, action: Body, grace: int) -> None:
    if problem := port_or_name(action.get("port")):
        problems.add("NAT107", f"{at}.port", problem)


def _sleep(problems: Problems, at: str, action: Body, grace: int) -> None:
    seconds = number(action.get("seconds"))
    if seconds is not None and not 0 <= seconds <= grace:
        message = f"{seconds} s is not between 0 and the pod's terminationGracePeriodSeconds ({grace})"
        problems.add("NAT107", f"{at}.seconds", message)


_CHECKS: dict[str, _Action] = {"exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "grpc": _tcp}
_HOOKS: dict[str, _Action] = {"exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "sleep": _sleep}
