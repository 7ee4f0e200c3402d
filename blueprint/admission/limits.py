"""Which number of the quota tree binds, and which others could give way."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.queues import GROUP
from blueprint.admission.quota import QuotaNode
from blueprint.admission.reasons import Limit
from blueprint.admission.state import Queue
from blueprint.finding import Ref


def reference(node: QuotaNode) -> Ref:
    """The object behind a node of the tree."""
    return Ref(GROUP, "ClusterQueue" if node.queue else "Cohort", "", node.name)


def binding(queue: Queue, key: FlavorResource) -> Limit:
    """The limit that keeps the capacity of a queue where it is: the lowest one on the way up that cuts it.

    Where no limit cuts, what the whole tree has binds, which for a queue alone is its nominal quota.
    """
    node = queue.node
    while node.parent is not None:
        borrowing = node.quota(key).borrowing
        ceiling = node.kept(key) + node.parent.capacity(key)
        if borrowing is not None and node.subtree.get(key, 0) + borrowing <= ceiling:
            return Limit("borrowingLimit", reference(node), key.flavor, key.resource, borrowing)
        node = node.parent
    if node is not queue.node and (lending := next(_holding_back(node, queue.node, key), None)) is not None:
        return lending
    own = queue.node if queue.node.quota(key).nominal or node is queue.node else node
    return Limit("nominalQuota", reference(own), key.flavor, key.resource, own.quota(key).nominal)


def _holding_back(root: QuotaNode, queue: QuotaNode, key: FlavorResource) -> Iterator[Limit]:
    """Lending limits elsewhere in the tree that keep something back."""
    path = {queue, *queue.ancestors()}
    stack = [root]
    while stack:
        node = stack.pop()
        stack += reversed(node.children)
        lending = node.quota(key).lending
        if node not in path and lending is not None and node.kept(key) > 0:
            yield Limit("lendingLimit", reference(node), key.flavor, key.resource, lending)


def levers(queue: Queue, key: FlavorResource) -> Iterator[Limit]:
    """Numbers whose raising may give the queue more: limits on the way up, limits elsewhere, then quotas."""
    way = [queue.node, *queue.node.ancestors()]
    for node in way:
        borrowing = node.quota(key).borrowing
        if node.parent is not None and borrowing is not None:
            yield Limit("borrowingLimit", reference(node), key.flavor, key.resource, borrowing)
    yield from _holding_back(way[-1], queue.node, key)
    for node in way:
        if key in node.quotas:
            yield Limit("nominalQuota", reference(node), key.flavor, key.resource, node.quota(key).nominal)
