"""Fields that a policy in CEL reads and that no object has which it is asked about.

Where such a field is read, the expression ends in an error (and with failurePolicy Fail every request); where it is
asked for with has() or `.?`, the policy passes everything.
Sources: k8s.io/apiserver v0.35.4 pkg/admission/plugin/policy/validating (typechecking.go warns of the same in the
status of the policy); the schemas of the catalog.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.check.graph import Graph
from blueprint.check.matching import rules_of
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_POLICIES = (
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io",
    "MutatingAdmissionPolicy.admissionregistration.k8s.io",
    "ValidatingPolicy.policies.kyverno.io",
    "NamespacedValidatingPolicy.policies.kyverno.io",
)
_PARTS = (("matchConditions", "expression"), ("variables", "expression"), ("validations", "expression"))
_TEXT = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*')
_STEPS = r"((?:\s*\.\s*\??[A-Za-z_]\w*|\s*\[[^\]\"\[]*\])*)"
_CHAIN = re.compile(r"(?<![\w.\"])([A-Za-z_]\w*)" + _STEPS + r"(\s*\()?")
_STEP = re.compile(r"\.\s*(\??)([A-Za-z_]\w*)|\[")
_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_BOUND = re.compile(r"(?<![\w.\"])object" + _STEPS + _MACRO.pattern)
_HAS = re.compile(r"\bhas\s*\(\s*$")
_ITEM = ""
"""The step into a list."""


class _Read(NamedTuple):
    """A chain of fields of the object; `guarded` where the expression asks first whether it is there."""

    path: tuple[str, ...]
    guarded: bool


def _steps(words: str) -> tuple[str, ...]:
    return tuple(found[2] or _ITEM for found in _STEP.finditer(words))


def reads(expression: str) -> list[_Read]:
    """What an expression reads of `object`, also by way of the variables of its macros, `""` for an item of a list."""
    plain = _TEXT.sub('""', expression)
    bound: dict[str, set[tuple[str, ...]]] = {}
    for match in _BOUND.finditer(plain):
        bound.setdefault(match[2], set()).add((*_steps(match[1]), _ITEM))
    every = Counter(match[1] for match in _MACRO.finditer(plain))
    known = Counter(match[2] for match in _BOUND.finditer(plain))
    roots: dict[str, tuple[str, ...]] = {"object": ()}
    # A name that stands for items of two lists, or of one that is not read here, is not followed.
    roots |= {name: next(iter(of)) for name, of in bound.items() if len(of) == 1 and every[name] == known[name]}
    found = []
    for match in _CHAIN.finditer(plain):
        steps = _steps(match[2])
        if match[1] in roots and "__" not in match[2]:
            steps = steps[:-1] if match[3] else steps
            guarded = "?" in match[2] or _HAS.search(plain, 0, match.start()) is not None
            found.append(_Read((*roots[match[1]], *steps), guarded))
    return found


def _missing(kind: Kind, path: Sequence[str]) -> tuple[int, list[str]] | None:
    """Where a path names a field that objects of the kind cannot have, and which they can; None if it is not known."""
    schema = kind.schema
    for place, step in enumerate(path):
        schema = kind.resolve(schema)
        fields = schema.get("properties", {})
        if step == _ITEM:
            schema = schema.get("items", {})
        elif step in fields:
            schema = fields[step]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            return (place, [*fields]) if fields and schema.get("additionalProperties") is False else None
    return None


def _asked(graph: Graph, spec: Body) -> list[Kind]:
    """Every kind that a policy is asked about; none where one of them is not known."""
    found: list[Kind] = []
    pack = SchemaPack.shipped()
    for rule in rules_of(spec.get("matchConstraints")):
        for group in items(rule.get("apiGroups")):
            for plural in items(rule.get("resources")):
                resource = graph.resources.plural(text(group), text(plural))
                there = pack.versions(text(group), resource.kind) if resource else []
                wanted = [text(each) for each in items(rule.get("apiVersions"))]
                names = there if "*" in wanted else wanted
                kinds = [
                    pack.kind(f"{group}/{name}" if group else name, resource.kind if resource else "") for name in names
                ]
                if resource is None or not kinds or any(kind is None or not kind.core for kind in kinds):
                    return []
                found += [kind for kind in kinds if kind]
    return found


def unknown_fields(graph: Graph) -> Iterator[Finding]:
    """POL207: an expression reads a field that none of the kinds has which the policy is asked about."""
    for manifest in graph.kind(*_POLICIES):
        spec = mapping(manifest.body.get("spec"))
        kinds = [] if mapping(spec.get("evaluation")).get("mode") == "JSON" else _asked(graph, spec)
        if kinds:
            yield from _of_policy(manifest, spec, kinds)


def _of_policy(manifest: Manifest, spec: Body, kinds: list[Kind]) -> Iterator[Finding]:
    written = [
        (f"spec.{part}[{index}].{field}", reads(text(row.get(field))))
        for part, field in _PARTS
        for index, row in enumerate(maps(spec.get(part)))
    ]
    asked = {each.path for _, found in written for each in found if each.guarded}
    of = " or ".join(sorted({kind.kind for kind in kinds}))
    told: set[tuple[str, ...]] = set()
    for where, found in written:
        for each in found:
            gaps = [gap for kind in kinds if (gap := _missing(kind, each.path))]
            if len(gaps) < len(kinds):
                continue
            path = each.path[: max(place for place, _ in gaps) + 1]
            near = get_close_matches(path[-1], sorted({name for _, names in gaps for name in names}), 1, cutoff=0.8)
            if path in told or (path in asked and not near):
                continue
            told.add(path)
            shown = ".".join(["object", *path]).replace(f".{_ITEM}.", "[].")
            effect = "it is never there" if path in asked else "reading it fails"
            message = f"{shown}: no {of} has a field {path[-1]} there, so {effect}"
            how = warn if path in asked or not near else say
            yield how("POL207", manifest, message, where, f"did you mean {near[0]}?" if near else "read another field")


RULES = (unknown_fields,)
TREE = ()
