"""Keys, devices and variables that are nearly those that somebody reads: nobody complains, and nothing happens.

Sources: the table `near_names`; k8s.io/kubernetes v1.35.4 third_party/forked/golang/expansion/expand.go (a variable
that is not there stays as it is written).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache, lru_cache

from blueprint.catalog.slips import meant
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate, containers
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, maps, placeholder, text, texts
from blueprint.finding import Finding
from blueprint.objects import Manifest

_MIG = re.compile(r"nvidia\.com/\d+g\.\d+gb")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Z][A-Z0-9_]+)\)")
"""A variable, or the dollar that `$$` is for Kubernetes, which gives no name: what follows it is read as it stands."""
_NEAR = 0.8


@cache
def _keys() -> frozenset[str]:
    return frozenset(table("near_names")["keys"])


@lru_cache(maxsize=1 << 12)
def _meant_key(key: str) -> str:
    return str(table("near_names")["other_keys"].get(key, "")) or meant(key, _keys())


def keys(graph: Graph) -> Iterator[Finding]:
    """NAM207: a label, annotation or node label that is nearly one which a program reads."""
    pods: dict[int, list[PodTemplate]] = {}
    for manifest, pod in graph.pods:
        pods.setdefault(id(manifest), []).append(pod)
    for manifest in graph.manifests:
        told: set[str] = set()
        for path, key in _written(manifest, pods.get(id(manifest), [])):
            right = _meant_key(key) if "/" in key and key not in told else ""
            if right:
                told.add(key)
                message = f"nobody reads {key}; {right} is read"
                yield say("NAM207", manifest, message, path, f"did you mean {right}?")


def _written(manifest: Manifest, pods: list[PodTemplate]) -> Iterator[tuple[str, str]]:
    """Every key of labels, annotations, selectors of nodes and topologies of an object."""
    places: list[tuple[str, Body]] = [("metadata", mapping(manifest.body.get("metadata")))]
    places += [(f"{pod.path}.metadata", pod.metadata) for pod in pods if pod.path]
    for at, metadata in places:
        for part in ("labels", "annotations"):
            for key in mapping(metadata.get(part)):
                yield f"{at}.{part}.{key}", str(key)
    for pod in pods:
        for key in mapping(pod.spec.get("nodeSelector")):
            yield f"{pod.spec_path}.nodeSelector.{key}", str(key)
        for index, row in enumerate(maps(pod.spec.get("topologySpreadConstraints"))):
            yield f"{pod.spec_path}.topologySpreadConstraints[{index}].topologyKey", text(row.get("topologyKey"))


def devices(graph: Graph) -> Iterator[Finding]:
    """KQ605: a container asks for a device under a name that is nearly that of a device plugin."""
    named = {
        text(mapping(each.body.get("spec")).get("extendedResourceName"))
        for each in graph.kind("DeviceClass.resource.k8s.io")
    }
    for manifest, pod in graph.pods:
        for path, container in containers(pod.spec):
            resources = mapping(container.get("resources"))
            for part in ("limits", "requests"):
                for name in map(str, mapping(resources.get(part))):
                    right = _device(name) if "/" in name and name not in named else ""
                    if right:
                        message = f"no device plugin offers {name}: the pod stays Pending"
                        where = f"{pod.spec_path}.{path}.resources.{part}"
                        yield say("KQ605", manifest, message, where, f"did you mean {right}?")
                if part == "limits" and resources.get("limits"):
                    break


@lru_cache(maxsize=1 << 10)
def _device(name: str) -> str:
    """The device that was meant, "" for one of that very name or of another maker."""
    known = table("near_names")["devices"]
    if name in known or placeholder(name):
        return ""
    if _MIG.fullmatch(name):
        return name.replace("nvidia.com/", "nvidia.com/mig-")
    plain = {_plain(each): each for each in known}
    return str(plain.get(_plain(name), "")) or meant(name, frozenset(known))


def _plain(name: str) -> str:
    """A name without what is most often forgotten or added: `.com`, capitals, the plural."""
    return name.lower().replace(".com", "").removesuffix("s").replace("_", "-")


def variables(graph: Graph) -> Iterator[Finding]:
    """NAT121: `$(NAME)` of a variable that there is not, beside one of nearly that name."""
    for manifest, pod in graph.pods:
        given = table("near_names")["variables"].get(manifest.kind, ())
        for path, container in containers(pod.spec):
            if container.get("envFrom"):
                continue
            own = [text(row.get("name")) for row in maps(container.get("env"))]
            for field in ("command", "args"):
                for index, word in enumerate(texts(container.get(field))):
                    for name in _VARIABLE.findall(word):
                        near = [] if name in ("", *own, *given) else get_close_matches(name, [*own, *given], 1, _NEAR)
                        if near:
                            message = f"there is no variable {name}: $({name}) stays as it is, and a shell runs it"
                            where = f"{pod.spec_path}.{path}.{field}[{index}]"
                            yield warn("NAT121", manifest, message, where, f"did you mean $({near[0]})?")


RULES = (keys, devices, variables)
TREE = ()
