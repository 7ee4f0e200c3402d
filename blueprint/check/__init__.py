"""Objects to findings. Every check takes objects and what the catalog knows; none reads a spec.

`validate` is the entry. A rule on one object is a function in `OBJECT_RULES`, one on a whole tree is in `TREE_RULES` or
in a family of `check.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.check import names, native, references, security, sizes
from blueprint.check.aside import aside
from blueprint.check.cel import Rules, Skipped
from blueprint.check.defaults import with_defaults
from blueprint.check.nulls import decoded
from blueprint.check.schema import Checker, unknown
from blueprint.check.unknowns import of_all, of_one
from blueprint.check.updates import immutable
from blueprint.finding import Finding
from blueprint.halves import each
from blueprint.objects import Manifest

ObjectRule = Callable[[Manifest, Kind | None], Iterable[Finding]]
TreeRule = Callable[[Sequence[Manifest]], Iterable[Finding]]

OBJECT_RULES: tuple[ObjectRule, ...] = (names.names, sizes.sizes, native.native)


#: Rules on a tree that need nothing but the objects: what is there twice, and pods against their namespace.
TREE_RULES: tuple[TreeRule, ...] = (references.repeated, security.pod_security)


def tree_rules(
    *, closed: Collection[str] = (), versions: Mapping[str, str] | None = None, together: bool = False
) -> tuple[TreeRule, ...]:
    """All rules on a tree, told which kinds are all there, and which versions its clusters run.

    The families of `check.rules` ask whether the objects will work together; who only renders does without them, and
    without the time to load them. With `together` the last is the part of them for a second process.
    """
    from blueprint.check import rules

    run = partial(rules.across, closed=closed, versions=versions)
    if not together:
        return (*TREE_RULES, run)
    first, second = rules.HALVES
    return (*TREE_RULES, partial(run, rules=first, tree=()), partial(run, rules=second))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a validation found, and what it could not do.

    `skipped` are CEL rules that no engine here evaluates; `unknown` counts objects of kinds without a schema.
    """

    findings: list[Finding]
    skipped: list[Skipped]
    objects: int
    unknown: int


class Validator:
    """Validates objects with everything compiled so far; use one for many objects."""

    def __init__(self, pack: SchemaPack, rules: Iterable[ObjectRule] = OBJECT_RULES) -> None:
        self.checker = Checker(pack)
        self.cel = Rules()
        self._rules = tuple(rules)

    def create(self, manifest: Manifest) -> list[Finding]:
        """What a server would refuse, and what is doubtful, when the object is created."""
        kind = self.checker.kind_of(manifest)
        if kind is None:
            found = list(unknown(manifest, self.checker.pack))
        else:
            seen, found = self.checker.check(manifest, kind)
            # The server, too, judges by CEL only what fits the schema.
            if kind.rules and not any(finding.fails for finding in found):
                found += self.cel.check(manifest, kind, seen)
        return found + self._by_rules(manifest, kind)

    def update(self, new: Manifest, old: Manifest) -> list[Finding]:
        """What a server would refuse when `new` replaces `old`, the same object in the same version."""
        kind = self.checker.kind_of(new)
        if kind is None:
            return self.create(new)
        seen, found = self.checker.check(new, kind)
        before = with_defaults(kind.defaults, old.body)
        if kind.status_subresource and "status" in old.body:
            seen = seen | {"status": old.body["status"]}  # an update leaves it as it was
        if not any(finding.fails for finding in found):
            found += self.cel.check(new, kind, seen, before)
        found += immutable(new, kind, seen, before)
        return found + self._by_rules(new, kind)

    def _by_rules(self, manifest: Manifest, kind: Kind | None) -> list[Finding]:
        """Rules see the object as it is decoded: a null is an absent field, or the zero value in a list or map."""
        plain = manifest if kind is None else decoded(manifest, kind)
        return [finding for rule in self._rules for finding in rule(plain, kind)]


def validate(
    manifests: Sequence[Manifest],
    pack: SchemaPack,
    *,
    rules: Iterable[ObjectRule] = OBJECT_RULES,
    tree_rules: Sequence[TreeRule] = TREE_RULES,
    together: bool = False,
) -> Outcome:
    """Judge every object by itself, then the objects together; CRDs among them extend the pack.

    What a server would refuse is found by default; `tree_rules()` asks for everything. With `together` a second process
    takes the last of the rules on the tree.

    Among the manifests may be documents that no API server serves (see `aside`): only rules on the tree see them.
    """
    validator = Validator(pack.with_crds(manifests), rules)
    objects = [manifest for manifest in manifests if not aside(manifest)]
    ours, theirs = tree_rules[:-1], tree_rules[-1:]

    def here() -> Outcome:
        findings: list[Finding] = []
        missing = 0
        for manifest in objects:
            missing += validator.checker.kind_of(manifest) is None
            findings += of_one(manifest, validator.create)
        findings += [finding for rule in ours for finding in of_all(manifests, rule)]
        return Outcome(findings, list(validator.cel.skipped), len(objects), missing)

    def there() -> Outcome:
        return Outcome([finding for rule in theirs for finding in of_all(manifests, rule)], [], 0, 0)

    first, second = each(lambda judge: judge(), (here, there), together=together)
    return replace(first, findings=first.findings + second.findings)
