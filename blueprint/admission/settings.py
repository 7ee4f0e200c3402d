"""Kueue's version and configuration, as far as they change a decision.

The configuration is a `Configuration` of group config.kueue.x-k8s.io, as a file of its own or inside a ConfigMap
(key `controller_manager_config.yaml`; kueue v0.17.0 apis/config/v1beta2/configuration_types.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml_rs

from blueprint.admission.amounts import Resources, resources
from blueprint.admission.body import Body, at, mapping, rows, text, texts
from blueprint.admission.match import LabelSelector
from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.errors import UsageError
from blueprint.finding import Ref
from blueprint.objects import Manifest

GROUP = "config.kueue.x-k8s.io"
DEFAULT_VERSION = "0.17.0"
_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@cache
def behaves(behaviour: str, release: str) -> bool:
    """Whether a release of Kueue behaves as the row of that name in `catalog/data/kueue.yaml` says.

    A release that is no version number counts as the newest.
    """
    return _since(next(each for each in table("kueue")["behaviours"] if each["name"] == behaviour), release)


def asked_for(release: str) -> str:
    """A version of Kueue that somebody asks for by name, as it is; "" stands for the one that the inventory names.

    Raises UsageError for one of which nothing is known.
    """
    found = version(release)
    minors = [str(each) for each in table("kueue")["minors"]]
    if release and (found is None or f"{found[0]}.{found[1]}" not in minors):
        hint = f"known are {minors[0]}.0 to {minors[-1]}.x, such as --kueue {DEFAULT_VERSION}"
        raise UsageError(f"{release} is no version of Kueue whose rules are known", hint=hint)
    return release


@cache
def default_gate(name: str, release: str) -> bool:
    """Whether a feature gate is open in a release unless it is set."""
    changes = [each for each in table("kueue")["gate_changes"] if each["name"] == name and _since(each, release)]
    return bool(changes[-1]["value"] if changes else table("kueue")["gates"].get(name, False))


def _since(row: Mapping[str, Any], release: str) -> bool:
    mine = version(release)
    if mine is None:
        return True
    since = sorted(found for each in row["since"] if (found := version(str(each))) is not None)
    same_minor = [each for each in since if each[:2] == mine[:2]]
    return mine >= same_minor[0] if same_minor else mine > since[-1]


@dataclass(frozen=True, slots=True)
class Transformation:
    """How an input resource is charged as others (`resources.transformations`)."""

    retain: bool
    multiply_by: str
    outputs: Resources


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides, of Kueue's version and configuration.

    `given` is False where no configuration is among the objects: integrations and gates are then not judged.
    `strategies` are the fair sharing strategies, None for classical preemption.
    """

    version: str = DEFAULT_VERSION
    given: bool = False
    object: Ref | None = None
    frameworks: frozenset[str] = frozenset({"batch/job"})
    without_queue_name: bool = False
    namespaces: LabelSelector | None = None
    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, Transformation] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, bool] = field(default_factory=dict)
    strategies: tuple[str, ...] | None = None

    def gate(self, name: str) -> bool:
        """Whether a feature gate is open."""
        return self.gates.get(name, default_gate(name, self.version))

    @property
    def counts_devices(self) -> bool:
        """Whether claims for devices are charged to quota."""
        default = behaves("dra-default", self.version)
        if default:
            return self.gates.get("KueueDRAIntegration", True)
        return self.gates.get("DynamicResourceAllocation", False)

    def behaves(self, behaviour: str) -> bool:
        """Whether this version behaves so, see `behaves`."""
        return behaves(behaviour, self.version)


def find_settings(manifests: Iterable[Manifest], release: str) -> Settings:
    """The settings from the first configuration among the objects; defaults where there is none."""
    for manifest in manifests:
        for body in _configurations(manifest):
            return _settings(body, release, manifest.ref)
    return Settings(version=release)


def _configurations(manifest: Manifest) -> Iterable[Body]:
    if manifest.kind == "Configuration" and manifest.api_version.startswith(f"{GROUP}/"):
        yield manifest.body
    if manifest.kind != "ConfigMap" or manifest.api_version != "v1":
        return
    for content in mapping(manifest.body, "data").values():
        if isinstance(content, str) and GROUP in content:
            try:
                loaded: Any = yaml_rs.loads(content, parse_datetime=False)
            except ValueError:
                continue
            if at(loaded, "kind") == "Configuration" and text(loaded, "apiVersion").startswith(f"{GROUP}/"):
                yield loaded


def _settings(body: Body, release: str, ref: Ref) -> Settings:
    integrations = mapping(body, "integrations")
    frameworks = texts(integrations, "frameworks") + texts(integrations, "externalFrameworks")
    fair = at(body, "fairSharing")
    strategies = tuple(texts(fair, "preemptionStrategies")) or _STRATEGIES
    selector = at(body, "managedJobsNamespaceSelector")
    devices = {
        device: text(row, "name")
        for row in rows(body, "resources", "deviceClassMappings")
        for device in texts(row, "deviceClassNames")
    }
    return Settings(
        version=release,
        given=True,
        object=ref,
        frameworks=frozenset(frameworks or ["batch/job"]),
        without_queue_name=at(body, "manageJobsWithoutQueueName") is True,
        namespaces=LabelSelector.of(selector) if isinstance(selector, dict) else None,
        excluded=tuple(texts(body, "resources", "excludeResourcePrefixes")),
        transformations={
            text(row, "input"): Transformation(
                retain=text(row, "strategy") != "Replace",
                multiply_by=text(row, "multiplyBy"),
                outputs=resources(row, "outputs"),
            )
            for row in rows(body, "resources", "transformations")
        },
        devices=devices,
        gates={name: value for name, value in mapping(body, "featureGates").items() if isinstance(value, bool)},
        strategies=strategies if isinstance(fair, dict) and fair.get("enable") is not False else None,
    )
