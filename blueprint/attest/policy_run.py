"""The offline policy run: what the engines' own programs said of a tree, bound to that tree and to its policies.

What `kyverno apply` and `gator test` print names no tree, so a run is a record around it: the digest of the tree, each
policy by its digest and by what it does, and what was judged beside the tree. It says that the policies find nothing
wrong, and not that they are in force anywhere: `credential verify --strict` does not take it. So each policy must deny.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import (
    CONSTRAINTS,
    GOOD,
    KYVERNO,
    PolicyEvidence,
    Row,
    actions,
    counts,
    denies,
    evidence_of,
    policies_of,
    rows_of,
    shown,
    told,
)
from blueprint.check.shapes import items, mapping
from blueprint.errors import UsageError
from blueprint.objects import Manifest

SCHEMA: Final = 1
TEMPLATES: Final = "templates.gatekeeper.sh"
JUDGED: Final = ("ValidatingPolicy",)
"""Kinds of Kyverno that its program judges without a network."""


def record(tree: World, cluster: str, digest: str, outputs: dict[str, Any], beside: Sequence[str]) -> dict[str, Any]:
    """A run as it is kept: `outputs` is program → what it printed, `beside` the digests of other objects."""
    return {
        "schema": SCHEMA,
        "cluster": cluster,
        "treeDigest": f"sha256:{digest}",
        "policies": [told(policy) for policy in policies_of(tree)],
        "beside": sorted(beside),
        "outputs": outputs,
    }


def from_run(tree: World, file: Path, world: World, cluster: str, digest: str) -> PolicyEvidence:
    """Judge a run of a verified tree with this digest; reasons to refuse go to `world`. Raises UsageError."""
    run = _read(file)
    policies = policies_of(tree)
    if not policies:
        world.refuse("CRE101", "the tree renders no policy: there is nothing that could have decided")
    if run.get("treeDigest") != f"sha256:{digest}" or run.get("cluster") != cluster:
        said = f"{run.get('treeDigest') or 'no tree'} ({run.get('cluster') or 'no cluster'})"
        world.refuse("CRE110", f"the run is about {said}, and this is sha256:{digest} ({cluster})")
    _same(run, [told(policy) for policy in policies], world)
    for policy in policies:
        if actions(policy.body) and not denies(actions(policy.body)):
            said = ", ".join(actions(policy.body))
            message = f"{policy.kind} {policy.ref.name} is rendered to {said}, and no run shows what that lets in"
            world.refuse("CRE104", message, "render it to deny, or take the evidence of a cluster")
    outputs = mapping(run.get("outputs"))
    rows = sorted({*_of_kyverno(outputs.get("kyverno")), *_of_gator(outputs.get("gator"))})
    _covered(tree, rows, outputs, world)
    names = {policy.ref.name for policy in policies}
    for row in rows:
        if row.policy not in names:
            world.refuse("CRE106", f"the run tells of the policy {row.policy}, which the tree does not render")
        elif row.result not in GOOD and (row.result in ("fail", "error") or counts(row.policy, policies)):
            world.refuse("CRE103", f"{row.policy} ({row.rule}): {row.result or 'no result'} for {row.resource}")
    evidence = evidence_of(rows, policies, "offline")
    evidence.document["run"] = {
        "treeDigest": run.get("treeDigest"),
        "beside": run.get("beside"),
        "notJudged": [f"{policy.kind} {policy.ref.name}" for policy in policies if not _judged(policy, tree)],
    }
    return evidence


def asks_service(template: Manifest) -> bool:
    """Whether a template asks a service while it judges: gator cannot compile it."""
    return "external_data" in json.dumps(template.body)


def _judged(policy: Manifest, tree: World) -> bool:
    """Whether one of the programs can judge a policy; templates judge by their constraints."""
    if policy.ref.group == CONSTRAINTS:
        template = tree.named(TEMPLATES, "ConstraintTemplate", policy.kind.lower())
        return template is None or not asks_service(template)
    return policy.ref.group == TEMPLATES or policy.kind in JUDGED


def _read(file: Path) -> dict[str, Any]:
    try:
        run = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the policy run cannot be read: {error}", where=str(file)) from None
    if not isinstance(run, dict) or run.get("schema") != SCHEMA:
        hint = "blueprint credential run writes one; what kyverno or gator print says not of which tree it is"
        raise UsageError("this is no policy run", where=str(file), hint=hint)
    return run


def _same(run: dict[str, Any], policies: Sequence[dict[str, Any]], world: World) -> None:
    """Hold the policies that were run to those of the tree."""
    ran = {(row.get("kind"), row.get("name")): row for row in map(mapping, items(run.get("policies")))}
    for policy in policies:
        name = f"{policy['kind']} {policy['name']}"
        found = ran.pop((policy["kind"], policy["name"]), None)
        if found is None:
            world.refuse("CRE110", f"{name} is rendered, and was not run")
        elif found.get("actions") != policy["actions"]:
            said = ", ".join(map(str, items(found.get("actions"))))
            message = f"{name} was run to {said or 'nothing'}, and is rendered to {', '.join(policy['actions'])}"
            world.refuse("CRE104", message)
        elif found != policy:
            world.refuse("CRE110", f"{name} is not the one that was run")
    for kind, other in ran:
        world.refuse("CRE106", f"the run is of the policy {kind} {other}, which the tree does not render")


def _covered(tree: World, rows: Sequence[Row], outputs: Any, world: World) -> None:  # noqa: ANN401 - JSON
    """No result is not a pass, and a program that was not run judged nothing."""
    judged = {row.policy for row in rows if row.source.startswith("Kyverno")}
    for policy in policies_of(tree):
        name = f"{policy.kind} {policy.ref.name}"
        if policy.ref.group == KYVERNO and policy.kind in JUDGED and policy.ref.name not in judged:
            world.refuse("CRE101", f"{name} judged nothing in this run", "give objects that it judges (--with)")
        elif policy.ref.group == CONSTRAINTS and not isinstance(outputs.get("gator"), list):
            world.refuse("CRE101", f"{name} was judged by no program: gator did not run")


def _of_kyverno(output: object) -> Iterator[Row]:
    for report in output if isinstance(output, list) else [output]:
        yield from rows_of(mapping(report))


def _of_gator(output: object) -> Iterator[Row]:
    """Gatekeeper's program tells of violations alone."""
    for violation in items(output):
        row = mapping(violation)
        constraint = mapping(row.get("constraint"))
        resource = mapping(row.get("violatingObject"))
        meta = mapping(resource.get("metadata"))
        yield Row(
            policy=str(mapping(constraint.get("metadata")).get("name") or ""),
            rule=str(constraint.get("kind") or ""),
            result="fail",
            resource=shown({**resource, "name": meta.get("name"), "namespace": meta.get("namespace")}),
            message=str(row.get("msg") or ""),
        )
