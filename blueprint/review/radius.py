"""How far a change reaches: queues, teams and accelerators behind a queue, workloads behind a policy or a role."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from blueprint.check.graph import labels_of, selects
from blueprint.check.shapes import items, mapping, maps, text
from blueprint.report.totals import counted
from blueprint.review.around import Around
from blueprint.review.model import Pair

_QUEUE = "ClusterQueue.kueue.x-k8s.io"
_BINDINGS = ("RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io")


def words(pairs: Sequence[Pair], around: Around) -> Iterator[str]:
    """One sentence for each kind of thing that reaches further than its own object."""
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_kind[pair.ref.kind_name].append(pair)
    if queues := by_kind.get(_QUEUE):
        yield from _queues(queues, around)
    policies = [p for kind, found in by_kind.items() for p in found if _judges(kind)]
    if policies:
        yield from _policies(policies, around)
    networks = by_kind.get("NetworkPolicy.networking.k8s.io", [])
    reached = {name for pair in networks for name in _selected(pair, around)}
    if reached:
        many = counted(len(networks), "NetworkPolicy", "NetworkPolicies")
        yield f"{many} that change select pods of {_few(sorted(reached))}"
    subjects = {name for kind in _BINDINGS for pair in by_kind.get(kind, ()) for name in _subjects(pair)}
    if subjects:
        yield f"bindings that change are about {_few(sorted(subjects))}"
    if roles := {p.ref.name for k, found in by_kind.items() if k.startswith(("Role.", "ClusterRole.")) for p in found}:
        yield from _roles(roles, around)


def _judges(kind: str) -> bool:
    return kind.endswith((".constraints.gatekeeper.sh", ".kyverno.io", ".policies.kyverno.io")) or kind.startswith(
        ("ValidatingAdmissionPolicy", "ValidatingWebhook", "MutatingWebhook")
    )


def _queues(pairs: Sequence[Pair], around: Around) -> Iterator[str]:
    names = {(pair.cluster, m.ref.name) for pair in pairs for m in (pair.old, pair.new) if m is not None}
    found = around.sides.head.holding((b"LocalQueue",)).manifests
    local = [
        m
        for m in found
        if m.ref.kind == "LocalQueue"
        and (around.where.cluster(m), text(mapping(m.body.get("spec")).get("clusterQueue"))) in names
    ]
    teams = sorted({m.ref.namespace for m in local})
    gpus = sum(_gpus(pair) for pair in pairs)
    held = f", with {gpus:,} accelerators of nominal quota" if gpus else ""
    serve = (
        f"{len(pairs)} ClusterQueues that change serve" if len(pairs) > 1 else "the ClusterQueue that changes serves"
    )
    who = f"{counted(len(local), 'LocalQueue')} of {_few(teams)}" if local else "no LocalQueue"
    yield f"{serve} {who}{held}"


def _gpus(pair: Pair) -> int:
    total = 0
    for group in maps(mapping(pair.there.body.get("spec")).get("resourceGroups")):
        for flavor in maps(group.get("flavors")):
            for row in maps(flavor.get("resources")):
                amount = str(row.get("nominalQuota", ""))
                total += int(amount) if "/" in text(row.get("name")) and amount.isdecimal() else 0
    return total


def _policies(pairs: Sequence[Pair], around: Around) -> Iterator[str]:
    """Namespaces are what nearly every policy of a platform selects by."""
    spaces = [
        m for m in around.sides.head.holding((b"kind: Namespace", b'"Namespace"')).manifests if m.kind == "Namespace"
    ]
    reached: set[str] = set()
    for pair in pairs:
        spec = mapping(pair.there.body.get("spec"))
        places = (spec.get("match"), spec.get("matchConstraints"), spec.get("matchResources"))
        selectors = [mapping(place).get("namespaceSelector") for place in places]
        selector: object = next((each for each in selectors if each is not None), {})
        reached |= {
            m.ref.name
            for m in spaces
            if selects(selector, {**labels_of(m.body), "kubernetes.io/metadata.name": m.ref.name})
        }
    judge = f"{len(pairs)} policies that change judge" if len(pairs) > 1 else "the policy that changes judges"
    yield f"{judge} {_few(sorted(reached)) if reached else 'no namespace of the tree'}"


def _selected(pair: Pair, around: Around) -> list[str]:
    selector = mapping(pair.there.body.get("spec")).get("podSelector")
    return around.selected(pair.cluster, pair.ref.namespace, selector)[0]


def _subjects(pair: Pair) -> list[str]:
    return [
        f"{text(each.get('kind'))} {text(each.get('name'))}"
        for manifest in (pair.old, pair.new)
        if manifest is not None
        for each in maps(items(manifest.body.get("subjects")))
    ]


def _roles(names: set[str], around: Around) -> Iterator[str]:
    found = around.sides.head.holding((b"RoleBinding",)).manifests
    bound = {
        f"{text(each.get('kind'))} {text(each.get('name'))}"
        for m in found
        if text(mapping(m.body.get("roleRef")).get("name")) in names
        for each in maps(m.body.get("subjects"))
    }
    if bound:
        yield f"roles that change are held by {_few(sorted(bound))}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
