"""What is counted while the clock runs: use of each flavor, what lies idle in pieces, who waits, and for whom.

Between two instants nothing changes, so every figure is a sum over spans of time, in seconds or resource-seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from blueprint.admission.amounts import CPU, FlavorResource
from blueprint.admission.engine import Engine
from blueprint.admission.lines import Alike, Line
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import Queue, Running, State

Steps = list[tuple[float, int]]
"""A value that holds from a time until the next one."""

NO_PLACE = "KQ302"
NO_QUOTA = "KQ211"


@dataclass(slots=True)
class Gauge:
    """One resource on one flavor, in Kueue's integers.

    `quota` is the nominal quota of all queues and cohorts, `nodes` what the flavor's nodes offer (None where they are
    not known). `loose` is what lies idle on the nodes although somebody whose quota allows it asks for no more than
    that: idle, but in pieces that cannot be combined.
    """

    key: FlavorResource
    quota: int
    nodes: int | None
    used: int = 0
    peak: int = 0
    loose: int = 0
    used_seconds: float = 0.0
    loose_seconds: float = 0.0
    idle_seconds: float = 0.0
    used_steps: Steps = field(default_factory=list)
    loose_steps: Steps = field(default_factory=list)

    @property
    def unit(self) -> int:
        """How many of Kueue's integers are one: a core is a thousand."""
        return 1000 if self.key.resource == CPU else 1

    @property
    def most(self) -> int:
        """What could be used: quota, or what the nodes offer where that is less."""
        return self.quota if self.nodes is None else min(self.quota, self.nodes)

    def pass_by(self, now: float, span: float) -> None:
        """Let a span of time end now."""
        self.used_seconds += self.used * span
        self.loose_seconds += self.loose * span
        self.idle_seconds += max(0, self.most - self.used) * span
        self.peak = max(self.peak, self.used)
        start = now - span
        for steps, value in ((self.used_steps, self.used), (self.loose_steps, self.loose)):
            if not steps or steps[-1][1] != value:
                steps.append((start, value))


class Measures:
    """All gauges, the waiting workloads by team, and the seconds that teams waited for each other.

    `partial` counts admissions with fewer pods than were asked for, where the job does not allow that.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.gauges = {gauge.key: gauge for gauge in _gauges(state)}
        self.waiting: dict[str, int] = defaultdict(int)
        self.waiting_steps: dict[str, Steps] = defaultdict(list)
        self.waited: dict[tuple[str, str], float] = defaultdict(float)
        self.clock = 0.0
        self.partial = 0
        self._held: dict[tuple[QuotaNode, FlavorResource], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._shares: dict[tuple[QuotaNode, FlavorResource], dict[str, float]] = {}

    def started(self, workload: Running, team: str) -> None:
        """Count what a workload uses."""
        self._count(workload, team, 1)

    def stopped(self, workload: Running, team: str) -> None:
        """Count it no more."""
        self._count(workload, team, -1)

    def _count(self, workload: Running, team: str, sign: int) -> None:
        node = self.state.queues[workload.queue].node
        root = node.root()
        for key, amount in workload.usage.items():
            if (gauge := self.gauges.get(key)) is not None:
                gauge.used += sign * amount
            for place in {node, root}:
                self._held[place, key][team] += sign * amount
                self._shares.pop((place, key), None)

    def waits(self, team: str, sign: int) -> None:
        """A workload of a team begins to wait, or with -1 waits no more."""
        self.waiting[team] += sign

    def pass_by(self, engine: Engine, span: float) -> None:
        """Let time pass in which nothing happens."""
        if span <= 0:
            return
        self.clock += span
        for gauge in self.gauges.values():
            gauge.loose = 0
        for name, line in engine.lines.items():
            if line.groups:
                self._line(engine.state.queues[name], line, span)
        for gauge in self.gauges.values():
            gauge.pass_by(self.clock, span)
        for team, number in self.waiting.items():
            steps = self.waiting_steps[team]
            if not steps or steps[-1][1] != number:
                steps.append((self.clock - span, number))

    def _line(self, queue: Queue, line: Line, span: float) -> None:
        """Who waits in a queue for whom; in a strict queue all others wait for what its head waits for."""
        groups = list(line.groups.values())
        strict = queue.spec.strict
        head = min(groups, key=lambda g: g.members[0].order if g.members else (0, 0.0, "")) if strict else None
        for group in groups:
            lacking = (head or group).lacks
            self._loose(group)
            if not group.members:
                continue
            team, seconds = group.first.workload.namespace, len(group.members) * span
            for holder, share in self._holders(queue, lacking).items():
                self.waited[team, holder] += share * seconds

    def _loose(self, group: Alike) -> None:
        """Note what lies idle in pieces on a flavor on which a group finds no place."""
        for flavor in group.placeless:
            for key, gauge in self.gauges.items():
                if key.flavor == flavor and gauge.nodes is not None and group.members:
                    asked = sum(d.pod.get(key.resource, 0) * d.podset.count for d in group.first.workload.demands)
                    idle = gauge.nodes - gauge.used
                    if 0 < asked <= idle:
                        gauge.loose = idle

    def _holders(self, queue: Queue, lacking: tuple[FlavorResource, ...]) -> dict[str, float]:
        """Whose workloads hold what is lacking, as shares: of the own queue where its own limit binds, else of all."""
        if not lacking:
            return {}
        key, node = lacking[0], queue.node
        limit = node.quota(key).borrowing
        own = limit is not None and node.used.get(key, 0) >= node.quota(key).nominal + limit
        place = node if own else node.root(), key
        shares = self._shares.get(place)
        if shares is None:
            held = self._held[place]
            whole = sum(held.values())
            shares = {team: amount / whole for team, amount in held.items() if amount} if whole else {}
            self._shares[place] = shares
        return shares


def _gauges(state: State) -> Iterator[Gauge]:
    """The devices on each flavor, or its cores where it has none."""
    world = state.world
    quotas: dict[FlavorResource, int] = defaultdict(int)
    for node in state.nodes.values():
        for key, quota in node.quotas.items():
            quotas[key] += quota.nominal
    for flavor in dict.fromkeys(key.flavor for key in quotas):
        mine = {key: amount for key, amount in quotas.items() if key.flavor == flavor and amount}
        devices = [key for key in mine if "/" in key.resource] or [key for key in mine if key.resource == CPU]
        found = world.flavors.get(flavor)
        nodes = (
            None if world.nodes is None or found is None else [n for n in world.nodes if n.carries(found.labels, ())]
        )
        for key in sorted(devices):
            offered = None if nodes is None else sum(node.allocatable.get(key.resource, 0) for node in nodes)
            yield Gauge(key, quotas[key], offered or None)  # claims are not among what nodes offer
