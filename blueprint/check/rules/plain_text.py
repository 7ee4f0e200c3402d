"""Credentials that are written into objects, where everybody who reads Git or the API reads them.

Source: kubernetes.io docs/concepts/security/secrets-good-practices; the forms are in `blueprint.plaintext`.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint import plaintext
from blueprint.check.graph import Graph
from blueprint.check.pods import containers
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import items, known, mapping, maps, text
from blueprint.finding import Finding

_FIX = "take it out, make it invalid, and read its successor from a Secret"
_SOURCES = ("Application.argoproj.io", "GitRepository.source.toolkit.fluxcd.io")


def readable(graph: Graph) -> Iterator[Finding]:
    """TEN113: a variable, an argument or the address of a repository with a credential; no message holds it."""
    for manifest, pod in graph.pods:
        for where, container in containers(pod.spec):
            at = f"{pod.spec_path}.{where}"
            for index, variable in enumerate(maps(container.get("env"))):
                name, value = text(variable.get("name")), known(variable.get("value"))
                path = f"{at}.env[{index}].value"
                if what := plaintext.by_form(value):
                    yield say("TEN113", manifest, f"{name} holds {what} in plain text", path, _FIX)
                elif plaintext.by_name(name, value):
                    message = f"{name} is called like a credential and holds its value in plain text"
                    yield warn("TEN113", manifest, message, path, _FIX)
            for field in ("command", "args"):
                for index, value in enumerate(items(container.get(field))):
                    if what := plaintext.by_form(known(value)):
                        message = f"the {field} hold {what} in plain text"
                        yield say("TEN113", manifest, message, f"{at}.{field}[{index}]", _FIX)
    for manifest in graph.kind(*_SOURCES):
        spec = mapping(manifest.body.get("spec"))
        places = {"spec.url": spec.get("url"), "spec.source.repoURL": mapping(spec.get("source")).get("repoURL")}
        places |= {
            f"spec.sources[{n}].repoURL": each.get("repoURL") for n, each in enumerate(maps(spec.get("sources")))
        }
        for path, address in places.items():
            if what := plaintext.by_form(known(address)):
                yield say("TEN113", manifest, f"the address holds {what} in plain text", path, _FIX)


RULES = (readable,)
TREE = ()
