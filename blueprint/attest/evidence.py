"""What a cluster says of itself, as `kubectl get … -o json` or a folder of YAML gives it, and how times are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from blueprint.attest.refusal import Refused
from blueprint.catalog.schemas import SchemaPack
from blueprint.catalog.tables import table
from blueprint.check.defaults import with_defaults
from blueprint.check.read import read
from blueprint.errors import UsageError
from blueprint.objects import Manifest, mapping

Body = Mapping[str, Any]

AHEAD: Final = timedelta(minutes=5)
"""How far clocks of a cluster may be ahead of ours."""


@dataclass(frozen=True, slots=True)
class Window:
    """When evidence counts: not after `now`, and not longer ago than the ages allow."""

    now: datetime
    reports: timedelta = timedelta(minutes=75)
    """Kyverno scans every hour unless it is told otherwise (kyverno v1.19.1 cmd/reports-controller/main.go)."""
    backup: timedelta = timedelta(hours=24)
    store: timedelta = timedelta(hours=1)


@dataclass(slots=True)
class World:
    """Objects by (group, kind); `refusals` collects every reason, so that one run tells them all."""

    objects: dict[tuple[str, str], list[Manifest]] = field(default_factory=dict)
    refusals: list[Refused] = field(default_factory=list)

    @classmethod
    def read(cls, files: Sequence[Path]) -> World:
        """Read files and folders of objects, lists included. Raises UsageError for what cannot be read."""
        reading = read(files)
        if broken := [finding for finding in reading.findings if finding.fails]:
            first = broken[0]
            raise UsageError(f"the evidence cannot be read: {first.message}", where=str(first.source or ""))
        return cls.of((*reading.manifests, *reading.aside))

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> World:
        """A world of objects."""
        world = cls()
        for manifest in manifests:
            world.objects.setdefault((manifest.ref.group, manifest.kind), []).append(manifest)
        return world

    def all(self, group: str, *kinds: str) -> Iterator[Manifest]:
        """Every object of the kinds of a group, in the order of their names."""
        found = [manifest for kind in kinds for manifest in self.objects.get((group, kind), ())]
        yield from sorted(found, key=lambda manifest: manifest.ref)

    def named(self, group: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """One object, or None."""
        for manifest in self.objects.get((group, kind), ()):
            if manifest.ref.name == name and (not namespace or manifest.ref.namespace == namespace):
                return manifest
        return None

    def refuse(self, code: str, message: str, fix: str = "") -> None:
        """Note a reason not to give the credential."""
        self.refusals.append(Refused(code, message, fix=fix))

    def cluster_uid(self) -> str:
        """The UID of the namespace kube-system, by which clusters are told apart; "" where it is not there."""
        found = self.named("", "Namespace", "kube-system")
        return str(mapping(found.body.get("metadata")).get("uid") or "") if found else ""


def count(value: object) -> int:
    """A whole number that the API leaves out where it is 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def moment(value: object) -> datetime | None:
    """A time as Kubernetes writes it (RFC 3339) or a report does ({seconds, nanos}); None for anything else."""
    try:
        if isinstance(value, dict) and isinstance(value.get("seconds"), int):
            return datetime.fromtimestamp(value["seconds"], UTC)
        if not isinstance(value, str):
            return None
        read_as = datetime.fromisoformat(value)
        return read_as.astimezone(UTC) if read_as.tzinfo else None
    except (ValueError, OverflowError, OSError):
        return None


def written(value: datetime) -> str:
    """A time in whole seconds of UTC."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def settled(policy: Manifest) -> object:
    """The spec of a policy as an API server keeps it: defaults filled in, and without fields that hold nothing."""
    kind = _pack().kind(policy.api_version, policy.kind)
    tree = kind.defaults if kind is not None else {}
    own = table("policy_defaults").get(policy.kind) if policy.ref.group == "admissionregistration.k8s.io" else None
    filled = with_defaults({"p": {"spec": own}} if own else tree, dict(policy.body))
    return _bare(filled.get("spec"))


@cache
def _pack() -> SchemaPack:
    return SchemaPack.shipped()


def _bare(value: object) -> object:
    if isinstance(value, dict):
        kept = {key: _bare(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, {}, [])}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value
