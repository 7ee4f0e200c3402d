"""What a check says: findings are values, never exceptions.

A leaf: every room may import it, it imports nothing of ours.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is; the order of the members is the order of reports."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Confidence(StrEnum):
    """How sure we are: `certain` means that the real system refuses it or can never act on it."""

    CERTAIN = "certain"
    LIKELY = "likely"
    STYLE = "style"


class Source(NamedTuple):
    """A place in a file; line and column count from 1, line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


class Ref(NamedTuple):
    """The identity of a Kubernetes object; `group` and `namespace` are "" where there is none."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def kind_name(self) -> str:
        """`Kind.group`, or `Kind` alone for the core group: how rules and tables name kinds."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def __str__(self) -> str:
        kind = self.kind_name
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class Edit(NamedTuple):
    """One operation of a JSON Patch (RFC 6902) on an object: `value` is JSON text, "" where the operation takes none.

    `source` is the pointer that a move starts from, "" for the others.
    """

    op: str
    path: str
    value: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell a person.

    `path` is the field in the object or document (`spec.template.spec.containers[0].image`), "" for the whole.
    `fix` is a suggestion in words; `patch` does it to the object, and is there only where nothing else could be meant.
    """

    code: str
    message: str
    source: Source | None = None
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    object: Ref | None = None
    path: str = ""
    fix: str = ""
    patch: tuple[Edit, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether this finding alone makes a run end with exit code 1."""
        return self.severity is Severity.ERROR and self.confidence is not Confidence.STYLE


_RANK = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(slots=True)
class Report:
    """Findings in a stable order, each said once."""

    findings: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Report:
        """Sort by file, line, severity, code and message, and drop repetitions."""
        unique = dict.fromkeys(findings)
        nowhere = Source("")
        return cls(
            sorted(
                unique,
                key=lambda f: (f.source or nowhere, _RANK[f.severity], f.code, f.path, f.message),
            )
        )

    @property
    def failed(self) -> bool:
        """Whether any finding is one that fails the run."""
        return any(f.fails for f in self.findings)


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """For each finding 32 hex digits by which later runs know it again, each only once.

    Lines and words may change: a finding is its code, file, object and field; without object and field its words, too.
    Of several that agree in all of that, the first keeps its fingerprint whatever follows.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for finding in findings:
        file = finding.source.file if finding.source else ""
        ref = str(finding.object or "")
        same = (finding.code, file, ref, finding.path, "" if ref or finding.path else finding.message)
        seen[same] += 1
        text = "\0".join((*same, str(seen[same])))
        found.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return found
