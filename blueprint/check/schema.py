"""Is an object one that the API server would decode and accept by its schema?

The server's steps, in its order: decode (unknown fields, Go types), null, defaults, drop `status`, schema, lists. A
`Checker` keeps the compiled validators of the kinds that it has seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import jsonschema_rs

from blueprint.catalog.crds import ITEM, VALUE
from blueprint.catalog.lifecycle import experimental, lifecycle, off_by_default, release
from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.check.defaults import with_defaults
from blueprint.check.formats import FORMATS
from blueprint.check.lists import Lists
from blueprint.check.nulls import has_null, without_nulls
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

# RE2, as the server's patterns are: linear in the text, no look-around.
_REGEX = jsonschema_rs.RegexOptions()
_OPTIONS: Mapping[str, Any] = {"formats": dict(FORMATS), "validate_formats": True, "pattern_options": _REGEX}
_PRESENCE = re.compile(r"has\([^()]*\)")
_Validator = jsonschema_rs.Draft4Validator | jsonschema_rs.Draft202012Validator


class Checker:
    """Validates objects against the kinds of one pack; every kind is compiled once, when it is first seen."""

    def __init__(self, pack: SchemaPack) -> None:
        self.pack = pack
        # An integer is no `2.0` here: the fast answer for built-in kinds and for any object without such numbers.
        self._strict: dict[Kind, _Validator] = {}
        self._lenient: dict[Kind, jsonschema_rs.Draft202012Validator] = {}
        self._broken: set[Kind] = set()
        self._lists: dict[Kind, Lists] = {}

    def kind_of(self, manifest: Manifest) -> Kind | None:
        """The kind of an object; None when the pack does not know it."""
        return self.pack.kind(manifest.api_version, manifest.kind)

    def seen(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        """The object as the server validates it: defaults filled in, `status` gone; shared with `body` where equal."""
        seen: dict[str, Any] = with_defaults(kind.defaults, body) if kind.defaults else body
        if kind.status_subresource and not kind.core and "status" in seen:
            seen = {name: value for name, value in seen.items() if name != "status"}
        return seen

    def check(self, manifest: Manifest, kind: Kind) -> tuple[dict[str, Any], list[Finding]]:
        """The object as the server validates it, and what is wrong with it by its schema."""
        found = [] if kind.served and not kind.deprecated and "status" not in manifest.body else _about(manifest, kind)
        body = manifest.body
        seen = with_defaults(kind.defaults, body) if kind.defaults else body
        strict = self._strict_validator(kind)
        if kind in self._broken:
            words = f"the schema of {kind.api_version} {kind.kind} does not compile: nothing is judged by it"
            return body, [*found, _finding(manifest, "SCH101", words, severity=Severity.NOTE)]
        try:
            valid = strict.is_valid(seen)
        except ValueError as error:  # a body that was not read from YAML or JSON
            found.append(_finding(manifest, "SCH114", f"holds what JSON cannot: {error}"))
            return body, found
        if not valid:
            if has_null(body):
                seen = with_defaults(kind.defaults, without_nulls(kind, body))
            found += self._errors(manifest, kind, seen)
        seen = self.seen(kind, seen)
        if (lists := self._lists.get(kind)) is None:
            lists = self._lists[kind] = Lists.of(kind)
        if lists.below:
            found += (_repeated(manifest, kind, path, keys) for path, keys in lists.repeats(seen))
        return seen, found

    def _strict_validator(self, kind: Kind) -> _Validator:
        if (validator := self._strict.get(kind)) is None:
            try:
                validator = jsonschema_rs.Draft4Validator(kind.schema, **_OPTIONS)
            except (
                jsonschema_rs.ValidationError,
                ValueError,
            ):  # a pattern of RE2, `(?i)` say, that the older draft does not know
                validator = self._lenient_validator(kind)
            self._strict[kind] = validator
        return validator

    def _lenient_validator(self, kind: Kind) -> jsonschema_rs.Draft202012Validator:
        if (validator := self._lenient.get(kind)) is None:
            try:
                validator = jsonschema_rs.Draft202012Validator(kind.schema, **_OPTIONS)
            except (jsonschema_rs.ValidationError, ValueError):
                # The schema of a CRD in the tree that no server would take: nothing can be judged by it.
                self._broken.add(kind)
                validator = jsonschema_rs.Draft202012Validator({})
            self._lenient[kind] = validator
        return validator

    def _errors(self, manifest: Manifest, kind: Kind, seen: dict[str, Any]) -> Iterator[Finding]:
        from blueprint.check.messages import complaints

        strict = self._strict_validator(kind)
        if kind.core:
            errors = list(strict.iter_errors(seen))
        else:
            errors = list(self._lenient_validator(kind).iter_errors(seen))
            if not errors:
                yield from _whole_floats(manifest, kind, strict.iter_errors(seen))
        for error in errors:
            for code, path, message, fix in complaints(kind, error, seen):
                if channel := _channel(kind, code, path, error.instance):
                    words = f"{message}; {channel} has it"
                    yield _finding(manifest, code, words, path, Confidence.LIKELY, severity=Severity.WARNING)
                else:
                    yield _finding(manifest, code, message, path, fix=fix)


def _channel(kind: Kind, code: str, path: tuple[str | int, ...], value: object) -> str:
    """Which other channel of the kind's CRD has the field (SCH104) or the value (SCH107) that is complained of."""
    found = value if code == "SCH107" else path[-1] if code == "SCH104" and path else None
    return experimental(kind.api_version.rpartition("/")[0], found) if isinstance(found, str) else ""


def unknown(manifest: Manifest, pack: SchemaPack) -> Iterator[Finding]:
    """What can be said of an object whose kind and version the pack does not know."""
    ref = manifest.ref
    label = f"{manifest.api_version} {ref.kind}"
    if _on_demand(manifest.api_version, ref.kind, pack.kubernetes()):
        message = f"{label} is served only where the API server is told to (--runtime-config)"
        yield _finding(manifest, "SCH102", message, ("apiVersion",), Confidence.LIKELY, severity=Severity.WARNING)
        return
    versions = pack.versions(ref.group, ref.kind)
    moved = pack.moved(manifest.api_version, ref.kind)
    if versions or moved is not None:
        now = f"{ref.group}/{versions[0]}".lstrip("/") if versions else moved
        message = f"{label} is not served by Kubernetes {pack.kubernetes()} or by the components that the pack holds"
        yield _finding(manifest, "SCH102", message, ("apiVersion",), fix=f"use apiVersion {now}" if now else "")
        return
    kinds = [kind for api_version, kind in pack.kinds() if api_version.rpartition("/")[0] == ref.group]
    close = get_close_matches(ref.kind, kinds, n=1, cutoff=0.8)
    fix = f"did you mean `{close[0]}`?" if close else ""
    spelt = ref.kind.lower()
    # A kind that only a later release has is told of by the rules of upgrades, where the target is older.
    builtin = ref.group in pack.builtin_groups()
    later = builtin and lifecycle(manifest.api_version, ref.kind) is not None
    fix = "" if later else fix
    if (builtin and not later) or (close and close[0].lower() in (spelt, spelt.removesuffix("s"))):
        owner = "Kubernetes" if builtin else ref.group
        yield _finding(manifest, "SCH113", f"{owner} has no kind {label}", ("kind",), Confidence.LIKELY, fix=fix)
        return
    yield _finding(
        manifest, "SCH101", f"unknown kind {label}: not validated", ("kind",), severity=Severity.NOTE, fix=fix
    )


def _on_demand(api_version: str, kind: str, kubernetes: str) -> bool:
    """Whether a release has the kind in this version, switched off by default."""
    known, asked = lifecycle(api_version, kind), release(kubernetes)
    if known is None or asked is None or not off_by_default(api_version, kubernetes):
        return False
    since, until = release(known.introduced), release(known.removed)
    return (since is None or since <= asked) and (until is None or asked < until)


def _about(manifest: Manifest, kind: Kind) -> list[Finding]:
    """What is to be said of the version and of a `status`, whatever the object holds."""
    found = []
    if not kind.served:
        message = f"{kind.api_version} of {kind.kind} is no longer served"
        found.append(_finding(manifest, "SCH102", message, ("apiVersion",)))
    elif kind.deprecated:
        message = kind.deprecation or f"{kind.api_version} {kind.kind} is deprecated"
        found.append(_finding(manifest, "SCH103", message, ("apiVersion",), severity=Severity.WARNING))
    if kind.status_subresource and "status" in manifest.body:
        message = "`status` is dropped: only its controller writes it"
        found.append(
            _finding(manifest, "SCH112", message, ("status",), severity=Severity.NOTE, fix="leave `status` out")
        )
    return found


def _repeated(manifest: Manifest, kind: Kind, path: tuple[str | int, ...], keys: Mapping[str, Any] | None) -> Finding:
    if keys is None:
        message = "the same item stands in this set before"
    else:
        said = ", ".join(f"{key} {value!r}" for key, value in keys.items()) or "no key"
        message = f"an item with {said} stands in this list before"
    if not kind.core:
        return _finding(manifest, "SCH109", message, path)
    # Built-in kinds mostly pass on create; a server-side apply compares items by these keys and refuses two.
    message += "; a server-side apply refuses that"
    return _finding(manifest, "SCH110", message, path, Confidence.LIKELY, severity=Severity.WARNING)


def _whole_floats(manifest: Manifest, kind: Kind, errors: Iterable[jsonschema_rs.ValidationError]) -> Iterator[Finding]:
    """Numbers such as `2.0` for an integer: a CRD takes them, the scale subresource does not."""
    for error in errors:
        path = tuple(error.instance_path)
        if error.kind.name != "type":
            continue  # a branch that such a number decides
        if ".".join(map(str, path)) == kind.scale:
            yield _finding(manifest, "SCH106", f"must be an integer, is {error.instance}", path)
        elif _is_read(kind, path):
            message = f"must be an integer, is {error.instance}: a validation rule reads it, and stops at a float"
            yield _finding(manifest, "SCH106", message, path, Confidence.LIKELY)
        else:
            message = f"{error.instance} is taken for the integer that belongs here"
            yield _finding(manifest, "SCH111", message, path, Confidence.STYLE, severity=Severity.WARNING)


def _is_read(kind: Kind, path: tuple[str | int, ...]) -> bool:
    """Whether a CEL rule of a field or of what holds it names the field; it then sees a float and ends in an error."""
    names = [step for step in path if isinstance(step, str)]
    if (kind.at(path) or {}).get("type") != "integer":
        return False  # an int-or-string is of no type there
    return bool(names) and any(
        not rule.transition
        and len(rule.path) <= len(path)
        and all(held in (step, ITEM, VALUE) for held, step in zip(rule.path, path, strict=False))
        and re.search(rf"\b{re.escape(names[-1])}\b", _PRESENCE.sub("", rule.rule))
        for rule in kind.rules
    )


def _finding(
    manifest: Manifest,
    code: str,
    message: str,
    path: Iterable[str | int] = (),
    confidence: Confidence = Confidence.CERTAIN,
    *,
    severity: Severity = Severity.ERROR,
    fix: str = "",
) -> Finding:
    from blueprint.check.locate import field_path

    return Finding(
        code=code,
        message=message,
        source=manifest.source,
        severity=severity,
        confidence=confidence,
        object=manifest.ref,
        path=field_path(*path),
        fix=fix,
    )
