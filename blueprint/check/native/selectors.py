"""Selectors of devices in CEL, with the types that the API server gives to `device`.

Source: k8s.io/dynamic-resource-allocation@v0.35.4 cel/compile.go (what `device` is, and that the result must be a
boolean), k8s.io/apiserver@v0.35.4 pkg/cel/library (quantity.go, semverlib.go), k8s.io/kubernetes@v1.35.4
pkg/apis/resource/validation/validation.go (validateQualifiedName: what a domain and an identifier may be).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from blueprint.check import forms

if TYPE_CHECKING:
    from cel_expr_python import cel

_FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_FAULT = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_DEVICE = re.compile(r"undeclared reference to 'device(?:\.(\w+))?[\w.]*'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']+)' applied to '\((.*)\)'")
_PRESENT = re.compile(rf"\bhas\s*\(\s*device\s*\.\s*(?:{'|'.join(_FIELDS)})\s*\)")
_ASKED = re.compile(r"\bdevice\s*\.\s*\?")
"""A step that may be missing: the binding has no type for it."""
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_PLACE = re.compile(
    r"\bdevice\s*\.\s*(attributes|capacity)\s*\[\s*(\"[^\"\\]*\"|'[^'\\]*')\s*\](?:\s*\[\s*(\"[^\"\\]*\"|'[^'\\]*')\s*\])?"
)
_LONGEST_DOMAIN, _LONGEST_NAME = 63, 32
_QUANTITY, _SEMVER = "kubernetes.Quantity", "kubernetes.Semver"
_SAID = {_QUANTITY: "quantity", _SEMVER: "semver", "dyn": "value"}


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    """The variable `device`, a field at a time: so the binding, which has no object types, knows each by its type."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    of = cel.Type
    quantity, semver = of.AbstractType(_QUANTITY), of.AbstractType(_SEMVER)
    variables = {
        "device.driver": of.STRING,
        "device.allowMultipleAllocations": of.BOOL,
        "device.attributes": of.Map(of.STRING, of.Map(of.STRING, of.DYN)),
        "device.capacity": of.Map(of.STRING, of.Map(of.STRING, quantity)),
    }
    # Two overloads of one name may not differ in such a type alone: what a method takes is left to the server.
    rows = [
        ("quantity", False, [of.STRING], quantity),
        ("isQuantity", False, [of.STRING], of.BOOL),
        ("semver", False, [of.STRING], semver),
        ("semver", False, [of.STRING, of.BOOL], semver),
        ("isSemver", False, [of.STRING], of.BOOL),
        ("isSemver", False, [of.STRING, of.BOOL], of.BOOL),
        ("isInteger", True, [of.DYN], of.BOOL),
        ("asApproximateFloat", True, [of.DYN], of.DOUBLE),
        *((name, True, [of.DYN], of.INT) for name in ("sign", "asInteger", "major", "minor", "patch")),
        *((name, True, [of.DYN, of.DYN], of.DYN) for name in ("add", "sub")),
        *((name, True, [of.DYN, of.DYN], of.BOOL) for name in ("isGreaterThan", "isLessThan")),
        ("compareTo", True, [of.DYN, of.DYN], of.INT),
    ]
    overloads: dict[str, list[cel.Overload]] = {}
    for name, member, parameters, result in rows:
        label = f"device_{name}_{len(overloads.get(name, ()))}"
        made = cel.Overload(label, result, parameters, is_member=member, impl=lambda *_: None)
        overloads.setdefault(name, []).append(made)
    declared = cel.CelExtension("device", [cel.FunctionDecl(name, group) for name, group in overloads.items()])
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_bindings.ExtBindings(), declared]
    return cel.NewEnv(variables=variables, extensions=extensions)


@lru_cache(maxsize=1 << 12)
def refused(text: str) -> str:
    """Why the API server refuses a selector that can be read, "" where it takes it or where that is not known."""
    if _ASKED.search(_TEXT.sub('""', text)):
        return ""
    environment = _environment()
    try:
        made = environment.compile(_PRESENT.sub("true", text))
    except (RuntimeError, ValueError) as error:
        return _words([message for *_, message in _FAULT.findall(str(error))])
    kind = made.return_type().name().lower()
    return "" if kind in ("bool", "dyn") else f"it gives {_kind(kind)}, and must give true or false"


def _words(faults: list[str]) -> str:
    for message in faults:
        if found := _DEVICE.match(message):
            near = get_close_matches(found[1] or "", _FIELDS, 1)
            meant = f"; did you mean {near[0]}?" if near else f", only {', '.join(_FIELDS)}"
            return (
                f"device has no field {found[1]}{meant}" if found[1] else "device is no value that has a use by itself"
            )
    for message in faults:
        found = _OVERLOAD.match(message)
        if found is None:
            return ""  # a function that is not known here: what it gives is not known, either
        if not found[1][0].isalpha():
            parts = " and ".join(_kind(part) for part in _parameters(found[2].lower()))
            hint = '; write quantity("40Gi") and compareTo' if _QUANTITY.lower() in found[2].lower() else ""
            return f"{found[1].strip('_@')} is not for {parts}{hint}"
    return ""


def _parameters(words: str) -> list[str]:
    """The types of a call, parted at the commas that stand in no brackets."""
    found, depth = [""], 0
    for letter in words:
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found]


def _kind(name: str) -> str:
    if name.startswith("map"):
        return "all attributes of a domain" if name.count("map") == 1 else "attributes by domain"
    for written, said in _SAID.items():
        if name == written.lower():
            return f"a {said}"
    return {"int": "a number", "uint": "a number", "double": "a number", "string": "a text"}.get(name, name)


def unmet(text: str) -> str:
    """Why no device can have what a selector looks up: a domain or a name of another form; "" where nothing is said."""
    for match in _PLACE.finditer(text):
        domain, name = match[2][1:-1], (match[3] or "xx")[1:-1]
        if problem := forms.subdomain(domain.lower()) if domain else "is empty":
            return f"{match[1]} of the domain {domain!r}: it {problem}"
        if len(domain) > _LONGEST_DOMAIN:
            return f"{match[1]} of the domain {domain!r}: it has more than {_LONGEST_DOMAIN} characters"
        if match[3] and not _identifier(name):
            return f"{match[1]} {name!r}: a name is letters, digits and _ only, at most {_LONGEST_NAME}"
    return ""


def _identifier(name: str) -> bool:
    return name.isascii() and name.isidentifier() and len(name) <= _LONGEST_NAME
