"""Rules that look across the objects of a cluster, one module for each family.

A rule takes a `Graph` and yields findings. A family lists in `RULES` what it asks of one cluster, and in `TREE` what it
asks of the tree as a whole, where several clusters meet (Argo CD's applications, say).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from blueprint.check.clusters import graphs
from blueprint.check.graph import Graph
from blueprint.check.rules import (
    admission,
    alert_texts,
    analysis,
    analysis_query,
    argo_apps,
    argo_fields,
    argo_finalizers,
    argo_ops,
    argo_options,
    argo_params,
    argo_sets,
    audit,
    backups,
    claims,
    collectors,
    conditions,
    drift,
    endings,
    gatekeeper,
    hidden_services,
    hooks,
    images,
    inference_pools,
    integrity,
    job_webhooks,
    kueue_config,
    kueue_devices,
    kueue_jobs,
    kueue_labels,
    kueue_mig,
    kueue_nodes,
    kueue_paths,
    kueue_policies,
    kueue_queues,
    kueue_remote,
    kueue_topology,
    kueue_training,
    kueue_versions,
    kyverno,
    kyverno_scan,
    lws,
    misspelt,
    monitors,
    near_names,
    plain_text,
    policy_fields,
    promql_limits,
    promql_math,
    promql_names,
    quota_requests,
    rbac,
    rbac_names,
    rollout_ingress,
    rollout_spec,
    route_parents,
    scaling,
    scaling_inputs,
    scaling_spec,
    selecting,
    tenancy,
    times,
    traffic,
    update_peaks,
    upgrade,
    vllm_disk,
    vllm_fit,
    vllm_flags,
    vllm_groups,
    vllm_pods,
    waves,
)
from blueprint.finding import Finding
from blueprint.objects import Manifest

Rule = Callable[[Graph], Iterable[Finding]]

_FAMILIES = (
    argo_apps,
    argo_params,
    argo_sets,
    argo_ops,
    argo_fields,
    argo_options,
    argo_finalizers,
    integrity,
    waves,
    hooks,
    drift,
    images,
    backups,
    claims,
    upgrade,
    rbac,
    rbac_names,
    tenancy,
    quota_requests,
    plain_text,
    admission,
    policy_fields,
    kyverno,
    kyverno_scan,
    gatekeeper,
    audit,
    kueue_paths,
    kueue_queues,
    kueue_jobs,
    kueue_labels,
    kueue_training,
    kueue_topology,
    kueue_nodes,
    kueue_devices,
    kueue_mig,
    kueue_versions,
    kueue_policies,
    kueue_config,
    kueue_remote,
    vllm_flags,
    vllm_fit,
    vllm_pods,
    vllm_disk,
    vllm_groups,
    lws,
    hidden_services,
    analysis,
    conditions,
    rollout_spec,
    rollout_ingress,
    update_peaks,
    analysis_query,
    promql_names,
    promql_math,
    promql_limits,
    alert_texts,
    scaling,
    scaling_spec,
    scaling_inputs,
    monitors,
    collectors,
    traffic,
    inference_pools,
    route_parents,
    job_webhooks,
    misspelt,
    times,
    endings,
    near_names,
    selecting,
)

RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.RULES)
TREE: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in family.TREE)

HALVES: tuple[tuple[Rule, ...], tuple[Rule, ...]] = (
    tuple(rule for rule in RULES if ".kueue_" in rule.__module__),
    tuple(rule for rule in RULES if ".kueue_" not in rule.__module__),
)
"""RULES in two parts that read different things out of a graph, so that two processes do little twice."""


def across(
    manifests: Sequence[Manifest],
    *,
    closed: Collection[str] = (),
    versions: Mapping[str, str] | None = None,
    rules: Sequence[Rule] = RULES,
    tree: Sequence[Rule] = TREE,
) -> Iterator[Finding]:
    """Rules on every cluster of a tree, and those that ask about the tree; the same finding comes only once."""
    seen: set[Finding] = set()
    whole = Graph(manifests, closed=closed, versions=versions)
    parts = graphs(manifests, closed=closed, versions=versions, deliveries=whole.deliveries)
    runs = [(rule, whole) for rule in tree] + [(rule, part) for part in parts for rule in rules]
    for rule, graph in runs:
        for finding in rule(graph):
            if finding not in seen:
                seen.add(finding)
                yield finding
