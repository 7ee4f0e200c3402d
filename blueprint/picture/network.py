"""Network and trust: which namespaces are closed, who may come in, where pods may go, and what must prove itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from blueprint.check.graph import Graph
from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.picture.layers import Arrow, Box, draw, mermaid
from blueprint.picture.model import Picture, Table, many
from blueprint.picture.scene import MARGIN, Scene

_HEADS = {0: "May come in", 1: "Namespaces", 2: "May be reached"}
_LEGEND = (
    ("good", "closed in and out"),
    ("warn", "closed in one direction"),
    ("bad", "open"),
    ("trust", "workload with rules of its own"),
)
_NAME_LABEL = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Rule:
    """One direction that a NetworkPolicy opens: for which pods ("" is all), from or to whom, on which ports."""

    namespace: str
    pods: str
    peer: str
    ports: str
    into: bool


def rules(graph: Graph) -> Iterator[Rule]:
    """What the NetworkPolicies open, in the order of the tree; peers in the same namespace are left out."""
    for manifest in graph.kind("NetworkPolicy.networking.k8s.io"):
        spec = mapping(manifest.body.get("spec"))
        space, pods = manifest.ref.namespace or "default", _selected(mapping(spec.get("podSelector")))
        for field, peers, into in (("ingress", "from", True), ("egress", "to", False)):
            for row in maps(spec.get(field)):
                numbers = dict.fromkeys(str(port.get("port", "any")) for port in maps(row.get("ports")))
                ports = ", ".join(numbers) or "any port"
                listed = maps(row.get(peers))
                for peer in [_peer(each) for each in listed] if listed else ["anywhere"]:
                    if peer and peer != space:
                        yield Rule(space, pods, peer, ports, into)


def _selected(selector: Body) -> str:
    labels = mapping(selector.get("matchLabels"))
    named = text(labels.get("app.kubernetes.io/name")) or text(labels.get("app"))
    return named or ", ".join(f"{key.rpartition('/')[2]}={value}" for key, value in sorted(labels.items()))


def _peer(peer: Body) -> str:
    """The namespace or network of a peer; "" for pods of the same namespace."""
    if block := mapping(peer.get("ipBlock")):
        return text(block.get("cidr"))
    if "namespaceSelector" not in peer:
        return ""
    selector = mapping(peer.get("namespaceSelector"))
    labels = mapping(selector.get("matchLabels"))
    if name := text(labels.get(_NAME_LABEL)):
        return name
    for row in maps(selector.get("matchExpressions")):
        if row.get("key") == _NAME_LABEL and row.get("operator") == "In":
            return ", ".join(str(value) for value in items(row.get("values")))
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "every namespace"


def closed(graph: Graph) -> dict[str, set[str]]:
    """Namespace → directions (`Ingress`, `Egress`) in which nothing goes that no policy opens."""
    found: dict[str, set[str]] = defaultdict(set)
    for manifest in graph.kind("NetworkPolicy.networking.k8s.io"):
        spec = mapping(manifest.body.get("spec"))
        if not mapping(spec.get("podSelector")):
            kinds = {str(each) for each in items(spec.get("policyTypes"))}
            # networking.k8s.io/v1: without policyTypes, Ingress always, Egress where there is an egress.
            found[manifest.ref.namespace or "default"] |= kinds or {
                "Ingress",
                *(["Egress"] if "egress" in spec else []),
            }
    return found


def picture(graph: Graph, name: str = "network", where: str = "") -> Picture:
    """The picture of one cluster's network policies and mesh rules."""
    opened = list(rules(graph))
    shut = closed(graph)
    strict = _strict(graph)
    allowed = _allowed(graph)
    spaces = sorted({*shut, *(rule.namespace for rule in opened), *(m.ref.name for m in graph.kind("Namespace"))})
    boxes, arrows = _boxes(spaces, opened, shut, strict, allowed)
    title = f"Network and trust of {where}" if where else "Network and trust"
    words = _description(spaces, shut, strict, opened)
    scene = Scene(name, title, words)
    scene.text(MARGIN, 34, title, size=18, bold=True)
    held = {box.accent for box in boxes if box.column == 1}
    scene.legend(50, [row for row in _LEGEND if row[0] in held])
    rows = tuple(
        (
            rule.namespace,
            rule.pods or "all pods",
            "from" if rule.into else "to",
            rule.peer,
            rule.ports,
        )
        for rule in opened
    )
    table = Table(("Namespace", "Pods", "Direction", "Peer", "Ports"), rows)
    return Picture(draw(scene, boxes, arrows, _HEADS, top=84), mermaid(boxes, arrows, _HEADS), table)


def _description(
    spaces: Sequence[str], shut: dict[str, set[str]], strict: set[tuple[str, str]], opened: Sequence[Rule]
) -> str:
    both = [space for space in spaces if shut.get(space, set()) >= {"Ingress", "Egress"}]
    open_ = [space for space in spaces if "Ingress" not in shut.get(space, set())]
    parts = [f"{many(len(spaces), 'namespace')}, {len(both)} of them closed in both directions."]
    if open_:
        parts.append(f"Open to every pod of the cluster: {', '.join(open_[:6])}.")
    parts.append(f"{many(len(opened), 'opening')}; mutual TLS only for {many(len(strict), 'workload')}.")
    return " ".join(parts)


def _strict(graph: Graph) -> set[tuple[str, str]]:
    found = set()
    for manifest in graph.kind("PeerAuthentication.security.istio.io"):
        spec = mapping(manifest.body.get("spec"))
        if mapping(spec.get("mtls")).get("mode") == "STRICT":
            found.add((manifest.ref.namespace, _selected(mapping(spec.get("selector")))))
    return found


def _allowed(graph: Graph) -> dict[tuple[str, str], str]:
    """(namespace, workload) → the identities that its AuthorizationPolicies let in."""
    found: dict[tuple[str, str], str] = {}
    for manifest in graph.kind("AuthorizationPolicy.security.istio.io"):
        spec = mapping(manifest.body.get("spec"))
        if spec.get("action", "ALLOW") == "ALLOW":
            found[manifest.ref.namespace, _selected(mapping(spec.get("selector")))] = ", ".join(
                sorted(_sources(manifest))
            )
    return found


def _sources(manifest: Manifest) -> set[str]:
    names: set[str] = set()
    for rule in maps(mapping(manifest.body.get("spec")).get("rules")):
        for row in maps(rule.get("from")):
            source = mapping(row.get("source"))
            names.update(str(each) for field in ("namespaces", "principals") for each in items(source.get(field)))
    return names


def _boxes(
    spaces: Iterable[str],
    opened: Sequence[Rule],
    shut: dict[str, set[str]],
    strict: set[tuple[str, str]],
    allowed: dict[tuple[str, str], str],
) -> tuple[list[Box], list[Arrow]]:
    boxes: list[Box] = []
    arrows: dict[tuple[str, str], set[str]] = {}
    for space in spaces:
        ways = shut.get(space, set())
        lock = {0: "open", 1: f"closed: {', '.join(sorted(ways)).lower()}", 2: "closed in and out"}[min(2, len(ways))]
        accent = "good" if len(ways) == 2 else "warn" if ways else "bad"
        boxes.append(Box(f"{space}/", 1, "Namespace", space, (lock,), accent, space))
        named = {pods for rule in opened if rule.namespace == space if (pods := rule.pods)}
        named |= {pods for where, pods in (*strict, *allowed) if where == space and pods}
        for pods in sorted(named):
            lines = ["mutual TLS only"] if (space, pods) in strict else []
            lines += [f"lets in {allowed[space, pods]}"] if allowed.get((space, pods)) else []
            boxes.append(Box(f"{space}/{pods}", 1, f"in {space}", pods, tuple(lines), "trust", space))
    for rule in opened:
        inner = f"{rule.namespace}/{rule.pods}"
        outer = f"{'in' if rule.into else 'out'}:{rule.peer}"
        key = (outer, inner) if rule.into else (inner, outer)
        arrows.setdefault(key, set()).add(rule.ports)
    for side, column in (("in", 0), ("out", 2)):
        for peer in sorted({rule.peer for rule in opened if rule.into == (side == "in")}):
            wide = peer in ("anywhere", "every namespace", "0.0.0.0/0", "::/0")
            boxes.append(
                Box(
                    f"{side}:{peer}",
                    column,
                    "Network" if "/" in peer else "Namespace",
                    peer,
                    (),
                    "bad" if wide else "edge",
                )
            )
    drawn = [
        Arrow(start, end, ", ".join(sorted(ports)), at="end" if start.startswith("in:") else "start")
        for (start, end), ports in sorted(arrows.items())
    ]
    return boxes, drawn
