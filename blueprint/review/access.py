"""Who may do what: rights gained and lost by a change of roles and bindings, and who may talk to whom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.review import holders
from blueprint.review.around import Around
from blueprint.review.diff import Edit, same
from blueprint.review.model import Pair, Risk
from blueprint.review.words import shown

Right = tuple[str, str, str]
"""Verb, resource with its group, and name ("" for all)."""

_MOST = 4


def rights(pair: Pair, edit: Edit | None, around: Around) -> tuple[Risk, str] | None:
    """Rights that a role gains and loses, or subjects that a binding does."""
    if edit is not None and edit.path[0] == "metadata":
        return Risk.NONE, f"{'.'.join(edit.path[1:])} changes"
    if pair.ref.kind.endswith("Binding"):
        return _subjects(pair, around)
    if edit is not None and edit.path[0] == "aggregationRule":
        return Risk.SECURITY, f"takes the rights of other roles: {shown(edit.before)} → {shown(edit.after)}"
    old, new = _granted(pair.old), _granted(pair.new)
    gained, lost = _beyond(new, old), _beyond(old, new)
    if not gained and not lost:
        return Risk.NONE, "the same rights, written otherwise"
    parts = [f"gains {_listed(gained)}"] if gained else []
    parts += [f"loses {_listed(lost)}"] if lost else []
    return Risk.SECURITY, "; ".join(parts)


def _granted(role: Manifest | None) -> set[Right]:
    if role is None:
        return set()
    return {right for rule in maps(role.body.get("rules")) for right in _rights(rule)}


def _rights(rule: Body) -> Iterator[Right]:
    verbs = [text(verb) for verb in items(rule.get("verbs"))]
    names = [text(name) for name in items(rule.get("resourceNames"))] or [""]
    groups = [text(group) for group in items(rule.get("apiGroups"))]
    resources = [text(resource) for resource in items(rule.get("resources"))]
    for verb, group, resource, name in product(verbs, groups, resources, names):
        yield verb, f"{resource}.{group}" if group else resource, name
    for verb, url in product(verbs, items(rule.get("nonResourceURLs"))):
        yield verb, text(url), ""


def _beyond(these: set[Right], those: set[Right]) -> list[Right]:
    """The rights among these that none of those covers."""
    return sorted(right for right in these if not any(_covers(other, right) for other in those))


def _covers(wide: Right, right: Right) -> bool:
    def matches(pattern: str, value: str) -> bool:
        name, dot, group = pattern.partition(".")
        other, _, other_group = value.partition(".")
        return name in ("*", other) and (not dot or group in ("*", other_group)) and (bool(dot) or not other_group)

    verb, resource, name = wide
    return verb in ("*", right[0]) and (resource == right[1] or matches(resource, right[1])) and name in ("", right[2])


def _listed(found: list[Right]) -> str:
    by_resource: dict[str, list[str]] = {}
    for verb, resource, name in found:
        by_resource.setdefault(f"{resource} {name}".strip(), []).append("everything" if verb == "*" else verb)
    told = [f"{', '.join(verbs)} on {resource}" for resource, verbs in by_resource.items()]
    return "; ".join(told[:_MOST]) + (f" and {len(told) - _MOST} more" if len(told) > _MOST else "")


def _subjects(pair: Pair, around: Around) -> tuple[Risk, str]:
    old, new = (_bound(manifest) for manifest in (pair.old, pair.new))
    was, role = (mapping(manifest.body.get("roleRef")) if manifest else {} for manifest in (pair.old, pair.there))
    name = f"{text(role.get('kind'))} {text(role.get('name'))}"
    told = holders.of_binding(pair.there, pair.cluster, around)
    strong = f", which {told}" if told else ""
    gained, lost = sorted(new - old), sorted(old - new)
    if was and was.get("name") != role.get("name"):
        verb = "gets" if len(new) == 1 else "get"
        return Risk.SECURITY, f"{shown(sorted(new))} {verb} {name} instead of {text(was.get('name'))}{strong}"
    if not gained and not lost:
        return Risk.NONE, f"the same subjects of {name}, written otherwise"
    parts = [f"{shown(gained)} {'gets' if len(gained) == 1 else 'get'} {name}{strong}"] if gained else []
    parts += [f"{shown(lost)} {'loses' if len(lost) == 1 else 'lose'} {name}"] if lost else []
    return Risk.SECURITY, "; ".join(parts)


def _bound(binding: Manifest | None) -> set[str]:
    found = maps(binding.body.get("subjects")) if binding else []
    return {
        f"{text(each.get('kind'))} {'/'.join(filter(None, (text(each.get('namespace')), text(each.get('name')))))}"
        for each in found
    }


def network(pair: Pair, edit: Edit | None, around: Around) -> tuple[Risk, str] | None:
    """Who may reach the pods that a NetworkPolicy selects, and whom they may reach."""
    old, new = (mapping(manifest.body.get("spec")) if manifest else {} for manifest in (pair.old, pair.new))
    names, pods = around.selected(pair.cluster, pair.ref.namespace, new.get("podSelector", old.get("podSelector")))
    about = f"{pods} pods of {', '.join(names[:2])}{f' and {len(names) - 2} more' if len(names) > 2 else ''}"
    about = about if names else "no pod of the tree"
    if not same(old.get("podSelector"), new.get("podSelector")) and old and new:
        return Risk.SECURITY, f"selects other pods: {about}"
    parts = []
    for way, peer in (("ingress", "from"), ("egress", "to")):
        if (way in _types(old)) is not (way in _types(new)):
            parts.append(f"{way} is {'held to it' if way in _types(new) else 'free'} from now on")
        before, after = _peers(old, way, peer), _peers(new, way, peer)
        parts += [
            f"{way}: lets in {shown(each)}" if way == "ingress" else f"egress: lets out to {shown(each)}"
            for each in after
            if not any(same(each, other) for other in before)
        ]
        parts += [f"{way}: no longer {shown(each)}" for each in before if not any(same(each, other) for other in after)]
    if not parts:
        return Risk.NONE, "the same peers, written otherwise"
    return Risk.SECURITY, f"{'; '.join(parts[:3])} ({about})"


def _types(spec: Body) -> set[str]:
    """Which ways a policy is about; k8s.io/kubernetes v1.35.4 pkg/apis/networking/v1/defaults.go."""
    said = {text(each).lower() for each in items(spec.get("policyTypes"))}
    return said or {"ingress", *(["egress"] if items(spec.get("egress")) else [])}


def _port(row: Body) -> object:
    """A port, a range, or with its protocol where that is not TCP."""
    first, last, protocol = row.get("port", "all"), row.get("endPort"), text(row.get("protocol")) or "TCP"
    shown_ = first if last is None else f"{first}-{last}"
    return shown_ if protocol == "TCP" else f"{shown_}/{protocol}"


def _peers(spec: Body, way: str, peer: str) -> list[Any]:
    """Each pair of a peer and its ports as one value; a rule without peers is for all."""
    found: list[Any] = []
    for rule in items(spec.get(way)):
        ports = sorted((_port(each) for each in maps(mapping(rule).get("ports"))), key=repr)
        for each in items(mapping(rule).get(peer)) or ["everybody"]:
            found.append([each, "on ports", ports] if ports else [each])
    return found
