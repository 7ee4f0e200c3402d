"""What specs ask of machines: pools, slices, quotas and components that the named clusters must have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.finding import Confidence, Finding, Severity
from blueprint.spec.base import Model
from blueprint.spec.cluster import Cluster, Components, NodePool
from blueprint.spec.inference import InferenceService
from blueprint.spec.nearest import nearest
from blueprint.spec.platform import Document, Platform
from blueprint.spec.policy import has_engine
from blueprint.spec.room import room
from blueprint.spec.team import Team
from blueprint.spec.together import Declaration, Missing, missing, told_once
from blueprint.spec.training import TrainingJob


def machines(platform: Platform) -> Iterator[Finding]:
    """Judge every wish for machines against the clusters, as far as both are known."""
    clusters = {document.model.metadata.name: document for document in platform.clusters}
    teams = {document.model.metadata.name: document for document in platform.teams}
    yield from _wishes(platform, clusters, teams)
    for document in platform.training_jobs:
        yield from _placement(document, clusters)
    yield from room(platform, clusters)
    yield from _of_the_platform(platform, clusters)
    yield from _counted_twice(platform, clusters)
    yield from _promised(platform, clusters)
    yield from _components(platform, clusters)
    yield from _engines(platform, clusters)
    yield from _copies(platform)


def _wishes(
    platform: Platform, clusters: dict[str, Document[Cluster]], teams: dict[str, Document[Team]]
) -> Iterator[Finding]:
    """Pools, slices and quotas that are asked for. A quota with a wrong name may be the one that a run misses."""
    wishes = [*_quotas(platform), *_runs(platform), *_services(platform)]
    lacking: list[Missing] = []
    named: set[tuple[str, str]] = set()
    astray: set[str] = set()
    wrong: list[Finding] = []
    for wish in wishes:
        name = wish.document.model.metadata.name
        if wish.team is None and not all(cluster in clusters for cluster in wish.clusters):
            astray.add(name)
        named |= {(cluster, wish.pool) for cluster in wish.clusters}
        if not wish.document.knows(wish.pool_path):
            continue
        on = [clusters[cluster] for cluster in wish.clusters if cluster in clusters]
        without = [cluster for cluster in on if _lacks(cluster, wish.pool)]
        bad = [] if without else list(_pools(wish, on))
        if without:
            lacking.append(_missing(wish, without))
        wrong += bad
        if wish.team is None and (without or bad):
            astray.add(name)
        elif not without and not bad and wish.team not in astray:
            wrong += _no_quota(wish, on, teams)
    unused = {
        (f"node pool on {cluster.model.metadata.name}", pool.name): Declaration(
            cluster.locate(f"spec.nodePools[{index}].name"), f"spec.nodePools[{index}].name"
        )
        for cluster in platform.clusters
        for index, pool in enumerate(cluster.model.spec.node_pools)
        if (cluster.model.metadata.name, pool.name) not in named
    }
    yield from missing(lacking, unused)
    same: dict[tuple[str, str], list[Finding]] = {}
    for finding in wrong:
        # What is said of a pool is said of it wherever it is asked for; a quota that lacks is each team's own.
        alone = finding.code == "SPC206"
        same.setdefault((finding.message, str(finding.source) if alone else finding.code), []).append(finding)
    yield from (told_once(group) for group in same.values())


def _missing(wish: _Wish, without: list[Document[Cluster]]) -> Missing:
    """SPC204: no node pool of that name."""
    among = sorted({pool.name for one in without for pool in one.model.spec.node_pools})
    near, where = nearest(wish.pool, among), _names([cluster.model for cluster in without])
    message = f"there is no node pool {wish.pool} on {where}" + (f"; did you mean {near}?" if near else "")
    fix = f"write {near}" if near else f"there {'is' if len(among) == 1 else 'are'} {', '.join(among[:10])}"
    return Missing(
        wish.pool, f"node pool on {where}", tuple(among), wish.finding("SPC204", wish.pool_path, message, fix)
    )


@dataclass(frozen=True, slots=True)
class _Wish:
    """GPUs (or slices of one profile) of a pool on some clusters; `profile_path` is "" where no profile can be named.

    `team` is None for a quota, which is not itself bound by one.
    """

    document: Document[Team] | Document[TrainingJob] | Document[InferenceService]
    clusters: tuple[str, ...]
    pool: str
    pool_path: str
    profile: str | None
    profile_path: str
    gpus: int
    team: str | None

    def is_known(self) -> bool:
        """Whether the number and the form of what is asked for are without mistakes."""
        below, _, _ = self.pool_path.rpartition(".")
        fields = [self.profile_path, f"{below}.gpus"] if self.profile_path else ["spec.gpus"]
        return self.document.knows("spec.clusters", *fields)

    def finding(self, code: str, path: str, message: str, fix: str = "") -> Finding:
        """A finding at one of the wish's fields."""
        return Finding(code, message, self.document.locate(path), path=path, fix=fix)


def _quotas(platform: Platform) -> Iterator[_Wish]:
    for team in platform.teams:
        for index, quota in enumerate(team.model.spec.quotas):
            at = f"spec.quotas[{index}]"
            yield _Wish(
                team, (quota.cluster,), quota.pool, f"{at}.pool", quota.profile, f"{at}.profile", quota.gpus, None
            )


def _runs(platform: Platform) -> Iterator[_Wish]:
    for job in platform.training_jobs:
        spec = job.model.spec
        yield _Wish(job, spec.clusters, spec.pool, "spec.pool", None, "", spec.gpus, spec.team)


def _services(platform: Platform) -> Iterator[_Wish]:
    for service in platform.services:
        spec = service.model.spec
        pool, profile = "spec.gpus.pool", "spec.gpus.profile"
        yield _Wish(service, spec.clusters, spec.gpus.pool, pool, spec.gpus.profile, profile, 1, spec.team)


def _pool(cluster: Document[Cluster], name: str, *fields: str) -> NodePool | None:
    """The pool of that name, if these fields of it are without mistakes."""
    for index, pool in enumerate(cluster.model.spec.node_pools):
        if pool.name == name:
            at = f"spec.nodePools[{index}]"
            return pool if cluster.knows(f"{at}.name", *(f"{at}.{field}" for field in fields)) else None
    return None


def _lacks(cluster: Document[Cluster], name: str) -> bool:
    """Whether the cluster has no pool of that name, for certain."""
    pools = cluster.model.spec.node_pools
    named = bool(pools) and cluster.knows(*(f"spec.nodePools[{index}].name" for index in range(len(pools))))
    return named and all(pool.name != name for pool in pools)


def _pools(wish: _Wish, on: list[Document[Cluster]]) -> Iterator[Finding]:
    """SPC205, SPC211 and SPC216: the pool has what is asked for, in that form."""
    if not wish.is_known():
        return
    for cluster in on:
        pool = _pool(cluster, wish.pool, "gpus", "devices")
        finding = _form(wish, pool, cluster.model) if pool else None
        if finding is not None:
            yield finding
            return


def _form(wish: _Wish, pool: NodePool, cluster: Cluster) -> Finding | None:
    where = f"pool {pool.name} on {cluster.metadata.name}"
    if wish.profile and pool.devices == "dra":
        message = f"{where} hands out whole devices by Dynamic Resource Allocation: it has no slices"
        return wish.finding("SPC211", wish.profile_path, message, "leave profile out, or choose another pool")
    if wish.gpus and pool.gpus is None:
        return wish.finding("SPC216", wish.pool_path, f"{where} has no GPUs", "choose a pool with GPUs")
    mig = pool.gpus.mig if pool.gpus else None
    if wish.profile and mig is None:
        message = f"the GPUs of {where} are not cut into MIG slices"
        return wish.finding("SPC205", wish.profile_path, message, "leave profile out, or choose another pool")
    if wish.profile and mig and wish.profile not in mig.layout:
        near = nearest(wish.profile, mig.layout)
        message = f"{where} has no MIG slices {wish.profile}" + (f"; did you mean {near}?" if near else "")
        return wish.finding("SPC205", wish.profile_path, message, f"the slices are {', '.join(mig.layout)}")
    if not wish.profile and wish.gpus and mig and mig.strategy == "mixed":
        message = f"the GPUs of {where} are cut into MIG slices: there are no whole ones"
        fix = f"add profile, one of {', '.join(mig.layout)}" if wish.profile_path else "choose another pool"
        return wish.finding("SPC205", wish.pool_path, message, fix)
    return None


def _no_quota(wish: _Wish, on: list[Document[Cluster]], teams: dict[str, Document[Team]]) -> Iterator[Finding]:
    """SPC206: what runs is counted against a quota of its team."""
    document = teams.get(wish.team or "")
    if document is None or not document.knows("spec.quotas") or not wish.is_known():
        return
    team = document.model
    wanted = [
        cluster.model
        for cluster in on
        if _pool(cluster, wish.pool, "gpus")
        and not any(
            (quota.cluster, quota.pool) == (cluster.model.metadata.name, wish.pool)
            and _unit(cluster, wish.pool, quota.profile) == _unit(cluster, wish.pool, wish.profile)
            for quota in team.spec.quotas
        )
    ]
    if wanted:
        what = f"{wish.pool} ({wish.profile})" if wish.profile else wish.pool
        message = (
            f"team {team.metadata.name} has no quota for {what} on {_names(wanted)}: nothing there can be admitted"
        )
        yield wish.finding("SPC206", wish.pool_path, message, f"add one to the quotas of {team.metadata.name}")


def _unit(cluster: Document[Cluster], pool_name: str, profile: str | None) -> str | None:
    """What is counted: slices by profile, but under strategy `single` every slice is a plain GPU, named or not."""
    pool = _pool(cluster, pool_name, "gpus")
    mig = pool.gpus.mig if pool and pool.gpus else None
    return None if mig and mig.strategy == "single" else profile


def _of_the_platform(platform: Platform, clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC221: pools for what the platform itself runs, where tenants have no place."""
    for team in platform.teams:
        for index, quota in enumerate(team.model.spec.quotas):
            path = f"spec.quotas[{index}].pool"
            on = clusters.get(quota.cluster)
            pool = _pool(on, quota.pool, "purpose") if on and team.knows(path) else None
            # That there are no GPUs where some are asked for is said already.
            if pool and pool.purpose == "system" and (pool.gpus or not quota.gpus):
                message = f"pool {pool.name} on {quota.cluster} is for the platform itself: its purpose is system"
                fix = "choose another pool, or give this one the purpose shared"
                at, sure = team.locate(path), Confidence.LIKELY
                yield Finding("SPC221", message, at, Severity.WARNING, sure, path=path, fix=fix)


def _counted_twice(platform: Platform, clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC212: two quotas that differ only in naming the one profile there is."""
    for team in platform.teams:
        seen: dict[tuple[str, str, str | None], str | None] = {}
        for index, quota in enumerate(team.model.spec.quotas):
            if quota.cluster in clusters and team.knows(f"spec.quotas[{index}]"):
                key = (quota.cluster, quota.pool, _unit(clusters[quota.cluster], quota.pool, quota.profile))
                if seen.setdefault(key, quota.profile) != quota.profile:
                    path = f"spec.quotas[{index}]"
                    message = f"{quota.cluster} {quota.pool} stands here a second time: its slices are all alike"
                    yield Finding("SPC212", message, team.locate(path), path=path, fix="keep one of the two")


def _names(clusters: list[Cluster]) -> str:
    return ", ".join(cluster.metadata.name for cluster in clusters)


def _placement(document: Document[TrainingJob], clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC215: a wish for racks or blocks means nothing where the pool does not say where its nodes stand."""
    spec = document.model.spec
    wishes = [field for field in ("required", "preferred") if getattr(spec.placement, field)]
    if not document.knows("spec.placement", "spec.pool"):
        return
    for name in spec.clusters:
        pool = _pool(clusters[name], spec.pool, "racks") if name in clusters else None
        if wishes and pool is not None and not pool.racks:
            path = f"spec.placement.{wishes[0]}"
            message = f"pool {pool.name} on {name} has no racks: the wish cannot be kept"
            fix = "say in the cluster's spec in which racks the nodes stand, or leave placement out"
            yield Finding("SPC215", message, document.locate(path), path=path, fix=fix)
            return


def _promised(platform: Platform, clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC210: more nominal quota than machines; jobs would be admitted and wait for nodes."""
    promises: dict[tuple[str, str, str | None], dict[str, int]] = defaultdict(dict)
    for team in platform.teams:
        for index, quota in enumerate(team.model.spec.quotas):
            if not team.knows(f"spec.quotas[{index}]"):
                continue
            on = clusters.get(quota.cluster)
            unit = _unit(on, quota.pool, quota.profile) if on else quota.profile
            shares = promises[quota.cluster, quota.pool, unit]
            shares[team.model.metadata.name] = shares.get(team.model.metadata.name, 0) + quota.gpus
    for cluster in platform.clusters:
        for index, pool in enumerate(cluster.model.spec.node_pools):
            at = f"spec.nodePools[{index}]"
            known = cluster.knows(*(f"{at}.{field}" for field in ("name", "nodes", "gpus", "devices")))
            said: list[str] = []
            for profile, there in _capacity(pool).items() if known else ():
                shares = promises.get((cluster.model.metadata.name, pool.name, profile), {})
                if sum(shares.values()) > there:
                    what = f"slices {profile}" if profile else "GPUs"
                    whose = ", ".join(f"{name} {gpus}" for name, gpus in sorted(shares.items()))
                    promised = f"{sum(shares.values())} {what} of {pool.name} are promised"
                    said.append(f"{promised} ({whose}), there are {there}")
            if said:
                path = f"{at}.nodes"
                place, sure = cluster.locate(path), Confidence.LIKELY
                yield Finding("SPC210", "; ".join(said), place, Severity.WARNING, sure, path=path, fix="promise less")


def _capacity(pool: NodePool) -> dict[str | None, int]:
    """What the whole pool has, by MIG profile; under None whole GPUs, or all slices of strategy `single`."""
    if pool.gpus is None:
        return {}
    gpus, mig = pool.nodes * pool.gpus.count, pool.gpus.mig
    if mig is None or pool.devices == "dra":
        return {None: gpus}
    if mig.strategy == "single":
        return {None: gpus * sum(mig.layout.values())}
    return {profile: gpus * number for profile, number in mig.layout.items()}


def _components(platform: Platform, clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC214: a spec that needs a component which a cluster does not have."""
    found: dict[str, list[Finding]] = {}
    for document, path, names, component in _needed(platform):
        lacking = [n for n in names if n in clusters and _is_without(clusters[n], component)]
        if lacking and document.knows(path):
            alias = Components.model_fields[component].alias or component
            message = f"this needs {alias}, which {', '.join(lacking)} does not have"
            fix, at = f"add a version of {alias} to spec.components", document.locate(path)
            found.setdefault(message, []).append(Finding("SPC214", message, at, path=path, fix=fix))
    yield from (told_once(group) for group in found.values())


def _is_without(cluster: Document[Cluster], component: str) -> bool:
    return cluster.knows("spec.components") and getattr(cluster.model.spec.components, component) is None


def _needed(platform: Platform) -> Iterator[tuple[Document[Model], str, tuple[str, ...], str]]:
    """Where something is asked for, on which clusters, and the component that provides it."""
    for job in platform.training_jobs:
        api = "training_operator" if job.model.spec.api == "PyTorchJob" else "trainer"
        yield job, "spec.api", job.model.spec.clusters, api
    for service in platform.services:
        spec = service.model.spec
        if spec.gpus.nodes > 1:
            yield service, "spec.gpus.nodes", spec.clusters, "lws"
        if spec.rollout:
            yield service, "spec.rollout", spec.clusters, "argo_rollouts"
        if spec.slo:
            yield service, "spec.slo", spec.clusters, "prometheus_operator"
        if spec.replicas.scale_on:
            yield service, "spec.replicas.scaleOn", spec.clusters, "keda"
            yield service, "spec.replicas.scaleOn", spec.clusters, "prometheus_operator"
    for cluster in platform.clusters:
        if cluster.model.spec.backup:
            yield cluster, "spec.backup", (cluster.model.metadata.name,), "velero"


def _engines(platform: Platform, clusters: dict[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC214 and SPC217: an engine that a cluster lacks; where another one enforces the policy, that is a note."""
    for policy in platform.policies:
        spec = policy.model.spec
        if not policy.knows("spec.clusters", "spec.engines"):
            continue
        names = [name for name in spec.clusters or sorted(clusters) if name in clusters]
        on = [clusters[name].model for name in names if clusters[name].knows("spec.components")]
        for index, engine in enumerate(spec.engines):
            lacking = [cluster for cluster in on if not has_engine(cluster, engine)]
            idle = [cluster for cluster in lacking if not any(has_engine(cluster, other) for other in spec.engines)]
            path = f"spec.engines[{index}]"
            at = policy.locate(path)
            if idle:
                message = (
                    f"this needs {engine.lower()}, which {_names(idle)} does not have: nothing enforces the policy"
                )
                fix = f"add a version of {engine.lower()} to spec.components, or another engine"
                yield Finding("SPC214", message, at, path=path, fix=fix)
            elif lacking:
                message = f"{_names(lacking)} has no {engine}: the other engines of the policy enforce it there"
                yield Finding("SPC217", message, at, Severity.NOTE, path=path)


def _copies(platform: Platform) -> Iterator[Finding]:
    """SPC218: without snapshots, Velero copies only volumes that a running pod mounts."""
    for cluster in platform.clusters:
        spec = cluster.model.spec
        if spec.backup and spec.storage.snapshots is None and cluster.knows("spec.storage"):
            path = "spec.storage.snapshots"
            message = "volumes are saved only while a running pod mounts them: there is no class of snapshots"
            fix = "name a VolumeSnapshotClass in spec.storage.snapshots"
            at, sure = cluster.locate("spec.backup"), Confidence.CERTAIN
            yield Finding("SPC218", message, at, Severity.WARNING, sure, path=path, fix=fix)
