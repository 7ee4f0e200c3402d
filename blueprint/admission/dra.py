"""Devices that pods claim through Dynamic Resource Allocation, charged to quota under the mapped names.

Source: kueue v0.17.0 pkg/dra/claims.go, pkg/dra/extended_resources.go, pkg/controller/core/workload_controller.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from blueprint.admission.amounts import Resources, add, raise_to
from blueprint.admission.body import Body, at, mapping, rows, text, whole
from blueprint.admission.reasons import Kind, Reason, Verdict
from blueprint.admission.requests import Container, Needs
from blueprint.admission.settings import Settings
from blueprint.finding import Ref

GROUP = "resource.k8s.io"


@dataclass(frozen=True, slots=True)
class Devices:
    """What the claims of one pod cost (by resource), which plain requests they stand for, and what is wrong."""

    charges: Resources
    replaced: frozenset[str]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """Where claims are looked up: templates by namespace and name, DeviceClasses by extended resource name."""

    template: Callable[[str, str], Body | None]
    extended: Mapping[str, tuple[str, ...]]
    settings: Settings


def devices(podset: str, namespace: str, spec: Body, pod: Needs, claims: Claims) -> Devices:
    """The devices of one pod of a pod set."""
    written = rows(spec, "resourceClaims")
    settings = claims.settings
    if not settings.counts_devices:
        if not written:
            return Devices({}, frozenset(), ())
        message = "claims are not counted: the feature gate of Kueue is off, so its devices bypass quota"
        return Devices({}, frozenset(), (_reason("KQ503", podset, message, Verdict.NOTE),))
    charges: Resources = {}
    for claim in written:
        if text(claim, "resourceClaimName"):
            message = "a pod that names a ResourceClaim directly is inadmissible: name a ResourceClaimTemplate"
            return Devices({}, frozenset(), (_reason("KQ502", podset, message),))
    for claim in written:
        name = text(claim, "resourceClaimTemplateName")
        if not name:
            continue
        reason = _charge(podset, Ref(GROUP, "ResourceClaimTemplate", namespace, name), claims, charges)
        if reason is not None:
            return Devices({}, frozenset(), (reason,))
    replaced: set[str] = set()
    if settings.gate("DRAExtendedResources"):
        replaced = _extended(pod, claims, charges)
    return Devices(charges, frozenset(replaced), ())


def _charge(podset: str, ref: Ref, claims: Claims, charges: Resources) -> Reason | None:
    template = claims.template(ref.namespace, ref.name)
    if template is None:
        return _reason("KQ502", podset, f"{ref} does not exist", object=ref)
    body = mapping(template, "spec", "spec", "devices")
    if problem := _unsupported(body, claims.settings):
        return _reason("KQ502", podset, f"{ref} has {problem}, which Kueue {claims.settings.version} does not accept")
    for request in rows(body, "requests"):
        exactly = mapping(request, "exactly") or request
        device = text(exactly, "deviceClassName")
        if not device:
            continue
        name = claims.settings.devices.get(device)
        if name is None:
            message = f"DeviceClass {device} has no row in deviceClassMappings of Kueue's configuration"
            return _reason("KQ501", podset, message, object=claims.settings.object)
        count = whole(exactly, "count")
        add(charges, {name: Fraction(1 if count is None else count)})
    return None


def _unsupported(body: Body, settings: Settings) -> str:
    """The first thing in a claim that this version refuses, "" for none."""
    if rows(body, "constraints") and not settings.behaves("dra-constraints"):
        return "constraints"
    if rows(body, "config") and not settings.behaves("dra-config"):
        return "config"
    for request in rows(body, "requests"):
        if "firstAvailable" in request:
            return "firstAvailable"
        exactly = mapping(request, "exactly") or request
        if rows(exactly, "selectors") and not settings.behaves("dra-selectors"):
            return "selectors of a request"
        if at(exactly, "adminAccess") is True:
            return "adminAccess"
        if text(exactly, "allocationMode") not in ("", "ExactCount"):
            return f"allocationMode {text(exactly, 'allocationMode')}"
    return ""


def _extended(pod: Needs, claims: Claims, charges: Resources) -> set[str]:
    """Charge extended resources that a DeviceClass stands behind; the largest init container or all others."""
    replaced: set[str] = set()

    def converted(container: Container) -> Resources:
        result: Resources = {}
        for name, value in container.requests.items():
            classes = claims.extended.get(name)
            if classes and value:
                replaced.add(name)
                mapped = [claims.settings.devices[each] for each in classes if each in claims.settings.devices]
                add(result, {mapped[0] if mapped else name: Fraction(math.ceil(value))})
        return result

    largest: Resources = {}
    for each in pod.init:
        raise_to(largest, converted(each))
    together: Resources = {}
    for each in pod.containers:
        add(together, converted(each))
    raise_to(together, largest)
    add(charges, together)
    return replaced


def _reason(
    code: str, podset: str, message: str, verdict: Verdict = Verdict.NEVER, object: Ref | None = None
) -> Reason:
    return Reason(code, Kind.DEVICES, message, verdict, podset=podset, object=object)
