"""What `check` calls certain about the material of a Go module, and what a real API server says to the same objects.

    python -m tests.conformance.published.faults MODULE@VERSION

prints the list of a module in the form of the files here, with a blank `why` for what only a person can judge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml_rs

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.read import read
from blueprint.check.shapes import mapping, text
from blueprint.conform.client import Client
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

HERE = Path(__file__).parent
BY_SERVER = ("CEL", "NAM", "NAT", "SCH", "SIZ", "UPG101", "UPG102")
"""Beginnings of the codes of rules that say what an API server refuses."""
NOT_BY_SERVER = frozenset({"SCH116"})
"""What a server takes, and whoever reads the object does not."""
BY_WEBHOOK = frozenset({("NAM108", "ConstraintTemplate")})
"""What a webhook refuses and the server alone takes."""


@dataclass(frozen=True)
class Fault:
    """One certain error in a module; `file` is below its folder, `object` a reference, "" where there is none."""

    code: str
    file: str
    object: str
    message: str
    manifest: Manifest | None

    @property
    def by_server(self) -> bool:
        """Whether an API server can judge it."""
        if self.code in NOT_BY_SERVER or self.manifest is None or (self.code, self.manifest.kind) in BY_WEBHOOK:
            return False
        if self.code == "SCH102" and not _of_the_pack(self.manifest):
            return False  # a CRD of the module serves other versions, and the server does not have it
        return self.code.startswith(BY_SERVER)


@cache
def modules() -> Path:
    """The Go module cache."""
    environment = os.environ | {"GOWORK": "off"}
    done = subprocess.run(["go", "env", "GOMODCACHE"], env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _of_the_pack(manifest: Manifest) -> bool:
    """Whether a kind is one that the server has, in whatever version."""
    pack = SchemaPack.shipped()
    versions = pack.versions(manifest.ref.group, manifest.kind)
    return bool(versions) or pack.moved(manifest.api_version, manifest.kind) is not None


def sure(finding: Finding) -> bool:
    """Whether a finding is an error with certainty."""
    return finding.severity is Severity.ERROR and finding.confidence is Confidence.CERTAIN


@dataclass(frozen=True)
class Look:
    """What `check` says of a folder: certain errors, one for each code and object, likely ones, and quiet objects.

    Quiet are whole objects with no error at all, of kinds that the server knows and that the module does not define.
    """

    faults: list[Fault]
    likely: list[Finding]
    quiet: list[Manifest]


def look(folder: Path) -> Look:
    """Check a folder as the command line does."""
    reading = read([folder], build=True)
    found = validate([*reading.manifests, *reading.aside], SchemaPack.shipped(), tree_rules=tree_rules()).findings
    manifests = {(manifest.source, manifest.ref): manifest for manifest in reading.manifests}
    seen: dict[tuple[str, str, str], Fault] = {}
    for finding in (*reading.findings, *found):
        if sure(finding):
            file = os.path.relpath(finding.source.file, folder) if finding.source else ""
            manifest = manifests.get((finding.source, finding.object)) if finding.source and finding.object else None
            fault = Fault(finding.code, file, str(finding.object or ""), finding.message, manifest)
            seen.setdefault((fault.code, fault.file, fault.object), fault)
    likely = [each for each in (*reading.findings, *found) if each.fails and not sure(each)]
    failing = {(each.source, each.object) for each in found if each.fails}
    pack = SchemaPack.shipped()
    specs = [mapping(each.body.get("spec")) for each in reading.manifests if each.kind == "CustomResourceDefinition"]
    own = {(text(spec.get("group")), text(mapping(spec.get("names")).get("kind"))) for spec in specs}
    quiet = [
        each
        for each in reading.manifests
        if not (each.unknown or each.draft or (each.source, each.ref) in failing)
        and (each.ref.group, each.kind) not in own
        and pack.kind(each.api_version, each.kind) is not None
    ]
    return Look(sorted(seen.values(), key=lambda each: (each.file, each.object, each.code)), likely, quiet)


class Server:
    """An API server that is asked about objects of strangers: their namespaces and accounts are made first."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._spaces: set[str] = set()

    def refuses(self, manifest: Manifest) -> str:
        """Why the server does not take an object, "" where it does; of a kind that it lacks it judges the metadata."""
        body: dict[str, Any] = json.loads(json.dumps(manifest.body))
        metadata = body.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("resourceVersion", None)
        if manifest.kind != "Namespace":
            self._space(manifest.ref.namespace or "default")  # where no controller makes its account either
        answer = self.client.create(body, dry_run=True)
        if answer.status == 404 and SchemaPack.shipped().kind(manifest.api_version, manifest.kind) is None:
            return self._unserved(manifest, metadata)
        return "" if answer.ok or answer.status == 409 else answer.message

    def _unserved(self, manifest: Manifest, metadata: object) -> str:
        if _of_the_pack(manifest):
            return "the kind is served in other versions"
        stand_in = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        answer = self.client.create(stand_in, dry_run=True)
        return "" if answer.ok else answer.message

    def _space(self, name: str) -> None:
        if name not in self._spaces:
            self._spaces.add(name)
            self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            account = {"name": "default", "namespace": name}
            self.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})


def lists() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each reviewed list: module@version, and what it holds."""
    for file in sorted(HERE.glob("*.yaml")):
        body = yaml_rs.loads(file.read_text("utf-8"), parse_datetime=False)
        yield body["module"], body


def table(found: list[Fault]) -> dict[str, dict[str, list[str]]]:
    """What a server judges: codes by file and object."""
    rows: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for fault in found:
        if fault.by_server:
            rows[fault.file].setdefault(fault.object, []).append(fault.code)
    return dict(rows)


def written(module: str) -> str:
    """The list of a module, as it is to be reviewed."""
    seen = look(modules() / module)
    found = seen.faults
    known = {
        (row["code"], row["file"], row.get("object", "")): row["why"]
        for name, body in lists()
        if name == module
        for row in body.get("read") or ()
    }
    lines = [f"module: {module}", "refused:" if table(found) else "refused: {}"]
    for file, objects in table(found).items():
        lines.append(f"  {json.dumps(file)}:")
        lines += [f"    {json.dumps(name)}: [{', '.join(codes)}]" for name, codes in objects.items()]
    rest = [fault for fault in found if not fault.by_server]
    lines.append("read:" if rest else "read: []")
    for fault in rest:
        why = known.get((fault.code, fault.file, fault.object), "")
        row = {"code": fault.code, "file": fault.file, "object": fault.object, "why": why}
        lines.append(f"- {json.dumps(row)}" + ("" if why else f"  # {fault.message}"))
    lines.append(f"likely: {json.dumps(dict(sorted(Counter(each.code for each in seen.likely).items())))}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(written(sys.argv[1]), end="")
