"""The only place that makes names, labels and file names: always valid for what they name.

A text that is valid already is kept. Anything else (a wrong character, too long) becomes a readable stem and eight
characters of its digest, so that two texts whose stems are equal still have two names. The same text gives the same
name on every machine. The limits by kind are `blueprint/catalog/data/names.yaml`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml_rs

from blueprint.finding import Ref
from blueprint.naming import LABEL, LABEL_1035, QUALIFIED, SUBDOMAIN

_DIGEST = 8  # of 32 letters: 40 bits, and stems rarely meet in the first place


@dataclass(frozen=True, slots=True)
class Rule:
    """What a name may be: a form that it must match, and how many characters it may have."""

    form: re.Pattern[str]
    length: int
    refused: tuple[str, ...] = ()

    def fits(self, text: str) -> bool:
        """Whether the text may stand as it is."""
        return (
            len(text) <= self.length
            and self.form.fullmatch(text) is not None
            and not (self.refused and text.startswith(self.refused))
        )


# k8s.io/apimachinery@v0.35.4 pkg/util/validation/validation.go IsValidPortName
_PORT = re.compile("(?=[0-9-]*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*")
_FORMS = {"label": LABEL, "label-1035": LABEL_1035, "subdomain": SUBDOMAIN}

_GENERAL = Rule(SUBDOMAIN, 253)
_PART = Rule(LABEL, 63)
_PORT_RULE = Rule(_PORT, 15)
_VALUE_RULE = Rule(QUALIFIED, 63)
# A folder entry has 255 bytes at most; this leaves room for `.yaml` and for what editors and tar append.
_FILE_RULE = Rule(re.compile(r"[a-z0-9](?:[-a-z0-9]|\.(?=[-a-z0-9]))*"), 200)


@cache
def _rules() -> dict[str, Rule]:
    text = resources.files("blueprint.catalog").joinpath("data/names.yaml").read_text(encoding="utf-8")
    rows: Any = yaml_rs.loads(text, parse_datetime=False)
    return {kind: Rule(_FORMS[row["form"]], row["max"], tuple(row.get("not", ()))) for kind, row in rows.items()}


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:_DIGEST].decode().lower()


def _fit(text: str, rule: Rule, *, keep_case: bool = False) -> str:
    """The text if it fits, else a stem of it and its digest."""
    if rule.fits(text):
        return text
    # A point may stay where the form has points; every other run of strange characters becomes one dash.
    strange = "[^A-Za-z0-9.]+" if rule.fits("a.a") else "[^A-Za-z0-9]+"
    stem = re.sub(strange, "-", text if keep_case else text.lower())
    stem = re.sub(r"-*\.[-.]*", ".", stem).strip("-.")
    digest = _digest(text)
    # A form that wants a letter first, or refuses a prefix, gets one put in front.
    for candidate in (stem, f"x-{stem}"):
        found = f"{candidate[: rule.length - _DIGEST - 1].rstrip('-.')}-{digest}"
        if rule.fits(found):
            return found
    return f"x-{digest}"


def name(kind: str, *parts: str, reserve: int = 0) -> str:
    """The `metadata.name` of an object of that kind, its parts joined with `-`.

    `reserve` characters stay free for what is appended to a label (`-worker-0`), within the 63 of a DNS label.
    Raises ValueError where that leaves fewer than 16.
    Parts are joined without marks: (`a-b`, `c`) and (`a`, `b-c`) are the same name.
    """
    rule = _rules().get(kind, _GENERAL)
    if reserve:
        if reserve > 63 - 2 * _DIGEST:
            raise ValueError(f"{reserve} characters leave no room for a name of {kind}")
        rule = Rule(rule.form, min(rule.length, 63 - reserve), rule.refused)
    return _fit("-".join(part for part in parts if part), rule)


def part_name(*parts: str) -> str:
    """The name of something inside a pod (container, volume, claim): a DNS label, up to 63 characters."""
    return _fit("-".join(part for part in parts if part), _PART)


def port_name(*parts: str) -> str:
    """The name of a port: up to 15 of a-z, 0-9 and single dashes, with a letter."""
    return _fit("-".join(part for part in parts if part), _PORT_RULE)


def label_value(text: str) -> str:
    """A label value: up to 63 characters, letters and digits at both ends; may be empty."""
    return _fit(text, _VALUE_RULE, keep_case=True) if text else ""


def label_key(prefix: str, name: str) -> str:
    """The key of a label or annotation: `prefix/name`, or the name alone where the prefix is empty."""
    key = _fit(name, _VALUE_RULE, keep_case=True)
    return f"{_fit(prefix, _GENERAL)}/{key}" if prefix else key


def file_name(kind: str, name: str, *more: str) -> str:
    """The name of an object's file: `<kind>-<name>.yaml` in lower case, `more` (namespace, group) behind underscores.

    It has no separators, no leading dot, and names that differ only in the case of letters give different files on a
    file system that ignores case.
    """
    # Kinds hold no dash and fitted parts no underscore, so the parts cannot run into each other.
    stem = "_".join(_fit(text, _FILE_RULE) if text else "" for text in (f"{kind.lower()}-{name}", *more))
    if len(stem) > _FILE_RULE.length:
        stem = f"{stem[: _FILE_RULE.length - _DIGEST - 1]}_{_digest(stem)}"
    return f"{stem}.yaml"


def file_names(refs: Iterable[Ref]) -> dict[Ref, str]:
    """A file for each object of one folder: the short name, and with namespace and group where that is taken twice."""
    by_name: dict[str, list[Ref]] = {}
    for ref in refs:
        by_name.setdefault(file_name(ref.kind, ref.name), []).append(ref)
    names: dict[Ref, str] = {}
    for short, same in by_name.items():
        for ref in same:
            names[ref] = short if len(set(same)) == 1 else file_name(ref.kind, ref.name, ref.namespace, ref.group)
    return names
