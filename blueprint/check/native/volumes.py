"""Volumes of a pod and claims for storage.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource and
what it calls, ValidatePersistentVolumeClaimSpec).
"""

from __future__ import annotations

from collections.abc import Callable

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.containers import field_reference, resource_reference
from blueprint.check.native.problems import Problems, label_selector
from blueprint.check.shapes import Body, items, mapping, maps, number, text

_FILE_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_HOST_PATHS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_ACCESS = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def volumes(problems: Problems, at: str, value: object) -> dict[str, Body]:
    """NAT103: the volumes of a pod; gives them by name."""
    known: dict[str, Body] = {}
    for index, volume in enumerate(maps(value)):
        name, here = volume.get("name"), f"{at}[{index}]"
        if isinstance(name, str):
            if problem := forms.label_1123(name):
                problems.add("NAT103", f"{here}.name", f"volume name {name!r} {problem}")
            elif name in known:
                problems.add("NAT103", f"{here}.name", f"volume {name!r} is given twice")
            known[name] = volume
        sources = [source for source in volume if source != "name" and volume[source] is not None]
        if len(sources) > 1:
            problems.add("NAT103", here, f"volume {name} has {len(sources)} sources: {', '.join(sorted(sources))}")
        for source in sources:
            if check := _SOURCES.get(source):
                check(problems, f"{here}.{source}", mapping(volume[source]))
    return known


def _mode(problems: Problems, at: str, holder: Body, name: str) -> None:
    value = number(holder.get(name))
    if value is not None and not 0 <= value <= 0o777:
        problems.add("NAT103", f"{at}.{name}", f"{name} {value} is not between 0 and 511 (0777)")


def _empty(problems: Problems, code: str, at: str, holder: Body, *names: str) -> None:
    """Texts that must be given and not be empty, where the schema asks for none."""
    for name in names:
        if not holder.get(name) and isinstance(holder.get(name, ""), str):
            problems.add(code, f"{at}.{name}" if name in holder else at, f"{name} must be given")


def _files(problems: Problems, at: str, source: Body) -> None:
    for index, entry in enumerate(maps(source.get("items"))):
        here = f"{at}.items[{index}]"
        for name in ("key", "path"):
            if entry.get(name) == "":
                problems.add("NAT103", f"{here}.{name}", f"{name} is empty")
        if problem := forms.local_path(text(entry.get("path"))):
            problems.add("NAT103", f"{here}.path", f"path {entry.get('path')!r} {problem}")
        _mode(problems, here, entry, "mode")


def _config_map(problems: Problems, at: str, source: Body) -> None:
    _empty(problems, "NAT103", at, source, "name")
    _mode(problems, at, source, "defaultMode")
    _files(problems, at, source)


def _secret(problems: Problems, at: str, source: Body) -> None:
    _empty(problems, "NAT103", at, source, "secretName")
    _mode(problems, at, source, "defaultMode")
    _files(problems, at, source)


def _claim(problems: Problems, at: str, source: Body) -> None:
    if source.get("claimName") == "":
        problems.add("NAT103", f"{at}.claimName", "claimName is empty")


def _empty_dir(problems: Problems, at: str, source: Body) -> None:
    if (limit := resources.amount(source.get("sizeLimit"))) is not None and limit < 0:
        problems.add("NAT103", f"{at}.sizeLimit", f"sizeLimit {source['sizeLimit']} is negative")


def _host_path(problems: Problems, at: str, source: Body) -> None:
    path = text(source.get("path"))
    if source.get("path") == "" or ".." in path.split("/"):
        problems.add("NAT103", f"{at}.path", "path must be given, without '..'")
    if source.get("type") is not None:
        problems.choice("NAT103", f"{at}.type", source["type"], _HOST_PATHS)


def _nfs(problems: Problems, at: str, source: Body) -> None:
    if source.get("server") == "":
        problems.add("NAT103", f"{at}.server", "server is empty")
    path = source.get("path")
    if isinstance(path, str) and not path.startswith("/"):
        problems.add("NAT103", f"{at}.path", f"path {path!r} is not absolute")


def _csi(problems: Problems, at: str, source: Body) -> None:
    driver = source.get("driver")
    if isinstance(driver, str) and (len(driver) > 63 or forms.subdomain(driver.lower())):
        problems.add("NAT103", f"{at}.driver", f"driver {driver!r} is no DNS name of at most 63 characters")
    if source.get("nodePublishSecretRef") is not None:
        name = text(mapping(source["nodePublishSecretRef"]).get("name"))
        if problem := forms.subdomain(name):
            problems.add("NAT103", f"{at}.nodePublishSecretRef", f"secret {name!r} {problem}")


def _image(problems: Problems, at: str, source: Body) -> None:
    if source.get("pullPolicy"):
        problems.choice("NAT103", f"{at}.pullPolicy", source["pullPolicy"], ("Always", "IfNotPresent", "Never"))


def _ephemeral(problems: Problems, at: str, source: Body) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        problems.add("NAT103", at, "volumeClaimTemplate must be given")
    else:
        claim_spec(problems, "NAT103", f"{at}.volumeClaimTemplate.spec", mapping(mapping(template).get("spec")))


def _downward(problems: Problems, at: str, source: Body) -> None:
    _mode(problems, at, source, "defaultMode")
    for index, entry in enumerate(maps(source.get("items"))):
        here = f"{at}.items[{index}]"
        path = text(entry.get("path"))
        if problem := forms.local_path(path) or ("" if path or "path" not in entry else "is empty"):
            problems.add("NAT103", f"{here}.path", f"path {path!r} {problem}")
        _mode(problems, here, entry, "mode")
        field, resource = entry.get("fieldRef"), entry.get("resourceFieldRef")
        if (field is None) == (resource is None):
            problems.add("NAT103", here, "exactly one of fieldRef and resourceFieldRef must be given")
        if field is not None:
            field_reference(problems, "NAT103", f"{here}.fieldRef", mapping(field), _FILE_FIELDS)
        elif resource is not None:
            resource_reference(problems, "NAT103", f"{here}.resourceFieldRef", mapping(resource))
            if not mapping(resource).get("containerName"):
                problems.add("NAT103", f"{here}.resourceFieldRef", "containerName must be given in a volume")


def _projected(problems: Problems, at: str, source: Body) -> None:
    _mode(problems, at, source, "defaultMode")
    paths: set[str] = set()
    for index, part in enumerate(maps(source.get("sources"))):
        here = f"{at}.sources[{index}]"
        kinds = [name for name in part if part[name] is not None]
        if len(kinds) > 1:
            problems.add("NAT103", here, f"one source has {len(kinds)} kinds: {', '.join(sorted(kinds))}")
        for name in kinds:
            body = mapping(part[name])
            if name in ("secret", "configMap"):
                _empty(problems, "NAT103", f"{here}.{name}", body, "name")
                _files(problems, f"{here}.{name}", body)
            elif name == "downwardAPI":
                _downward(problems, f"{here}.{name}", body)
            elif name == "serviceAccountToken":
                seconds = number(body.get("expirationSeconds"), 3600) or 0
                if not 600 <= seconds <= 2**32:
                    problems.add(
                        "NAT103", f"{here}.{name}.expirationSeconds", "must be between 600 (ten minutes) and 2^32"
                    )
                if problem := forms.local_path(text(body.get("path"))) or (
                    "is empty" if body.get("path") == "" else ""
                ):
                    problems.add("NAT103", f"{here}.{name}.path", f"path {body.get('path')!r} {problem}")
            for path in [text(entry.get("path")) for entry in maps(body.get("items"))]:
                if path and path in paths:
                    problems.add("NAT103", here, f"two sources write the file {path}")
                paths.add(path)


_SOURCES: dict[str, Callable[[Problems, str, Body], None]] = {
    "configMap": _config_map,
    "csi": _csi,
    "downwardAPI": _downward,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "hostPath": _host_path,
    "image": _image,
    "nfs": _nfs,
    "persistentVolumeClaim": _claim,
    "projected": _projected,
    "secret": _secret,
}


def claim_spec(problems: Problems, code: str, at: str, spec: Body) -> None:
    """The spec of a claim for storage: a claim, a template of claims, an ephemeral volume."""
    modes = items(spec.get("accessModes"))
    if not modes:
        problems.add(
            code, f"{at}.accessModes" if "accessModes" in spec else at, "at least one access mode must be given"
        )
    for mode in modes:
        problems.choice(code, f"{at}.accessModes", mode, _ACCESS)
    if "ReadWriteOncePod" in modes and set(modes) & set(_ACCESS[:3]):
        problems.add(code, f"{at}.accessModes", "ReadWriteOncePod excludes other access modes")
    label_selector(problems, code, f"{at}.selector", spec.get("selector"))
    requests = mapping(mapping(spec.get("resources")).get("requests"))
    if "storage" not in requests:
        problems.add(code, f"{at}.resources", "resources.requests.storage must be given")
    elif (size := resources.amount(requests["storage"])) is not None and size <= 0:
        problems.add(
            code, f"{at}.resources.requests.storage", f"storage {requests['storage']} must be more than nothing"
        )
    for name in ("storageClassName", "volumeAttributesClassName"):
        value = spec.get(name)
        if isinstance(value, str) and value and (problem := forms.subdomain(value)):
            problems.add(code, f"{at}.{name}", f"{name} {value!r} {problem}")
    if spec.get("volumeMode") is not None:
        problems.choice(code, f"{at}.volumeMode", spec["volumeMode"], ("Block", "Filesystem"), True)
    for name in ("dataSource", "dataSourceRef"):
        if spec.get(name) is not None:
            source = mapping(spec[name])
            for part in ("kind", "name"):
                if source.get(part) == "":
                    problems.add(code, f"{at}.{name}.{part}", f"{part} is empty")
            group = text(source.get("apiGroup"))
            if group and (problem := forms.subdomain(group)):
                problems.add(code, f"{at}.{name}.apiGroup", f"apiGroup {group!r} {problem}")
            if not source.get("apiGroup") and source.get("kind") not in ("PersistentVolumeClaim", None):
                problems.add(code, f"{at}.{name}", f"{source['kind']} needs an apiGroup")
