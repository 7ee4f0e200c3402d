"""Collecting what is wrong with one object, and the small checks that many kinds share."""

from __future__ import annotations

from collections.abc import Collection

from blueprint.check import forms
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.finding import Confidence, Finding, Ref
from blueprint.objects import Manifest

MAX_INT32 = 2**31 - 1


class Problems:
    """Findings about one object.

    `confidence` is certain where the API server validates the object so; likely where a controller would later create
    something that the server refuses.
    """

    __slots__ = ("_ref", "confidence", "found", "manifest")

    def __init__(self, manifest: Manifest, confidence: Confidence = Confidence.CERTAIN) -> None:
        self.manifest = manifest
        self.confidence = confidence
        self.found: list[Finding] = []
        self._ref: Ref | None = None

    def add(self, code: str, path: str, message: str, fix: str = "", confidence: Confidence | None = None) -> None:
        """Report a problem at a path."""
        if self._ref is None:
            self._ref = self.manifest.ref
        how = confidence or self.confidence
        finding = Finding(code, message, self.manifest.source, confidence=how, object=self._ref, path=path, fix=fix)
        self.found.append(finding)

    def choice(self, code: str, path: str, value: object, allowed: Collection[str], required: bool = False) -> None:
        """A string must be one of a few; absent (None) is fine unless `required`."""
        if value is None and not required:
            return
        if (value is None or isinstance(value, str)) and value not in allowed:
            said = f"{value!r} is" if value else "it is empty, which is"
            self.add(code, path, f"{said} not one of {', '.join(sorted(allowed))}")

    def at_least(self, code: str, path: str, holder: Body, *names: str, least: int = 0) -> None:
        """Numbers of a map must not be below a bound."""
        for name in names:
            value = number(holder.get(name))
            if value is not None and value < least:
                where = f"{path}.{name}" if path else name
                self.add(code, where, f"{name} is {value}; it must be at least {least}")


def port_number(value: object) -> str:
    """What is wrong with a port's number, "" where nothing is (or it is no number at all)."""
    port = number(value)
    return "" if port is None or 1 <= port <= 65535 else f"port {port} is not between 1 and 65535"


def port_or_name(value: object) -> str:
    """What is wrong with a port's number or name."""
    if isinstance(value, str):
        problem = forms.port_name(value)
        return f"port name {value!r} {problem}" if problem else ""
    return port_number(value)


def labels(problems: Problems, code: str, path: str, value: object) -> None:
    """Keys and values of labels."""
    for key, label in mapping(value).items():
        if problem := forms.qualified_name(str(key)):
            problems.add(code, path, f"label key {key!r}: {problem}")
        if isinstance(label, str) and (problem := forms.label_value(label)):
            problems.add(code, path, f"label {key}: value {label!r} {problem}")


def label_selector(problems: Problems, code: str, path: str, value: object, in_values: bool = True) -> None:
    """A selector by labels: keys, operators and values."""
    selector = mapping(value)
    if not selector:
        return
    labels(problems, code, f"{path}.matchLabels", selector.get("matchLabels"))
    for index, term in enumerate(maps(selector.get("matchExpressions"))):
        expression(problems, code, f"{path}.matchExpressions[{index}]", term, in_values)


def expression(
    problems: Problems, code: str, at: str, term: Body, in_values: bool = True, numeric: bool = False
) -> None:
    """One requirement of a selector; node selectors (`numeric`) know Gt and Lt, too."""
    operator, values = term.get("operator"), items(term.get("values"))
    if operator in ("In", "NotIn"):
        if not values:
            problems.add(code, f"{at}.values", f"{operator} needs at least one value")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problems.add(code, f"{at}.values", f"{operator} takes no values")
    elif numeric and operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.add(code, f"{at}.values", f"{operator} takes exactly one value")
    elif operator is None or isinstance(operator, str):
        known = "In, NotIn, Exists, DoesNotExist" + (", Gt, Lt" if numeric else "")
        problems.add(code, f"{at}.operator", f"{text(operator)!r} is not one of {known}")
    key = term.get("key")
    if isinstance(key, str) and (problem := forms.qualified_name(key)):
        problems.add(code, f"{at}.key", f"key {key!r}: {problem}")
    if in_values:
        for index, value in enumerate(values):
            if isinstance(value, str) and (problem := forms.label_value(value)):
                problems.add(code, f"{at}.values[{index}]", f"value {value!r} {problem}")


def selects(selector: Body, given: Body) -> bool:
    """Whether a selector that is well formed matches a set of labels; a value of null is an empty one."""
    have = {key: value or "" for key, value in given.items()}
    for key, value in mapping(selector.get("matchLabels")).items():
        if have.get(key) != (value or ""):
            return False
    for term in maps(selector.get("matchExpressions")):
        name, operator, values = text(term.get("key")), term.get("operator"), items(term.get("values"))
        here = name in have
        if operator == "In" and not (here and have[name] in values):
            return False
        if operator == "NotIn" and here and have[name] in values:
            return False
        if (operator == "Exists" and not here) or (operator == "DoesNotExist" and here):
            return False
    return True
