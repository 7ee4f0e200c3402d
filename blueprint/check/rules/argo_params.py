"""Parameters of ApplicationSets: those that a template uses, against those that its generators give.

Sources: argo-cd v3.6.1 applicationset/generators (what each gives), applicationset/utils/utils.go (how both kinds of
templates are filled in), applicationset/controllers/applicationset_controller.go (names that come twice).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from blueprint.check.applications import templates
from blueprint.check.graph import Graph
from blueprint.check.rules.say import one_of, say
from blueprint.check.shapes import Body, mapping, maps
from blueprint.finding import Finding

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')
_FIELD = re.compile(r"(?<![\w$)\].\"])\.([A-Za-z_]\w*)")
_BARE = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_PLAIN = re.compile(r"\s*([A-Za-z_][\w.\-\[\]/]*)\s*")
_SCOPES = re.compile(r"\b(?:range|with|define|template|block)\b")
_WORDS = frozenset({"end", "else", "break", "continue", "now", "nil"})
#: What generators give whatever their spec holds, beside `values`; of others it is not known here.
_GIVE = {
    "clusters": ("name", "nameNormalized", "server", "project", "metadata"),
    "git": ("path",),
}


def unfilled(graph: Graph) -> Iterator[Finding]:
    """ARG217: a template uses a parameter that none of its generators gives."""
    for manifest, spec, _ in templates(graph):
        given = _given(spec.get("generators"))
        if not given or manifest.unknown:
            continue
        go = spec.get("goTemplate") is True
        for path, value in _texts(spec.get("template"), "spec.template"):
            problem = next(_problems(value, given, go=go), None)
            if problem is not None:
                near = get_close_matches(problem[0].strip("."), given, 1)
                fix = f"did you mean {near[0]}?" if near else one_of(sorted(given))
                yield say("ARG217", manifest, problem[1], path, fix)
                break


def _problems(value: str, given: frozenset[str], *, go: bool) -> Iterator[tuple[str, str]]:
    """Each parameter that is not given, and what comes of it."""
    actions = [_TEXT.sub('""', each) for each in _ACTION.findall(value)]
    if go and any(map(_SCOPES.search, actions)):
        return
    for action in actions:
        if go:
            if (bare := _BARE.fullmatch(action)) and bare[1] not in _WORDS:
                yield bare[1], f"{{{{{action}}}}} calls a function that there is not: no Application is made"
            for name in _FIELD.findall(action):
                if name not in given:
                    yield name, f"no generator gives .{name}: no Application is made, or one with `<no value>`"
        elif (plain := _PLAIN.fullmatch(action)) and plain[1].partition(".")[0].partition("[")[0] not in given:
            yield plain[1], f"no generator gives {plain[1]}: {{{{{action}}}}} stays as it is written"


def _given(generators: object) -> frozenset[str]:
    """The parameters of all generators, by their first names; none where not all of them are known."""
    found: set[str] = set()
    for row in maps(generators):
        for kind, body in row.items():
            if kind in ("selector", "template"):
                continue
            spec = mapping(body)
            inner = _given(spec.get("generators")) if kind in ("matrix", "merge") else _of(kind, spec)
            if not inner:
                return frozenset()
            found |= inner
    return frozenset(found)


def _of(kind: str, spec: Body) -> frozenset[str]:
    own = {"values"} if spec.get("values") else set()
    if kind == "list" and not spec.get("elementsYaml"):
        return frozenset(str(key) for element in maps(spec.get("elements")) for key in element) | own
    if kind not in _GIVE or spec.get("files") or spec.get("flatList") or spec.get("pathParamPrefix"):
        return frozenset()
    return frozenset(_GIVE[kind]) | own


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if "{{" in value:
            yield path, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _texts(member, f"{path}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _texts(member, f"{path}[{index}]")


def same_names(graph: Graph) -> Iterator[Finding]:
    """ARG218: a list makes several Applications of one name."""
    for manifest, spec, _ in templates(graph):
        name = mapping(mapping(spec.get("template")).get("metadata")).get("name")
        rows = maps(spec.get("generators"))
        if len(rows) != 1 or not isinstance(name, str) or manifest.is_unknown(("spec", "generators")):
            continue
        body = mapping(rows[0].get("list"))
        elements = [] if "selector" in rows[0] or "template" in body else maps(body.get("elements"))
        go, first = spec.get("goTemplate") is True, dict[str, int]()
        for index, element in enumerate(elements):
            filled = _filled(name, element, go=go)
            if filled is None:
                break
            if first.setdefault(filled, index) != index:
                message = f"elements {first[filled]} and {index} both make the Application {filled}: none is made"
                fix = "put what differs into the name"
                yield say("ARG218", manifest, message, "spec.template.metadata.name", fix)
                break


def _filled(name: str, element: Mapping[str, object], *, go: bool) -> str | None:
    """A name with the parameters of an element, None where more than they stands in it."""

    def value(match: re.Match[str]) -> str:
        plain = match[1].strip()
        key = plain[1:] if go and plain.startswith(".") else "" if go else plain
        return str(element[key]) if isinstance(element.get(key), str | int) else "{{"

    found = _ACTION.sub(value, name)
    return None if "{{" in found else found


RULES = (unfilled, same_names)
TREE = ()
