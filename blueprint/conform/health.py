"""The health of an object as Argo CD judges it: our scripts, those that it ships, and its functions for core kinds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml_rs

from blueprint.catalog.argocd import health_check
from blueprint.catalog.gating import group_kind
from blueprint.conform import modules
from blueprint.errors import EnvironmentLacks
from blueprint.render import health

Body = dict[str, Any]

#: argo-cd v3.6.1 util/lua/lua.go opens package, base and table, and an os of date and time; strings have no methods.
_RESTRICT = """
getmetatable("").__index = nil
string, math, io, debug, coroutine, python, dofile, loadfile = nil, nil, nil, nil, nil, nil, nil, nil
os = { time = os.time, date = os.date }
"""


class Health(NamedTuple):
    """A status of Argo CD, and its words."""

    status: str
    message: str = ""


def judge(body: Body, *, scripted: bool = True) -> Health:
    """The health of an object as it is read from a server; Healthy where Argo CD knows no check for its kind.

    `scripted` is false for an Argo CD without our scripts. Raises EnvironmentLacks without lupa or Go.
    """
    group = body["apiVersion"].rpartition("/")[0]
    kind = body["kind"]
    ours = health.scripts() if scripted else {}
    script = ours.get((group, kind)) or ours.get((group, "*"))
    if script is None:
        check = health_check(group, kind)
        if check is None:
            return Health("Healthy", "no check")
        if check.by != "lua":
            return _BY_GO.get(kind, _nothing)(body)
        script = _shipped(group, kind)
    return _run(script, body)


@cache
def _shipped(group: str, kind: str) -> str:
    root = modules.folder("github.com/argoproj/argo-cd/v3", "crds") / "resource_customizations"
    return (root / group / kind / "health.lua").read_text("utf-8")


def _run(script: str, body: Body) -> Health:
    try:
        import lupa.lua51 as lua
    except ImportError:
        raise EnvironmentLacks(
            "health scripts are run by Lua, from the package lupa", hint="pip install lupa"
        ) from None
    state = lua.LuaRuntime(unpack_returned_tuples=True, register_eval=False)

    def convert(value: Any) -> Any:  # noqa: ANN401 (any JSON value)
        if isinstance(value, dict):
            return state.table_from({key: convert(below) for key, below in value.items() if below is not None})
        return state.table_from([convert(below) for below in value]) if isinstance(value, list) else value

    converted = convert(body)
    state.execute(_RESTRICT)
    state.globals().obj = converted
    returned = dict(state.execute(script))
    return Health(str(returned.get("status", "Unknown")), str(returned.get("message") or ""))


def _deployment(body: Body) -> Health:
    """gitops-engine v3.6.1 pkg/health/health_deployment.go."""
    spec, status = body.get("spec", {}), body.get("status") or {}
    if status.get("observedGeneration", 0) < body["metadata"].get("generation", 0):
        return Health("Progressing", "its controller has not seen this generation yet")
    for row in status.get("conditions") or ():
        if row["type"] == "Progressing" and row.get("reason") == "ProgressDeadlineExceeded":
            return Health("Degraded", row.get("message", ""))
    wanted, updated = spec.get("replicas", 1), status.get("updatedReplicas", 0)
    if updated < wanted or status.get("replicas", 0) > updated or status.get("availableReplicas", 0) < updated:
        failures = [row.get("message", "") for row in status.get("conditions") or () if row["type"] == "ReplicaFailure"]
        return Health(
            "Progressing", "; ".join(failures) or f"{status.get('availableReplicas', 0)} of {wanted} available"
        )
    return Health("Healthy")


def _claim(body: Body) -> Health:
    """gitops-engine v3.6.1 pkg/health/health_pvc.go."""
    phase = (body.get("status") or {}).get("phase", "")
    return Health({"Bound": "Healthy", "Lost": "Degraded", "Pending": "Progressing"}.get(phase, "Unknown"), phase)


def _service(body: Body) -> Health:
    """gitops-engine v3.6.1 pkg/health/health_service.go."""
    if body["spec"].get("type") != "LoadBalancer":
        return Health("Healthy")
    reached = ((body.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    return Health("Healthy" if reached else "Progressing")


def _nothing(body: Body) -> Health:
    raise EnvironmentLacks(f"Argo CD judges {body['kind']} in Go, and the suite does not know how")


_BY_GO: Mapping[str, Callable[[Body], Health]] = {
    "Deployment": _deployment,
    "PersistentVolumeClaim": _claim,
    "Service": _service,
}


class StandIn(NamedTuple):
    """The status that a controller would write, and which component it is."""

    component: str
    status: Body


def stand_in(body: Body) -> StandIn | None:
    """What the controller of an object would write into its status, None where nobody is played."""
    group, kind = body["apiVersion"].rpartition("/")[0], body["kind"]
    generation = body["metadata"].get("generation", 1)
    for row in _rows():
        if group_kind(row["kind"]) in ((group, kind), (group, "*")):
            return StandIn(row["component"], _filled(row["status"], generation))
    return None


@cache
def _rows() -> list[Body]:
    text = resources.files("blueprint.conform").joinpath("data/standins.yaml").read_text("utf-8")
    rows: Any = yaml_rs.loads(text, parse_datetime=False)
    return list(rows)


def _filled(value: Any, generation: int) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(value, dict):
        return {key: _filled(below, generation) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, generation) for below in value]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    known = {"$generation": generation, "$text": str(generation), "$now": now}
    return known.get(value, value) if isinstance(value, str) else value


def constraint_crd(template: Body) -> Body:
    """The CustomResourceDefinition that Gatekeeper makes of a ConstraintTemplate, open below spec and status.

    Source: gatekeeper v3.23.1, frameworks/constraint pkg/client/crds/crd_helpers.go.
    """
    kind = template["spec"]["crd"]["spec"]["names"]["kind"]
    plural = kind.lower()
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": loose, "status": loose}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.constraints.gatekeeper.sh"},
        "spec": {
            "group": "constraints.gatekeeper.sh",
            "names": {"kind": kind, "plural": plural, "singular": plural, "listKind": f"{kind}List"},
            "scope": "Cluster",
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }
