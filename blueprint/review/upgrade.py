"""Whether a component may move from one release to another under this very tree: safe, manual, or blocked.

Every object is judged by the API of both releases (`catalog.releases`, made from the modules' CRDs), and every rule
that knows versions is asked for both; what comes new is what the move breaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from blueprint.catalog import releases
from blueprint.catalog.components import Support, component
from blueprint.catalog.components import components as described
from blueprint.catalog.lifecycle import lifecycle, release
from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.catalog.vllm import Presence, flag, newest, option_name, versions
from blueprint.check import Validator, tree_rules
from blueprint.check.defaults import with_defaults
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.errors import UsageError
from blueprint.finding import Edit, Finding, Ref, Severity, Source
from blueprint.objects import Manifest
from blueprint.review.conversion import Converted, converted, way_to
from blueprint.review.diff import diff, keyed_path
from blueprint.review.words import shown

KUBERNETES, VLLM = "kubernetes", "vllm"


class Verdict(StrEnum):
    """What a move means, the best first."""

    SAFE = "safe"
    UNKNOWN = "unknown"
    MANUAL = "manual"
    BLOCKED = "blocked"


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


def _rank(verdict: Verdict) -> int:
    return _RANK[verdict]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that stands in the way, or is only told (`safe`).

    `patch` is the new `apiVersion` where writing is all that is to be done, "" elsewhere, and `edits` is what to write:
    the version, and the fields that are elsewhere in it. `path` is the field that is meant, "" for the object.
    """

    verdict: Verdict
    words: str
    source: Source | None = None
    object: Ref | None = None
    patch: str = ""
    reason: str = ""
    edits: tuple[Edit, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A component's way from one release to another, and what stands in it."""

    component: str
    before: str
    after: str
    needs: tuple[Need, ...]
    objects: int
    sources: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all needs."""
        return max((need.verdict for need in self.needs), key=_rank, default=Verdict.SAFE)


def names() -> list[str]:
    """The components that can be asked about."""
    return sorted({KUBERNETES, VLLM, *releases.components()})


def move(name: str, before: str, after: str, manifests: Sequence[Manifest], pack: SchemaPack) -> Move:
    """Judge one move; `before` may be "" where nobody says what runs today. Raises UsageError for unknown names."""
    if name not in names():
        raise UsageError(f"nothing is known of the releases of {name}", hint=f"components: {', '.join(names())}")
    if version(after) is None:
        raise UsageError(f"{after} is no version", hint=f"write {name}=VERSION, or {name}=OLD..NEW")
    before = before or _today(name, pack)
    if name in releases.components():
        needs, count, sources = _component(name, before, after, manifests, pack)
    elif name == VLLM:
        needs, count, sources = _engines(before, after, manifests)
    else:
        needs, count, sources = _kubernetes(before, after, manifests, pack)
    ordered = sorted(
        dict.fromkeys(needs), key=lambda need: (-_RANK[need.verdict], need.source or Source(""), need.words)
    )
    return Move(name, before, after, tuple(ordered), count, sources)


def _today(name: str, pack: SchemaPack) -> str:
    if name == KUBERNETES:
        return pack.kubernetes().removeprefix("v")
    if name == VLLM:
        return newest()
    found = component(name)
    return found.version if found else ""


Judged = tuple[list[Need], int, tuple[str, ...]]


def _component(name: str, before: str, after: str, manifests: Sequence[Manifest], pack: SchemaPack) -> Judged:
    """A component with CRDs: each of its objects by the schemas of both releases."""
    old, new = releases.nearest(name, before), releases.nearest(name, after)
    module = releases.module(name)
    if not new or not old:
        missing = after if not new else before
        words = f"nothing is known of {name} {missing}; known are {', '.join(releases.releases(name))}"
        return [Need(Verdict.UNKNOWN, words)], 0, ()
    kinds = releases.kinds(name)
    mine = [m for m in manifests if (m.ref.group, m.ref.kind) in kinds]
    then, now = (releases.pack_of(name, each, pack) for each in (old, new))
    validators = Validator(then, rules=()), Validator(now, rules=())
    needs = [need for m in mine for need in _of_object(m, validators, then, now, f"{name} {new}")]
    needs += _storage(name, old, new, mine)
    for each, told in ((before, old), (after, new)):
        if version(each) != version(told):
            needs.append(Need(Verdict.SAFE, f"{name} {each} is judged by the CRDs of {told}"))
    needs += _ruled(name, before, after, manifests, pack)
    return needs, len(mine), tuple(f"{module}@v{each}" for each in dict.fromkeys((old, new)))


def _of_object(
    manifest: Manifest, validators: tuple[Validator, Validator], then: SchemaPack, now: SchemaPack, name: str
) -> Iterator[Need]:
    ref, place = manifest.ref, manifest.source
    kind = now.kind(manifest.api_version, manifest.kind)
    if kind is None or not kind.served:
        others = now.versions(ref.group, ref.kind)
        if not others:
            yield Need(Verdict.BLOCKED, f"{name} has no kind {ref.kind}", place, ref)
            return
        yield _as(manifest, converted(manifest, [f"{ref.group}/{others[0]}"], now), name)
        return
    if kind.deprecated:
        words = f"{name} warns of {manifest.api_version}: {kind.deprecation or 'deprecated'}"
        others = [each for each in now.versions(ref.group, ref.kind) if f"{ref.group}/{each}" != manifest.api_version]
        again = converted(manifest, [f"{ref.group}/{others[0]}"], now) if others else None
        yield _written(Need(Verdict.SAFE, words, place, ref), again)
    old = then.kind(manifest.api_version, manifest.kind)
    known = {_mark(f) for f in validators[0].create(manifest)} if old is not None else set()
    for finding in validators[1].create(manifest):
        if finding.fails and _mark(finding) not in known:
            # What no schema names is dropped without a word; everything else is refused.
            dropped = finding.code == "SCH104"
            verdict = Verdict.MANUAL if dropped else Verdict.BLOCKED
            words = f"{name} drops {finding.path} without a word" if dropped else f"{name}: {_said(finding)}"
            yield Need(verdict, words, finding.source or place, ref, reason=finding.code, path=finding.path)
    if old is not None:
        yield from _defaults(manifest, old, kind, name)


def _as(manifest: Manifest, again: Converted, name: str) -> Need:
    """An object that must be written in another version: by a patch, or by hand from the field on that stays wrong."""
    words = f"{name} does not serve {manifest.api_version}: write it as {again.api_version}"
    return _written(Need(Verdict.MANUAL, words, manifest.source, manifest.ref), again)


def _written(need: Need, again: Converted | None) -> Need:
    if again is None:
        return need
    if again.wrong is not None:
        words = f"{need.words}, and then by hand: {_said(again.wrong)}"
        return replace(need, words=words, verdict=max(need.verdict, Verdict.MANUAL, key=_rank), path=again.wrong.path)
    return replace(need, patch=again.api_version, edits=again.edits)


def _mark(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.path, finding.message


def _said(finding: Finding) -> str:
    return f"{finding.path} {finding.message.splitlines()[0]}".strip()


def _defaults(manifest: Manifest, old: Kind, new: Kind, name: str) -> Iterator[Need]:
    """Fields that the object leaves out, and that the releases fill in differently."""
    before, after = with_defaults(old.defaults, manifest.body), with_defaults(new.defaults, manifest.body)
    for edit in diff(before, after).edits:
        words = f"{name} fills in {keyed_path(edit.steps)} otherwise: {shown(edit.before)} → {shown(edit.after)}"
        yield Need(Verdict.SAFE, words, manifest.source, manifest.ref)


def _storage(name: str, old: str, new: str, mine: Sequence[Manifest]) -> Iterator[Need]:
    """Versions in which objects may be stored and which the new CRDs no longer list: the CRDs themselves are refused.

    Source: k8s.io/apiextensions-apiserver v0.35.4 pkg/apis/apiextensions/validation/validation.go
    validateCustomResourceDefinitionVersionsInStatus (status.storedVersions must be in spec.versions).
    """
    before, after = releases.records(name, old), releases.records(name, new)
    listed: dict[tuple[str, str], set[str]] = {}
    for row in after:
        group, _, number = row["apiVersion"].rpartition("/")
        listed.setdefault((group, row["kind"]), set()).add(number)
    used = {(m.ref.group, m.ref.kind) for m in mine}
    for row in before:
        group, _, number = row["apiVersion"].rpartition("/")
        key = group, row["kind"]
        if row["storage"] and key in used and key in listed and number not in listed[key]:
            words = (
                f"objects of {row['kind']} are stored as {number}, which {name} {new} does not list: migrate them first"
            )
            yield Need(Verdict.BLOCKED, words, reason="status.storedVersions")


def _kubernetes(before: str, after: str, manifests: Sequence[Manifest], pack: SchemaPack) -> Judged:
    """Kubernetes itself: what it serves, and what the makers of components say of it."""
    if (refusal := _beyond(after)) is not None:
        return [refusal], 0, ()
    needs = [*_ruled(KUBERNETES, before, after, manifests, pack), *_supported(after, manifests)]
    told = {need.object for need in needs if need.reason == "UPG101"}
    needs += _warned(after, [m for m in manifests if m.ref not in told], pack)
    return needs, len(manifests), ("k8s.io/api v0.35.4, v0.37.2",)


def _warned(after: str, manifests: Sequence[Manifest], pack: SchemaPack) -> Iterator[Need]:
    """Objects that are still served, and that a patch brings to the version that stays."""
    for manifest in manifests:
        if way := way_to(manifest, after):
            life = lifecycle(manifest.api_version, manifest.kind)
            since = f" since {life.deprecated}" if life and life.deprecated else ""
            words = f"{manifest.api_version} {manifest.kind} is deprecated{since}; {way[-1]} stays"
            need = _written(Need(Verdict.SAFE, words, manifest.source, manifest.ref), converted(manifest, way, pack))
            yield replace(need, verdict=Verdict.SAFE)


def _engines(before: str, after: str, manifests: Sequence[Manifest]) -> Judged:
    """The command lines of vLLM: options that one version knows and the other does not, and other defaults."""
    found = engines(Graph(manifests))
    needs = [need for engine in found for need in _of_engine(engine, before, after)]
    if found and flag("--model", after).presence is Presence.UNKNOWN:
        known = f"{versions()[0]} to {versions()[-1]}"
        needs.append(Need(Verdict.UNKNOWN, f"nothing is known of vLLM {after}; its options were read from {known}"))
    return needs, len(found), ("vllm source distributions, engine/arg_utils.py",)


def _of_engine(engine: Engine, before: str, after: str) -> Iterator[Need]:
    manifest = engine.manifest
    for argument in engine.arguments:
        if not argument.option.startswith("--"):
            continue
        name, new, old = option_name(argument.option), flag(argument.option, after), flag(argument.option, before)
        place, ref = manifest.source, manifest.ref
        if new.presence is Presence.ABSENT and old.presence is not Presence.ABSENT:
            instead = f"; instead: {new.instead}" if new.instead else "; leave it out" if new.instead == "" else ""
            verdict = Verdict.MANUAL if new.instead is not None else Verdict.BLOCKED
            yield Need(verdict, f"vLLM {after} does not know {name} and exits at once{instead}", place, ref)
        elif new.presence is Presence.UNKNOWN:
            yield Need(Verdict.UNKNOWN, f"nobody knows whether vLLM {after} has {name}", place, ref)
        elif new.flag is not None and new.exact and new.flag.choices and old.flag is not None:
            value = argument.known
            gone = value and value in map(str, old.flag.choices) and value not in map(str, new.flag.choices)
            if gone:
                yield Need(Verdict.BLOCKED, f"vLLM {after} refuses {name} {value}", place, ref)


def _ruled(name: str, before: str, after: str, manifests: Sequence[Manifest], pack: SchemaPack) -> list[Need]:
    """What the rules that know versions say of the new release, and not of the old one."""
    then, now = (_findings(manifests, {name: each} if each else {}) for each in (before, after))
    known = {(_mark(finding), finding.object) for finding in then}
    return [
        _need(finding, manifests, after, pack)
        for finding in now
        if (_mark(finding), finding.object) not in known and finding.severity is not Severity.NOTE
    ]


def _findings(manifests: Sequence[Manifest], versions: Mapping[str, str]) -> list[Finding]:
    return [finding for rule in tree_rules(versions=versions) for finding in rule(manifests)]


def _need(finding: Finding, manifests: Sequence[Manifest], after: str, pack: SchemaPack) -> Need:
    """A finding that comes new with a release. An API that only moved is a patch."""
    found = next(
        (m for m in manifests if m.ref == finding.object and m.source.file == (finding.source or Source("")).file), None
    )
    way = way_to(found, after) if found and finding.code == "UPG101" else []
    fix = f" ({finding.fix})" if finding.fix and not way else f" (use {way[-1]})" if way else ""
    verdict = Verdict.BLOCKED if finding.fails and not way else Verdict.MANUAL
    need = Need(verdict, f"{_said(finding)}{fix}", finding.source, finding.object, reason=finding.code)
    return _written(need, converted(found, way, pack)) if found and way else need


def _beyond(after: str) -> Need | None:
    known = [each for each in map(release, table("api_lifecycle")["off"]) if each]
    asked = release(after)
    if asked is None or asked <= max(known):
        return None
    newest_known = ".".join(map(str, max(known)))
    return Need(Verdict.UNKNOWN, f"nothing is known of Kubernetes {after}; the tables end at {newest_known}")


def _supported(after: str, manifests: Sequence[Manifest]) -> Iterator[Need]:
    """What the makers of the components that this tree uses say of the Kubernetes version."""
    used = {(m.ref.group, m.ref.kind) for m in manifests}
    for each in described():
        if not used & each.served.keys():
            continue
        support = each.support(after)
        if support is Support.TOO_OLD:
            words = f"{each.name} {each.version} wants Kubernetes {each.minimum}, and {after} is older"
            yield Need(Verdict.BLOCKED, words, reason=each.source)
        elif each.tested and support is not Support.TESTED:
            words = f"{each.name} {each.version} is tested with Kubernetes {', '.join(each.tested)}, not with {after}"
            yield Need(Verdict.UNKNOWN, words, reason=each.source)
