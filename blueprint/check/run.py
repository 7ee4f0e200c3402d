"""A check from paths to findings: what is read, judged, and silenced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.config import Config
from blueprint.check.joined import joined
from blueprint.check.locate import located
from blueprint.check.patches import patched
from blueprint.check.read import Counts, read
from blueprint.check.revision import revision
from blueprint.check.silence import silenced
from blueprint.finding import Finding, Report

_MANY = 1_000
"""Objects from which a second process is worth its start."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a check came to: findings in order, how many are silenced, and what could not be judged.

    `unknown` objects are of kinds without a schema; `skipped_rules` are CEL rules that no engine here evaluates.
    """

    findings: list[Finding]
    silenced: int
    objects: int
    unknown: int
    counts: Counts = field(default_factory=Counts)
    skipped_rules: tuple[str, ...] = ()


def check(
    paths: Sequence[str],
    config: Config,
    *,
    rev: str | None = None,
    build: bool = True,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Check:
    """Judge what is below the paths, in the work tree or in a revision of Git.

    `select` and `ignore` are beginnings of codes: only these, or all but these, are told. `build` asks for Kustomize
    roots and Helm charts to be built.

    Raises UsageError for paths or revisions that do not exist.
    """
    asked, paths = revision(paths, rev)
    with ExitStack() as stack:
        wanted = [*paths, config.inventory] if config.inventory else list(paths)
        base = stack.enter_context(asked.files(wanted)) if asked else Path()
        reading = read(wanted, base=base, build=build, exclude=config.exclude)
        manifests = [*reading.manifests, *reading.aside]
        together = len(manifests) > _MANY
        rules = tree_rules(closed=config.closed_kinds, versions=config.versions, together=together)
        outcome = validate(manifests, SchemaPack.shipped(), tree_rules=rules, together=together)
        judged = located(patched(outcome.findings, manifests), reading.texts, base)
        found = Report.of(joined([*reading.findings, *judged])).findings
        kept, silent = silenced(found, sorted(reading.marked), lambda file: _text(file, reading.texts, base))
    counted = [finding for finding in kept if _counts(finding, config, tuple(select), tuple(ignore))]
    return Check(
        findings=counted,
        silenced=silent + len(kept) - len(counted),
        objects=outcome.objects,
        unknown=outcome.unknown,
        counts=reading.counts,
        skipped_rules=tuple(sorted({str(rule) for rule in outcome.skipped})),
    )


def _counts(finding: Finding, config: Config, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    if select and not finding.code.startswith(select):
        return False
    return not (finding.code.startswith(ignore) or config.ignores(finding))


def _text(file: str, known: dict[str, str], base: Path) -> str | None:
    try:
        return known[file] if file in known else (base / file).read_text("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None
