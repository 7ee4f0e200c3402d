"""Fixes as patches, where nothing else could be meant: a finding and its object give JSON Patch operations (RFC 6902).

A patch never decides anything that a person has to decide: it renames, moves, reorders, takes away what the server
drops anyway, or writes a value in the form that is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from blueprint.catalog.tables import table
from blueprint.check.locate import path_steps
from blueprint.check.shapes import Body, items, mapping, maps, text, texts
from blueprint.finding import Edit, Finding, Ref, Source
from blueprint.objects import Manifest, Steps
from blueprint.sync import WAVE, parse_wave

Maker = Callable[[Finding, Body, Steps], Iterable[Edit]]


def patched(findings: Iterable[Finding], manifests: Iterable[Manifest]) -> list[Finding]:
    """The findings, those with a safe fix with their patch. Objects with fields that are not known are left alone."""
    found = list(findings)
    if not any(finding.code in MAKERS for finding in found):
        return found
    objects = {(manifest.source, manifest.ref): manifest for manifest in manifests if not manifest.unknown}
    return [_with_patch(finding, objects) for finding in found]


def _with_patch(finding: Finding, objects: Mapping[tuple[Source, Ref], Manifest]) -> Finding:
    maker = MAKERS.get(finding.code)
    manifest = objects.get((finding.source, finding.object)) if maker and finding.source and finding.object else None
    if maker is None or manifest is None or manifest.root is not None:
        return finding
    edits = tuple(maker(finding, manifest.body, tuple(path_steps(finding.path))))
    return replace(finding, patch=edits) if edits else finding


def apply(body: Body, patch: Iterable[Edit]) -> Body:
    """The object with a patch applied; the given one stays as it is.

    Raises KeyError or IndexError where the patch does not fit.
    """
    result: Body = json.loads(json.dumps(body))
    for edit in patch:
        if edit.op == "move":
            parent, last = _place(result, edit.source)
            value = parent.pop(last)
        else:
            value = json.loads(edit.value) if edit.value else None
        parent, last = _place(result, edit.path)
        if edit.op == "remove":
            del parent[last]
        elif isinstance(parent, list) and edit.op == "add":
            parent.insert(len(parent) if last == "-" else last, value)
        elif edit.op == "replace" and last not in (parent if isinstance(parent, dict) else range(len(parent))):
            raise KeyError(edit.path)
        else:
            parent[last] = value
    return result


def _place(body: Any, path: str) -> tuple[Any, Any]:  # noqa: ANN401
    *above, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    for step in above:
        body = body[int(step) if isinstance(body, list) else step]
    return body, int(last) if isinstance(body, list) and last != "-" else last


def pointer(*steps: str | int) -> str:
    """A JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _at(body: Any, steps: Steps) -> Any:  # noqa: ANN401
    """The value at a path, None where there is none."""
    for step in steps:
        if isinstance(step, int):
            body = body[step] if isinstance(body, list) and step < len(body) else None
        else:
            body = mapping(body).get(step)
    return body


def _replace(steps: Steps, value: object) -> Edit:
    return Edit("replace", pointer(*steps), json.dumps(value))


def _set(body: Body, steps: Steps, value: object) -> Iterator[Edit]:
    """Give a field a value, with the maps above it where they are not there."""
    for length in range(1, len(steps)):
        if not isinstance(_at(body, steps[:length]), dict):
            inner: object = value
            for step in reversed(steps[length:]):
                inner = {step: inner}
            yield Edit("add", pointer(*steps[:length]), json.dumps(inner))
            return
    yield Edit("replace" if steps[-1] in _at(body, steps[:-1]) else "add", pointer(*steps), json.dumps(value))


def _order(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """KQ121: the rows in the order of coveredResources, where they are the same resources."""
    covered = texts(_at(body, (*steps[:3], "coveredResources")))
    rows = {text(row.get("name")): row for row in maps(_at(body, steps))}
    if sorted(covered) == sorted(rows) and len(set(covered)) == len(items(_at(body, steps))):
        yield _replace(steps, [rows[name] for name in covered])


_MEANT = re.compile(r"did you mean `([^`]+)`\?")


def _rename(finding: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """SCH104: the field under the name that was meant, where there is no such field yet."""
    match = _MEANT.search(finding.fix)
    if match and match[1] not in mapping(_at(body, steps[:-1])):
        yield Edit("move", pointer(*steps[:-1], match[1]), source=pointer(*steps))


def _remove(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """SCH112, NAM203: a field that the server drops."""
    if steps and _at(body, steps) is not None:
        yield Edit("remove", pointer(*steps))


def _amounts(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """DRF105: every amount as the server keeps it."""
    from blueprint.check.rules.drift import rewritten_amounts

    yield from (_replace(tuple(path_steps(path)), written) for path, _, written in rewritten_amounts(body))


def _wave(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """WAV201: a number in quotes, without blanks."""
    value = mapping(mapping(body.get("metadata")).get("annotations")).get(WAVE)
    meant = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if meant and parse_wave(meant) is not None:
        yield _replace(("metadata", "annotations", WAVE), meant)


def _below_spec(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """ARG101: the field where Argo CD reads it."""
    if isinstance(body.get("spec"), dict) and steps[0] not in body["spec"]:
        yield Edit("move", pointer("spec", *steps), source=pointer(*steps))


def _missing_key(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """ARG202: one more option."""
    options = _at(body, steps)
    if isinstance(options, list):
        yield Edit("add", pointer(*steps, "-"), json.dumps("missingkey=error"))
    else:
        yield from _set(body, steps, ["missingkey=error"])


_OLD_TEMPLATE = re.compile(r"\{\{-?\s*[A-Za-z_]")


def _go_template(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """ARG203: Go templates on, and strict; not where placeholders of the old form would break."""
    if not _OLD_TEMPLATE.search(json.dumps(body.get("spec"))):
        yield from _set(body, ("spec", "goTemplate"), True)
        yield from _missing_key(_, body, ("spec", "goTemplateOptions"))


def _autoscaler(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """SCL101: the group that has the kind."""
    old = "targetCPUUtilizationPercentage" in mapping(body.get("spec"))
    if body.get("kind") == "ScaledObject":
        yield _replace(("apiVersion",), "keda.sh/v1alpha1")
    else:
        yield _replace(("apiVersion",), "autoscaling/v1" if old else "autoscaling/v2")


def _keep_images(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """POL305: mutateDigest written out."""
    yield from _set(body, (*steps, "mutateDigest"), False)


def _scoped(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """POL402: the word that makes scoped actions count."""
    if steps == ("spec", "scopedEnforcementActions") and "enforcementAction" not in mapping(body.get("spec")):
        yield from _set(body, ("spec", "enforcementAction"), "scoped")


def _of_newer_version(finding: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """KQ701: a field or value under its newer name, where that is all that changed."""
    kind = f"{body.get('kind')}.{text(body.get('apiVersion')).partition('/')[0]}"
    for row in table("kueue_rules")["renamed_values"]:
        if row["kind"] == kind and tuple(row["path"].split(".")) == steps:
            yield _replace(steps, row["values"][_at(body, steps)])
    for row in table("kueue_rules")["moved"]:
        new = tuple(row["now"].split("."))
        same = row["kind"] == kind and tuple(row["path"].split(".")) == steps and new[:-1] == steps[:-1]
        if same and new[-1] not in mapping(_at(body, steps[:-1])):
            yield Edit("move", pointer(*new), source=pointer(*steps))


_SCHEME = re.compile(r"^https?://")


def _image(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """IMG101: a reference without the scheme of a URL."""
    name = text(_at(body, steps))
    if _SCHEME.match(name):
        yield _replace(steps, _SCHEME.sub("", name))


def _model_format(_: Finding, body: Body, steps: Steps) -> Iterator[Edit]:
    """DRF106: predictor.<format> as predictor.model."""
    predictor = mapping(_at(body, steps[:-1]))
    rows = [row for row in table("drift")["converted"] if str(steps[-1]) in row["fields"]]
    if rows and steps[:-1] == ("spec", "predictor") and "model" not in predictor:
        yield Edit("move", pointer("spec", "predictor", "model"), source=pointer(*steps))
        yield Edit("add", pointer("spec", "predictor", "model", "modelFormat"), json.dumps({"name": steps[-1]}))


MAKERS: Mapping[str, Maker] = {
    "ARG101": _below_spec,
    "ARG202": _missing_key,
    "ARG203": _go_template,
    "DRF105": _amounts,
    "DRF106": _model_format,
    "IMG101": _image,
    "KQ121": _order,
    "KQ701": _of_newer_version,
    "NAM203": _remove,
    "POL305": _keep_images,
    "POL402": _scoped,
    "SCH104": _rename,
    "SCH112": _remove,
    "SCL101": _autoscaler,
    "WAV201": _wave,
}
"""What makes the patch of a rule, by its code."""
