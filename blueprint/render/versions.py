"""Whether the components of a cluster are the versions that the objects are rendered for."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.catalog import vllm
from blueprint.catalog.components import Component, Support, components
from blueprint.catalog.versions import version
from blueprint.finding import Confidence, Finding, Severity
from blueprint.render.site import Site
from blueprint.spec.cluster import Components

#: What the catalog calls a component that the specs call otherwise.
_CATALOG = {"lws": "leaderworkerset", "argocd": "argo-cd"}


def findings(site: Site) -> Iterator[Finding]:
    """A warning for each component of another minor version than the catalog's, or too old or untested for this
    Kubernetes: nothing says that it takes what is rendered."""
    spec = site.cluster.spec.components
    known = {component.name: component for component in components()}
    for field in Components.model_fields:
        wanted = getattr(spec, field)
        component = known.get(_CATALOG.get(field, field.replace("_", "-")))
        if wanted is None or component is None:
            continue
        yield from _judge(site, field, wanted, component, spec.kubernetes)
    yield from _servers(site)


def _servers(site: Site) -> Iterator[Finding]:
    """VER103 for each service whose vLLM is older or newer than every version that the tables were read from."""
    oldest, newest = vllm.versions()[0], vllm.versions()[-1]
    least, most = version(oldest), version(newest)
    for document in site.platform.services_on(site.name):
        asked = version(document.model.spec.engine.vllm)
        if asked is None or least is None or most is None or not least[:3] <= asked[:3] <= most[:3]:
            yield Finding(
                "VER103",
                f"flags and metrics of vLLM {document.model.spec.engine.vllm} are not known",
                document.locate("spec.engine.vllm"),
                severity=Severity.WARNING,
                confidence=Confidence.LIKELY,
                fix=f"known are {oldest} to {newest}",
            )


def _judge(site: Site, field: str, wanted: str, component: Component, kubernetes: str) -> Iterator[Finding]:
    alias = Components.model_fields[field].alias or field
    place = site.document.locate(f"spec.components.{alias}")
    asked, described = version(wanted), version(component.version)
    if asked is None or described is None or asked[:2] != described[:2]:
        yield Finding(
            "VER101",
            f"objects are rendered for {component.name} {component.version}; whether {wanted} takes them is not known",
            place,
            severity=Severity.WARNING,
            confidence=Confidence.LIKELY,
            fix=f"run {component.name} {component.version}, or try the tree on a cluster with {wanted} first",
        )
    elif component.support(kubernetes) is Support.TOO_OLD:
        yield Finding(
            "VER102",
            f"{component.name} {component.version} wants Kubernetes {component.minimum} or newer, not {kubernetes}",
            place,
            confidence=Confidence.LIKELY,
            fix=f"use Kubernetes {component.minimum} or newer, or an older {component.name}",
        )
