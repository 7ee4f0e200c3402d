"""Finalizers of Applications: one that nobody removes keeps an Application from ever being gone.

Source: argo-cd v3.6.1 pkg/apis/application/v1alpha1/application_defaults.go and types.go (which finalizers the
controller removes).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.applications import APPLICATION, APPLICATION_SET
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say
from blueprint.check.shapes import Body, known, mapping, texts
from blueprint.finding import Finding
from blueprint.objects import Manifest

_DOMAIN = "argocd.argoproj.io"
_RESOURCES = f"resources-finalizer.{_DOMAIN}"
_EXACT = frozenset({_RESOURCES, f"{_RESOURCES}/foreground", f"{_RESOURCES}/background"})
_STAGED = (f"pre-delete-finalizer.{_DOMAIN}", f"post-delete-finalizer.{_DOMAIN}")


def unknown(graph: Graph) -> Iterator[Finding]:
    """ARG216: a finalizer of Argo CD's domain that Argo CD does not know."""
    for manifest in graph.kind(APPLICATION):
        yield from _of(manifest, mapping(manifest.body.get("metadata")), "metadata")
    for manifest in graph.kind(APPLICATION_SET):
        template = mapping(mapping(manifest.body.get("spec")).get("template"))
        yield from _of(manifest, mapping(template.get("metadata")), "spec.template.metadata")


def _of(manifest: Manifest, metadata: Body, at: str) -> Iterator[Finding]:
    for index, name in enumerate(texts(metadata.get("finalizers"))):
        if _DOMAIN not in known(name) or name in _EXACT or name.startswith(_STAGED):
            continue
        message = (
            f"Argo CD does not know the finalizer {name}: nothing is deleted by it, and the Application stays for ever"
        )
        yield say("ARG216", manifest, message, f"{at}.finalizers[{index}]", f"did you mean {_RESOURCES}?")


RULES = ()
TREE = (unknown,)
