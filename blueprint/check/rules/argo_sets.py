"""ApplicationSets: lists that come out empty, parameters that are missing, and Applications that no step rolls out.

Sources: argo-cd v3.6.1 applicationset/utils/utils.go, docs/operator-manual/applicationset.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.applications import templates
from blueprint.check.graph import Graph, selects
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, mapping, maps, placeholder, text
from blueprint.finding import Finding, Severity

_ASKED = ("clusters", "clusterDecisionResource", "scmProvider", "plugin")
_READ = ("git", "oci")
_KEEPS = ("create-only", "create-update")


def _generators(rows: object) -> Iterator[tuple[str, Body]]:
    """Every generator by its kind, also those inside matrix and merge."""
    for row in maps(rows):
        for kind, body in row.items():
            if kind in ("matrix", "merge"):
                yield from _generators(mapping(body).get("generators"))
            elif isinstance(body, dict):
                yield kind, body


def mass_deletion(graph: Graph) -> Iterator[Finding]:
    """ARG201: a list that comes out empty for a moment deletes every Application, and all that these applied."""
    for manifest, spec, _ in templates(graph):
        policy = mapping(spec.get("syncPolicy"))
        if policy.get("preserveResourcesOnDeletion") is True or policy.get("applicationsSync") in _KEEPS:
            continue
        kinds = [kind for kind, _ in _generators(spec.get("generators"))]
        asked = [kind for kind in kinds if kind in _ASKED]
        found = asked or [kind for kind in kinds if kind in _READ]
        if "pullRequest" in kinds or not found:
            continue
        message = (
            f"when the {found[0]} generator gives an empty or shorter list, the Applications that are missing in it "
            "are deleted with everything they applied"
        )
        fix = "set syncPolicy.preserveResourcesOnDeletion: true or applicationsSync: create-update"
        severity = Severity.ERROR if asked else Severity.WARNING
        yield say("ARG201", manifest, message, "spec.syncPolicy", fix, severity)


def missing_keys(graph: Graph) -> Iterator[Finding]:
    """ARG202: a parameter that is missing becomes `<no value>` in a name, a path or a server."""
    for manifest, spec, _ in templates(graph):
        options = [text(option) for option in items(spec.get("goTemplateOptions"))]
        if spec.get("goTemplate") is True and "missingkey=error" not in options:
            message = "a parameter that is missing becomes `<no value>`, in names and paths, too"
            yield warn("ARG202", manifest, message, "spec.goTemplateOptions", 'goTemplateOptions: ["missingkey=error"]')


def go_syntax_without_go(graph: Graph) -> Iterator[Finding]:
    """ARG203: placeholders of Go templates in an ApplicationSet that does not use them stay as they are."""
    for manifest, spec, application in templates(graph):
        if spec.get("goTemplate") is True:
            continue
        metadata = mapping(mapping(spec.get("template")).get("metadata"))
        places = {"spec.template.metadata.name": metadata.get("name")}
        places |= {
            f"spec.template.{each.at}.{key}": each.body.get(key) for each in application.sources for key in _KEYS
        }
        places |= {f"spec.template.spec.destination.{key}": value for key, value in application.destination.items()}
        for path, value in places.items():
            if placeholder(value) and any(mark in text(value) for mark in ("{{.", "{{ .", "{{-", "| ")):
                message = f"{value} is a Go template, and goTemplate is not set: it stays as it is written"
                yield say("ARG203", manifest, message, path, "set goTemplate: true")
                break


_KEYS = ("repoURL", "path", "targetRevision")


def unrolled(graph: Graph) -> Iterator[Finding]:
    """ARG204: with RollingSync Applications do not sync themselves; one that no step selects is never synced."""
    for manifest, spec, _ in templates(graph):
        strategy = mapping(spec.get("strategy"))
        steps = maps(mapping(strategy.get("rollingSync")).get("steps"))
        patched = any("labels" in str(mapping(body.get("template"))) for _, body in _generators(spec.get("generators")))
        if strategy.get("type") != "RollingSync" or not steps or patched:
            continue
        written = mapping(mapping(mapping(spec.get("template")).get("metadata")).get("labels"))
        labels = {str(key): text(value) for key, value in written.items()}
        if any(placeholder(value) for value in labels.values()) or spec.get("templatePatch"):
            asked = {text(term.get("key")) for step in steps for term in maps(step.get("matchExpressions"))}
            if asked <= labels.keys() or spec.get("templatePatch"):
                continue  # the values are known only when the list is made
        elif any(selects({"matchExpressions": maps(step.get("matchExpressions"))}, labels) for step in steps):
            continue
        message = "no step of the rolling sync selects the Applications by the labels of the template"
        fix = "give the template a label that the steps ask for"
        yield say("ARG204", manifest, message, "spec.strategy.rollingSync.steps", fix)


RULES = ()
TREE = (mass_deletion, missing_keys, go_syntax_without_go, unrolled)
