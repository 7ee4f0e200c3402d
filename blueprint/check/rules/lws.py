"""LeaderWorkerSets that their own webhook refuses.

Source: lws v0.8.0 pkg/webhooks/leaderworkerset_webhook.go (generalValidate, validateUpdateSubGroupPolicy), the defaults
of its CRD.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check import forms
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.rules.say import say
from blueprint.check.shapes import Body, known, mapping, number
from blueprint.finding import Finding

_SET = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
_SUBGROUPS = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_TEMPLATE, _ROLLOUT = "spec.leaderWorkerTemplate", "spec.rolloutStrategy.rollingUpdateConfiguration"


def refused(graph: Graph) -> Iterator[Finding]:
    """SRV254: sizes, an update or a name that the webhook of LeaderWorkerSet refuses."""
    for manifest in graph.kind(_SET):
        spec = mapping(manifest.body.get("spec"))
        name = known(manifest.ref.name)
        if name and (problem := forms.label_1035(name)):
            message = f"the name is that of a headless Service, too: it {problem}"
            yield say("SRV254", manifest, message, "metadata.name", "letters first, no dots")
        for path, message, fix in (*_update(spec), *_groups(spec)):
            yield say("SRV254", manifest, f"{message}: the webhook refuses the set", path, fix)
        template = mapping(spec.get("leaderWorkerTemplate"))
        if _SUBGROUPS in annotations_of(manifest.body) and template.get("subGroupPolicy") is None:
            message = f"{_SUBGROUPS} needs a subGroupPolicy: the webhook refuses the set"
            yield say("SRV254", manifest, message, f"{_TEMPLATE}.subGroupPolicy", "give subGroupSize")


def _update(spec: Body) -> Iterator[tuple[str, str, str]]:
    update = mapping(mapping(spec.get("rolloutStrategy")).get("rollingUpdateConfiguration"))
    replicas = number(spec.get("replicas"), 1)
    for field in ("maxUnavailable", "maxSurge"):
        value = update.get(field)
        if isinstance(value, str) and not forms.percent(value):
            yield f"{_ROLLOUT}.{field}", f"{value!r} is no percentage", "a number, or a share such as 25%"
        elif isinstance(value, str) and int(value[:-1]) > 100:
            yield f"{_ROLLOUT}.{field}", f"{value} is more than 100%", "at most 100%"
        elif (whole := number(value)) is not None and whole < 0:
            yield f"{_ROLLOUT}.{field}", f"{field} {whole} is negative", "0 or more"
    if not update or not replicas or replicas < 0:
        return
    # A share of what may be away is rounded down, one of what may be added up.
    away = _share(update.get("maxUnavailable", 1), replicas, up=False)
    more = _share(update.get("maxSurge", 0), replicas, up=True)
    if away == 0 and more == 0:
        message = f"of {replicas} groups none may be away and none may be added, so none can be replaced"
        yield f"{_ROLLOUT}.maxUnavailable", message, "maxUnavailable: 1, or maxSurge: 1"


def _share(value: object, of: int, *, up: bool) -> int | None:
    if isinstance(value, str) and forms.percent(value):
        return -(-of * int(value[:-1]) // 100) if up else of * int(value[:-1]) // 100
    return number(value)


def _groups(spec: Body) -> Iterator[tuple[str, str, str]]:
    template = mapping(spec.get("leaderWorkerTemplate"))
    size, policy = number(template.get("size"), 1), mapping(template.get("subGroupPolicy"))
    part, at = number(policy.get("subGroupSize")), f"{_TEMPLATE}.subGroupPolicy.subGroupSize"
    if size is not None and size < 1:
        yield f"{_TEMPLATE}.size", f"size {size} is below 1", "size: 1 is a leader alone"
    elif part is not None and size is not None:
        if part < 1 or part > size:
            yield at, f"subGroupSize {part} is not between 1 and the size {size}", "a divisor of the size"
        elif policy.get("subGroupPolicyType") == "LeaderExcluded" and (size - 1) % part:
            yield at, f"the {size - 1} workers cannot be parted by {part}", f"a divisor of {size - 1}"
        elif size % part and (size - 1) % part:
            yield at, f"neither {size} nor {size - 1} can be parted by {part}", f"a divisor of {size}"


RULES = (refused,)
TREE = ()
