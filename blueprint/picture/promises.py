"""What a platform promises and to whom, in words: services, quotas, runs, people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from blueprint.finding import Source
from blueprint.picture.model import Table, many
from blueprint.spec import Cluster, Document, InferenceService, Platform, Team, TrainingJob
from blueprint.spec.inference import Quantile, Slo
from blueprint.spec.team import Quota


def link(source: Source) -> str:
    """A link to a spec's file, as it is called from the top of the platform."""
    return f"[{source.file}:{source.line}]({source.file})"


def duration(value: timedelta) -> str:
    """A span of time in the largest units that are whole: `750 ms`, `90 s`, `24 h`, `7 days`."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit, size in (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds >= size and milliseconds % size == 0 and (unit != "day" or milliseconds > size):
            number = milliseconds // size
            return many(number, "day") if unit == "day" else f"{number} {unit}"
    return f"{milliseconds} ms"


def percent(value: Decimal) -> str:
    """A share as percents."""
    return f"{(value * 100).normalize():f} %"


def promise(slo: Slo | None) -> str:
    """The promises of a service as sentences."""
    if slo is None:
        return "nothing is promised"
    parts = []
    for what, bound in (("the first token", slo.first_token), ("the whole answer", slo.latency)):
        if bound is not None:
            parts.append(f"{what} within {_quantile(bound)}")
    if slo.output_rate is not None:
        parts.append(f"{slo.output_rate.normalize():f} tokens a second for 95 % of requests")
    if slo.errors is not None:
        parts.append(f"at most {percent(slo.errors)} of requests fail")
    return "; ".join(parts)


def _quantile(bound: Quantile) -> str:
    for name in ("p50", "p90", "p95", "p99"):
        value = getattr(bound, name)
        if value is not None:
            return f"{duration(value)} for {name[1:]} % of requests"
    return "no bound"


def services(platform: Platform) -> Table:
    """One row for each service."""
    rows = tuple(
        (
            document.model.metadata.name,
            document.model.spec.team,
            document.model.spec.model,
            promise(document.model.spec.slo),
            replicas(document.model),
            release(document.model),
            link(document.source),
        )
        for document in platform.services
    )
    return Table(("Service", "Team", "Model", "Promise", "Replicas", "New versions", "Spec"), rows)


def replicas(service: InferenceService) -> str:
    """How many replicas run on which cluster, and what adds some."""
    parts = []
    for cluster in service.spec.clusters:
        found = service.spec.replicas_for(cluster)
        number = f"{found.min} to {found.max} by {found.scale_on}" if found.scale_on else str(found.min)
        parts.append(f"{cluster}: {number}")
    shape = service.spec.gpus
    each = shape.tensor_parallel * shape.pipeline_parallel
    unit = f"slice of {shape.profile}" if shape.profile else "GPU"
    return f"{'; '.join(parts)}; {many(each, unit) if not shape.profile else f'{each} {unit}'} each on `{shape.pool}`"


def release(service: InferenceService) -> str:
    """How a new version comes in."""
    rollout = service.spec.rollout
    if rollout is None:
        return "roll, one replica after the other"
    steps = ", ".join(percent(step) for step in rollout.canary)
    return f"canary at {steps}, {duration(rollout.pause)} each; a broken promise aborts it"


def host(service: InferenceService, cluster: Cluster) -> str:
    """Where clients reach a service on a cluster, "" where only pods do."""
    if service.spec.traffic.host:
        return service.spec.traffic.host
    gateway = cluster.spec.gateway
    return f"{service.metadata.name}.{gateway.domain}" if gateway else ""


def quota(found: Quota) -> str:
    """One share in a sentence."""
    what = f"slices of {found.profile}" if found.profile else "GPUs"
    parts = [f"{found.gpus} {what} of `{found.pool}` on {found.cluster}"]
    if found.borrow is None:
        parts.append("more from idle quota of others without bound")
    elif found.borrow:
        parts.append(f"up to {found.borrow} more from idle quota of others")
    else:
        parts.append("borrows none")
    if found.lend is not None:
        parts.append(f"lends {found.lend}" if found.lend else "lends none")
    return ", ".join(parts)


def members(team: Team) -> str:
    """Who belongs to a team, by role."""
    by_role: dict[str, list[str]] = {}
    for member in team.spec.members:
        by_role.setdefault(member.role, []).append(f"`{member.group or member.user}`")
    return "; ".join(
        f"{role}: {', '.join(by_role[role])}" for role in ("lead", "developer", "viewer") if role in by_role
    )


def lead(team: Team) -> str:
    """Who answers for a team: its leads, else its members."""
    leads = [member for member in team.spec.members if member.role == "lead"] or list(team.spec.members)
    return ", ".join(f"`{member.group or member.user}`" for member in leads)


def admins(cluster: Cluster) -> str:
    """Who answers for a cluster."""
    return ", ".join(f"`{group}`" for group in cluster.spec.platform_admins) or "the platform's team"


def runs(platform: Platform) -> Table:
    """One row for each training job."""
    rows = tuple(
        (
            document.model.metadata.name,
            document.model.spec.team,
            ", ".join(document.model.spec.clusters),
            machines(document.model),
            survives(document.model),
            document.model.spec.priority,
            link(document.source),
        )
        for document in platform.training_jobs
    )
    return Table(("Run", "Team", "Clusters", "Machines", "What survives", "Priority", "Spec"), rows)


def machines(job: TrainingJob) -> str:
    """What a run asks for, and where it must stand."""
    spec = job.spec
    words = f"{many(spec.nodes, 'pod')} with {many(spec.gpus, 'GPU')} each on `{spec.pool}`"
    if spec.placement.required:
        words += f", in one {spec.placement.required}"
        words += f" for each {spec.placement.group_size}" if spec.placement.group_size else ""
    if spec.placement.preferred:
        words += f", in one {spec.placement.preferred} if possible"
    return words


def survives(job: TrainingJob) -> str:
    """What is kept when a run is stopped."""
    saved, longest = job.spec.checkpoint, job.spec.max_runtime
    words = f"saved every {saved.every_steps} steps" if saved else "nothing: it has no checkpoint"
    return words + (f"; stopped after {duration(longest)}" if longest else "")


def pools(document: Document[Cluster]) -> Iterator[str]:
    """The machines of a cluster, one line for each pool."""
    for pool in document.model.spec.node_pools:
        if pool.gpus is None:
            yield f"`{pool.name}`: {many(pool.nodes, 'node')} without GPUs"
            continue
        cut = ""
        if pool.gpus.mig:
            cut = ", each cut into " + " and ".join(f"{n} {name}" for name, n in pool.gpus.mig.layout.items())
        by = ", handed out by claims" if pool.devices == "dra" else ""
        there = ", brought on demand" if pool.provisioning else ""
        yield (
            f"`{pool.name}`: {many(pool.nodes, 'node')} with {pool.gpus.count} {pool.gpus.product}{cut}{by}{there}, "
            f"for {pool.purpose}"
        )
