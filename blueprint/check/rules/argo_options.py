"""Options of syncs: Argo CD compares the whole text, and what it does not know it passes over without a word.

Sources: argo-cd v3.6.1 pkg/apis/application/v1alpha1/types.go (SyncOptions.HasOption), gitops-engine
pkg/sync/resource/annotations.go; the table `sync_options`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from blueprint.catalog.tables import table
from blueprint.check.applications import applications, templates
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, placeholder, texts
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_NOTES = {"argocd.argoproj.io/sync-options": "sync", "argocd.argoproj.io/compare-options": "compare"}
_NEAR = 0.75


def of_applications(graph: Graph) -> Iterator[Finding]:
    """ARG215: an option of an Application, or of the template of an ApplicationSet, that Argo CD does not know."""
    for application in applications(graph):
        yield from _listed(application.manifest, application.spec, "spec")
        operation = mapping(mapping(application.manifest.body.get("operation")).get("sync"))
        yield from _listed(application.manifest, {"syncPolicy": operation}, "operation.sync")
    for manifest, _, application in templates(graph):
        yield from _listed(manifest, application.spec, "spec.template.spec")


def _listed(manifest: Manifest, spec: Body, at: str) -> Iterator[Finding]:
    for index, option in enumerate(texts(mapping(spec.get("syncPolicy")).get("syncOptions"))):
        path = f"{at}.syncPolicy.syncOptions[{index}]" if at != "operation.sync" else f"{at}.syncOptions[{index}]"
        yield from _judged(manifest, option, path, table("sync_options")["sync"])


def of_objects(graph: Graph) -> Iterator[Finding]:
    """ARG215: an option in an annotation that Argo CD does not know, or reads of Applications only."""
    for manifest in graph.manifests:
        notes = annotations_of(manifest.body)
        for key, kind in _NOTES.items():
            if key not in notes:
                continue
            rows, path = table("sync_options")[kind], f"metadata.annotations.{key}"
            for option in filter(None, (each.strip() for each in notes[key].split(","))):
                name = option.partition("=")[0]
                if (
                    manifest.kind not in ("Application", "ApplicationSet")
                    and rows.get(name, {}).get("of") == "application"
                ):
                    message = f"{name} is an option of an Application: in an annotation it has no effect"
                    yield warn("ARG215", manifest, message, path, "spec.syncPolicy.syncOptions of the Application")
                else:
                    yield from _judged(manifest, option, path, rows)


def _judged(manifest: Manifest, option: str, path: str, rows: Mapping[str, Any]) -> Iterator[Finding]:
    name, equals, value = option.partition("=")
    if placeholder(option) or not option:
        return
    row = rows.get(name)
    if row is not None and (value in row["values"] or (not row["values"] and not equals)):
        return
    if row is not None:
        meant = _value(value, row["values"])
        fix = f"write {name}{meant and '='}{meant}"
        yield say("ARG215", manifest, f"the option {option!r} is none: Argo CD passes it over", path, fix)
        return
    near = get_close_matches(name.strip(), rows, 1, _NEAR) or [each for each in rows if each.lower() == name.lower()]
    if near:
        meant = _value(value.strip(), rows[near[0]]["values"])
        message = f"there is no option {name!r}: Argo CD passes it over"
        yield say("ARG215", manifest, message, path, f"did you mean {near[0]}{meant and '='}{meant}?")
    else:
        message = f"Argo CD v3.6.1 has no option {name!r}, and passes over what it does not know"
        yield say("ARG215", manifest, message, path, f"one of {', '.join(rows)}", Severity.WARNING, Confidence.LIKELY)


def _value(written: str, values: list[str]) -> str:
    """The value that was meant: the same in small letters, the one next to it, or the first."""
    if not values:
        return ""
    plain = written.strip().lower()
    return plain if plain in values else next(iter(get_close_matches(plain, values, 1)), values[0])


RULES = (of_objects,)
TREE = (of_applications,)
