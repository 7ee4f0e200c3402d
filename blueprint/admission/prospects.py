"""Who has no prospect of room at this moment: told without a look of the scheduler, which is dear.

Only saves looks. That a group is not hopeless says nothing; that it is, is certain.
"""

from __future__ import annotations

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.lines import Alike
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import Queue, State


class Prospects:
    """What is free and who could be preempted, each worked out once: it holds as long as nothing starts or ends."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._free: dict[tuple[QuotaNode, FlavorResource], int] = {}
        self._lowest: dict[tuple[str, FlavorResource], int | None] = {}
        self._borrowers: dict[tuple[QuotaNode, FlavorResource], list[QuotaNode]] = {}

    def hopeless(self, queue: Queue, group: Alike) -> bool:
        """Whether a pod set asks for more of a resource than any flavor has free now, and nobody is there who could be
        preempted for it. Notes what the group lacks.
        """
        for needed, keys in group.needs(queue):
            for key in keys:
                if self._available(queue.node, key) >= needed:
                    break
                if self._preemptible(queue, group.first.workload.priority, key):
                    break
            else:
                group.lacks, group.placeless = keys, ()
                return True
        return False

    def _available(self, node: QuotaNode, key: FlavorResource) -> int:
        found = self._free.get((node, key))
        if found is None:
            found = self._free[node, key] = node.available(key)
        return found

    def _preemptible(self, queue: Queue, mine: int, key: FlavorResource) -> bool:
        """Whether anybody could be preempted for a resource on a flavor, as far as can be told without a search."""
        policies = queue.spec.policies
        lowest = None if policies.within_queue == "Never" else self._lowest_priority(queue, key)
        if lowest is not None and (lowest < mine or (lowest == mine and policies.within_queue != "LowerPriority")):
            return True
        if policies.within_cohort == "Never" or queue.node.parent is None:
            return False
        return any(other is not queue.node for other in self._borrowing(queue.node.root(), key))

    def _lowest_priority(self, queue: Queue, key: FlavorResource) -> int | None:
        """The lowest priority of what uses a resource in a queue."""
        if (queue.name, key) not in self._lowest:
            found = next((each.priority for each in queue.ranked if key in each.usage), None)
            self._lowest[queue.name, key] = found
        return self._lowest[queue.name, key]

    def _borrowing(self, root: QuotaNode, key: FlavorResource) -> list[QuotaNode]:
        """The queues that use a resource and borrow anything."""
        found = self._borrowers.get((root, key))
        if found is None:
            found = [each for each in root.all_queues() if each.used.get(key) and not each.within(each.used)]
            self._borrowers[root, key] = found
        return found
