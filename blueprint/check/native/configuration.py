"""ConfigMaps, Secrets, Namespaces and claims for storage.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidateConfigMap, ValidateSecret,
ValidatePersistentVolumeClaim); k8s.io/pod-security-admission@v0.35.4 api/helpers.go.
"""

from __future__ import annotations

import base64
import json
import re

from blueprint.check import forms
from blueprint.check.native.problems import Problems
from blueprint.check.native.volumes import claim_spec
from blueprint.check.shapes import Body, mapping, text

_ANY_OF = "any of"
_TYPES: dict[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/basic-auth": (_ANY_OF, "username", "password"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_POD_SECURITY = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")


def config_map(problems: Problems, body: Body) -> None:
    """NAT401 for a ConfigMap."""
    data, binary = mapping(body.get("data")), mapping(body.get("binaryData"))
    for name, bag in (("data", data), ("binaryData", binary)):
        _keys(problems, name, bag)
    for key in data.keys() & binary.keys():
        problems.add("NAT401", "data", f"key {key!r} is in data and binaryData")


def _keys(problems: Problems, name: str, bag: Body) -> None:
    for key in bag:
        if problem := forms.config_key(str(key)):
            problems.add("NAT401", name, f"key {key!r} {problem}")


def secret(problems: Problems, body: Body) -> None:
    """NAT401, NAT402 for a Secret."""
    data, plain = mapping(body.get("data")), mapping(body.get("stringData"))
    for name, bag in (("data", data), ("stringData", plain)):
        _keys(problems, name, bag)
    kind, here = text(body.get("type")), {**data, **plain}
    wanted = _TYPES.get(kind, ())
    if wanted and wanted[0] == _ANY_OF:
        if not here.keys() & set(wanted):
            problems.add("NAT402", "type", f"a secret of type {kind} needs {' or '.join(wanted[1:])}")
    else:
        for key in wanted:
            if key not in here or (key == "ssh-privatekey" and not here[key]):
                problems.add("NAT402", "type", f"a secret of type {kind} needs the key {key}")
    if kind == "kubernetes.io/service-account-token":
        annotations = mapping(mapping(body.get("metadata")).get("annotations"))
        if not annotations.get("kubernetes.io/service-account.name"):
            message = "a token needs the annotation kubernetes.io/service-account.name"
            problems.add("NAT402", "metadata.annotations" if annotations else "metadata", message)
    if (
        kind.startswith("kubernetes.io/docker")
        and wanted
        and wanted[0] in here
        and not _is_json_map(data, plain, wanted[0])
    ):
        problems.add("NAT402", "data" if wanted[0] in data else "stringData", f"{wanted[0]} is no JSON map")


def _is_json_map(data: Body, plain: Body, key: str) -> bool:
    value = text(plain.get(key))
    try:
        content = value.encode() if key in plain else base64.b64decode(text(data.get(key)))
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False


def namespace(problems: Problems, body: Body) -> None:
    """NAT406: labels of a Namespace that set its Pod Security level."""
    given = mapping(mapping(body.get("metadata")).get("labels"))
    for mode in ("enforce", "audit", "warn"):
        level, version = given.get(f"{_POD_SECURITY}{mode}"), given.get(f"{_POD_SECURITY}{mode}-version")
        if level is not None:
            problems.choice("NAT406", "metadata.labels", level, ("privileged", "baseline", "restricted"))
        if isinstance(version, str) and not _VERSION.fullmatch(version):
            message = f"Pod Security version {version!r} of {mode} is neither latest nor v1.N"
            problems.add("NAT406", "metadata.labels", message)


def volume_claim(problems: Problems, body: Body) -> None:
    """NAT403 for a PersistentVolumeClaim."""
    claim_spec(problems, "NAT403", "spec", mapping(body.get("spec")))
