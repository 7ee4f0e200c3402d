"""Evaluate the `x-kubernetes-validations` of a CRD as its API server does.

k8s.io/apiextensions-apiserver@v0.35.4 pkg/apiserver/schema/cel/validation.go: rules see the object after defaults and
without its `status`; a null is not judged; a rule that cannot be evaluated at run time is violated. A rule that this
binding cannot compile is reported as skipped, never as passed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cel_expr_python import cel

from blueprint.catalog.crds import ITEM, VALUE, Json, Path
from blueprint.catalog.schemas import CelRule, Kind, ListMap
from blueprint.finding import Finding
from blueprint.objects import Manifest

Steps = tuple[str | int, ...]

# A field whose name CEL cannot spell: k8s.io/apiserver@v0.35.4 pkg/cel/escaping.go
_ESCAPED = re.compile(r"(?<=\.)(?:__(\w+?)__(?!\w)|\w*__(?:underscores|dot|dash|slash)__\w*)")
_SPELLINGS = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_SELF = re.compile(r"\bself\b(?:\s*\.\s*\??\s*(?:`([^`]+)`|([A-Za-z_]\w*)(?!\w|\s*\()))?")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that some object would have been judged by, had the binding been able to evaluate it."""

    api_version: str
    kind: str
    path: Path
    rule: str
    reason: str


class _Missing:
    """There is no old value to compare with."""


_MISSING = _Missing()


@dataclass(slots=True)
class _Node:
    """The rules of one place in a kind, and the places below."""

    rules: list[CelRule] = field(default_factory=list)
    below: dict[str, _Node] = field(default_factory=dict)
    unique: ListMap | None = None
    casts: dict[Path, str] = field(default_factory=dict)
    # What the rules read of a map; None when they read all of it.
    reads: frozenset[str] | None = frozenset()
    # By the rule's position and whether there is an old value: the compiled rule, or why there is none.
    programs: dict[tuple[int, bool], cel.Expression | str] = field(default_factory=dict)


class Rules:
    """Compiles each rule text once, when an object first meets it; collects what was skipped."""

    def __init__(self) -> None:
        self.skipped: dict[Skipped, None] = {}
        self._trees: dict[Kind, _Node] = {}
        self._programs: dict[str, cel.Expression | str] = {}
        self._env: cel.Env | None = None

    def check(
        self, manifest: Manifest, kind: Kind, seen: dict[str, Any], old: dict[str, Any] | None = None
    ) -> Iterator[Finding]:
        """The rules of `kind` that `seen` violates; transition rules only where `old` holds a value to compare with."""
        if not kind.rules:
            return
        if (tree := self._trees.get(kind)) is None:
            tree = self._trees[kind] = _tree(kind)
        for rule, path, code, message in self._walk(tree, kind, seen, _MISSING if old is None else old, ()):
            yield _finding(manifest, rule, path, code, message)

    def _walk(
        self,
        node: _Node,
        kind: Kind,
        value: Json,
        old: Json,
        path: Steps,
    ) -> Iterator[tuple[CelRule, Steps, str, str]]:
        if value is None:
            return
        if node.rules:
            for rule, code, message in self._judge(node, kind, value, old):
                yield rule, path, code, message
        if not node.below:
            return
        if isinstance(value, dict):
            free = node.below.get(VALUE)
            for name, child in value.items():
                if (below := node.below.get(name, free)) is not None:
                    before = old.get(name, _MISSING) if isinstance(old, dict) else _MISSING
                    yield from self._walk(below, kind, child, before, (*path, name))
        elif isinstance(value, list) and (below := node.below.get(ITEM)) is not None:
            match = _matcher(node.unique, old)
            for index, child in enumerate(value):
                yield from self._walk(below, kind, child, match(child), (*path, index))

    def _judge(self, node: _Node, kind: Kind, value: Json, old: Json) -> Iterator[tuple[CelRule, str, str]]:
        known = old is not _MISSING and old is not None
        data: dict[str, Any] = {"self": _projected(node, value)}
        if known:
            data["oldSelf"] = _projected(node, old)
        activation = None
        for index, rule in enumerate(node.rules):
            if rule.transition and not known and not rule.optional_old_self:
                continue
            if (program := node.programs.get((index, known))) is None:
                program = node.programs[index, known] = self.program(node, rule, known)
            if isinstance(program, str):
                self.skipped[Skipped(kind.api_version, kind.kind, rule.path, rule.rule, program)] = None
                continue
            activation = activation or self._environment().Activation(data)
            result = program.eval(activation)
            answer = result.value()
            if answer is True:
                continue
            if answer is False:
                yield rule, "CEL101", self._message(node, rule, known, activation)
            elif result.type() == cel.Type.ERROR:
                yield rule, "CEL102", f"{_said(rule)}: the rule cannot be evaluated here ({_reason(str(answer))})"
            else:
                reason = f"gives {result.type().name()}, not a boolean"
                self.skipped[Skipped(kind.api_version, kind.kind, rule.path, rule.rule, reason)] = None

    def _message(self, node: _Node, rule: CelRule, known: bool, activation: cel.Activation) -> str:
        if rule.message_expression:
            program = self._compiled(_translated(node, rule, rule.message_expression, known))
            said = None if isinstance(program, str) else program.eval(activation).value()
            if isinstance(said, str) and said.strip():
                return said.strip()
        return _said(rule)

    def program(self, node: _Node, rule: CelRule, known: bool) -> cel.Expression | str:
        """The compiled rule, or why there is none; `known`: there is an old value."""
        return _unreadable(node, rule) or self._compiled(_translated(node, rule, rule.rule, known))

    def _compiled(self, text: str) -> cel.Expression | str:
        if (program := self._programs.get(text)) is None:
            try:
                program = self._environment().compile(text)
            except RuntimeError as error:
                program = _reason(str(error))
            self._programs[text] = program
        return program

    def _environment(self) -> cel.Env:
        if self._env is None:
            from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

            from blueprint.check.cel_library import extension

            self._env = cel.NewEnv(
                variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN},
                extensions=[
                    ext_strings.ExtStrings(),
                    ext_optional.ExtOptional(),
                    ext_bindings.ExtBindings(),
                    extension(),
                ],
            )
        return self._env


def _tree(kind: Kind) -> _Node:
    root = _Node()
    for rule in kind.rules:
        node = _place(root, rule.path)
        node.rules.append(rule)
        read = _reads(rule)
        node.reads = None if read is None or node.reads is None else node.reads | read
        depth = len(rule.path)
        node.casts = {path[depth:]: cast for path, cast in kind.casts.items() if path[:depth] == rule.path}
    for path, unique in kind.list_maps.items():
        if (place := _existing(root, path)) is not None:
            place.unique = unique
    return root


def _existing(root: _Node, path: Path) -> _Node | None:
    node: _Node | None = root
    for step in path:
        node = node.below.get(step) if node else None
    return node


def _place(root: _Node, path: Path) -> _Node:
    node = root
    for step in path:
        node = node.below.setdefault(step, _Node())
    return node


def _reads(rule: CelRule) -> frozenset[str] | None:
    """The fields of `self` that a rule and its message name; None when it may read the whole value.

    Only these are handed over: turning a large object into CEL values costs more than most rules.
    """
    text = _respelt(f"{rule.rule} {rule.message_expression}").replace("oldSelf", "self")
    found = {quoted or name for quoted, name in _SELF.findall(text)}
    return None if "" in found else frozenset(found)


def _projected(node: _Node, value: Json) -> Json:
    if node.reads is not None and isinstance(value, dict):
        value = {name: value[name] for name in node.reads if name in value}
    for path, cast in node.casts.items():
        if cast in _CASTS:
            value = _cast(value, path, _CASTS[cast])
    return value


_CASTS: Mapping[str, Callable[[Any], Any]] = {
    "double": lambda value: float(value) if isinstance(value, int) and not isinstance(value, bool) else value,
    "bytes": lambda value: base64.b64decode(value) if isinstance(value, str) else value,
}


def _cast(value: Json, path: Path, cast: Callable[[Any], Any]) -> Json:
    """`value` with `cast` applied to each value at `path`; copies what it changes."""
    if not path:
        return cast(value)
    step, rest = path[0], path[1:]
    if isinstance(value, list) and step == ITEM:
        return [_cast(child, rest, cast) for child in value]
    if isinstance(value, dict) and step == VALUE:
        return {name: _cast(child, rest, cast) for name, child in value.items()}
    if isinstance(value, dict) and step in value:
        return value | {step: _cast(value[step], rest, cast)}
    return value


def _unreadable(node: _Node, rule: CelRule) -> str:
    """Why a rule cannot be given its values: the binding takes no timestamps and durations from outside."""
    for path, cast in node.casts.items():
        if cast in ("timestamp", "duration") and path and path[-1] in rule.rule:
            return f"reads `{path[-1]}` as a {cast}"
    return ""


def _translated(node: _Node, rule: CelRule, text: str, known: bool) -> str:
    """The rule in the words of the binding: field names unescaped, `self` and `oldSelf` of their CEL types."""
    text = _respelt(text)
    if (cast := node.casts.get(())) in ("timestamp", "duration"):
        text = f"cel.bind(self, {cast}(self), {text})"
    if rule.optional_old_self:
        old = "optional.of(oldSelf)" if known else "optional.none()"
        text = f"cel.bind(oldSelf, {old}, {text})"
    return text


def _respelt(text: str) -> str:
    return _ESCAPED.sub(_spelling, text)


def _spelling(match: re.Match[str]) -> str:
    if match[1] is not None and match[0] not in _SPELLINGS:
        return f"`{match[1]}`"  # a word that CEL reserves
    name = re.sub("__(?:underscores|dot|dash|slash)__", lambda part: _SPELLINGS[part[0]], match[0])
    return f"`{name}`"


def _matcher(unique: ListMap | None, old: Json) -> Callable[[Any], Any]:
    """For an item of a list-map its old self; items of other lists have none."""
    if unique is None or not isinstance(old, list):
        return lambda item: _MISSING

    def key(item: Json) -> tuple[Any, ...]:
        return tuple(item.get(name) if isinstance(item, dict) else None for name in unique.keys)

    held = {key(item): item for item in old}
    return lambda item: held.get(key(item), _MISSING)


def _said(rule: CelRule) -> str:
    return rule.message.strip() or f"failed rule: {' '.join(rule.rule.split())}"


def _reason(text: str) -> str:
    """The first line of an error of the binding, without its status code."""
    return re.sub(r"^(?:[A-Z_]+: )?(?:ERROR: <input>:)?", "", text.splitlines()[0]) if text else "unknown error"


def _finding(manifest: Manifest, rule: CelRule, path: Steps, code: str, message: str) -> Finding:
    from blueprint.check.locate import field_path, path_steps

    return Finding(
        code=code,
        message=message,
        source=manifest.source,
        object=manifest.ref,
        path=field_path(*path, *path_steps(rule.field_path.lstrip("."))),
    )


def compiled(kinds: Iterable[Kind]) -> list[Skipped]:
    """Compile every rule of some kinds: the ones that this binding cannot, for the coverage report."""
    rules = Rules()
    skipped = []
    for kind in kinds:
        for node, rule in _places(_tree(kind)):
            if isinstance(reason := rules.program(node, rule, known=True), str):
                skipped.append(Skipped(kind.api_version, kind.kind, rule.path, rule.rule, reason))
    return skipped


def _places(node: _Node) -> Iterator[tuple[_Node, CelRule]]:
    for rule in node.rules:
        yield node, rule
    for below in node.below.values():
        yield from _places(below)
