"""policyHash: what the policies of a cluster decided about what runs there, and whether that is known at all.

A report that is old, missing, or about other policies than the rendered ones proves nothing: reports are
known to go stale (kyverno issues 12738, 13862, 17405) and to stop when their controller may not list a kind. So every
rendered policy must be in force as it was rendered, and must have been evaluated lately, or the credential is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from blueprint.attest.evidence import AHEAD, Body, Window, World, moment, settled, written
from blueprint.attest.filelist import canonical
from blueprint.check.shapes import items, mapping
from blueprint.objects import Manifest

REPORT_GROUPS: Final = ("wgpolicyk8s.io", "openreports.io")
REPORTS: Final = ("PolicyReport", "ClusterPolicyReport", "Report", "ClusterReport")
CONSTRAINTS: Final = "constraints.gatekeeper.sh"
NATIVE: Final = "admissionregistration.k8s.io"
KYVERNO: Final = "policies.kyverno.io"
GOOD: Final = ("pass", "skip")
"""Results of a policy that denies: a warning is a failure that is not counted, and what has no name is no result."""
_POLICIES: Final = {
    KYVERNO: ("ValidatingPolicy", "ImageValidatingPolicy"),
    NATIVE: ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    "templates.gatekeeper.sh": ("ConstraintTemplate",),
}


@dataclass(frozen=True, slots=True)
class PolicyEvidence:
    """The hash, and what it is over: how many results of which kind, from when, about which policies."""

    sha256: str
    document: dict[str, Any]
    newest: datetime | None


def policies_of(tree: World) -> list[Manifest]:
    """The policies that a tree renders, those of Gatekeeper among them."""
    found = [manifest for group, kinds in _POLICIES.items() for manifest in tree.all(group, *kinds)]
    kinds = [kind for group, kind in tree.objects if group == CONSTRAINTS]
    return [*found, *tree.all(CONSTRAINTS, *sorted(kinds))]


def from_cluster(tree: World, world: World, window: Window, audit_log: Path | None = None) -> PolicyEvidence:
    """Judge the reports and policies of a running cluster; reasons to refuse go to `world`."""
    policies = policies_of(tree)
    if not policies:
        world.refuse("CRE101", "the tree renders no policy: there is nothing that could have decided")
    if policies and not any(actions(policy.body) and denies(actions(policy.body)) for policy in policies):
        world.refuse("CRE104", "no policy of the tree denies: whatever they find, nothing is refused")
    for policy in policies:
        in_force(policy, world)
        _ready(policy, world)
    rows = list(_rows(world))
    names = {policy.ref.name for policy in policies}
    for policy in policies:
        _evaluated(policy, rows, world, window)
    for row in rows:
        if row.policy not in names:
            world.refuse("CRE106", f"a report tells of the policy {row.policy}, which the tree does not render")
        elif row.result not in GOOD and counts(row.policy, policies):
            world.refuse("CRE103", f"{row.policy} ({row.rule}): {row.result or 'no result'} for {row.resource}")
    _exceptions(tree, world)
    _controllers(world)
    evidence = evidence_of(rows, policies, "cluster")
    if audit_log is not None:
        evidence.document["auditLog"] = _audit(audit_log, world, window)
    return evidence


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One result; `seen` is when and `source` who says so, and both are no part of the hash."""

    policy: str
    rule: str
    result: str
    resource: str
    message: str
    seen: datetime | None = None
    source: str = ""

    def hashed(self) -> list[str]:
        """What goes into the hash: no times, no UIDs, and of the message only its digest."""
        return [self.policy, self.rule, self.result, self.resource, sha256(self.message.encode()).hexdigest()]


def _rows(world: World) -> Iterator[Row]:
    for group in REPORT_GROUPS:
        for report in world.all(group, *REPORTS):
            yield from rows_of(report.body)


def rows_of(report: Body) -> Iterator[Row]:
    """The results of one report."""
    scope = mapping(report.get("scope"))
    for result in items(report.get("results")):
        row = mapping(result)
        for resource in items(row.get("resources")) or [scope]:
            yield Row(
                # With a namespace in front it is another policy, made there: a tenant's, with a name of ours.
                policy=str(row.get("policy") or ""),
                rule=str(row.get("rule") or ""),
                result=str(row.get("result") or ""),
                resource=shown(mapping(resource)),
                message=str(row.get("message") or row.get("description") or ""),
                seen=moment(row.get("timestamp")),
                source=str(row.get("source") or report.get("source") or ""),
            )


def shown(resource: Body) -> str:
    """What a result is about, in one word."""
    parts = (str(resource.get(key) or "") for key in ("apiVersion", "kind", "namespace", "name"))
    return "/".join(part for part in parts if part)


def in_force(policy: Manifest, world: World) -> None:
    """Hold a policy of the tree to what the cluster has: a Deny that is an Audit there denies nothing."""
    name = f"{policy.kind} {policy.ref.name}"
    found = world.named(policy.ref.group, policy.kind, policy.ref.name)
    if found is None:
        world.refuse("CRE105", f"{name} is rendered, and not in the cluster")
    elif actions(policy.body) != actions(found.body):
        said, done = actions(policy.body), actions(found.body)
        world.refuse("CRE104", f"{name} is rendered to {', '.join(said)}, and in the cluster it is {', '.join(done)}")
    elif settled(policy) != settled(found):
        world.refuse("CRE105", f"{name} is not what was rendered")
    elif mapping(found.body.get("metadata")).get("deletionTimestamp"):
        world.refuse("CRE105", f"{name} is being deleted")


def _ready(policy: Manifest, world: World) -> None:
    """Refuse a policy of which its engine does not say that it took it."""
    found = world.named(policy.ref.group, policy.kind, policy.ref.name)
    status = mapping(found.body.get("status")) if found else {}
    if found is None or policy.ref.group == NATIVE:
        return  # the API server itself decides by its own policies, and says nothing of them
    pods = [mapping(pod) for pod in items(status.get("byPod"))]
    if policy.ref.group == KYVERNO:
        ready = mapping(status.get("conditionStatus")).get("ready") is True
    elif policy.ref.group == CONSTRAINTS:
        ready = bool(pods) and all(pod.get("enforced") is True for pod in pods)
    else:
        ready = status.get("created") is True
    errors = [str(mapping(error).get("message")) for pod in pods for error in items(pod.get("errors"))]
    if not ready or errors:
        why = f": {errors[0]}" if errors else ""
        world.refuse("CRE105", f"{policy.kind} {policy.ref.name} is not ready, says its engine{why}")


def actions(body: Body) -> list[str]:
    """What a policy does with what it finds."""
    spec = mapping(body.get("spec"))
    if "enforcementAction" in spec:
        return [str(spec["enforcementAction"])]
    return [str(action) for action in items(spec.get("validationActions"))]


def denies(said: Sequence[str]) -> bool:
    """Whether actions refuse a request; Gatekeeper denies where a constraint says nothing."""
    return not said or any(action.lower() == "deny" for action in said)


def counts(name: str, policies: Sequence[Manifest]) -> bool:
    """Whether a result of a policy counts as a refusal: unless each policy of the name says Audit or Warn only."""
    return denies([action for policy in policies if policy.ref.name == name for action in actions(policy.body)])


def _evaluated(policy: Manifest, rows: Sequence[Row], world: World, window: Window) -> None:
    """A policy must have been evaluated, lately, and since it was last changed."""
    spec, name = mapping(policy.body.get("spec")), f"{policy.kind} {policy.ref.name}"
    found = world.named(policy.ref.group, policy.kind, policy.ref.name)
    if policy.ref.group == CONSTRAINTS and found is not None:
        status = mapping(found.body.get("status"))
        _fresh(name, moment(status.get("auditTimestamp")), _changed(found), world, window)
        if (number := status.get("totalViolations")) and actions(policy.body) == ["deny"]:
            world.refuse("CRE103", f"{name} has {number} violations")
        return
    scans = mapping(mapping(spec.get("evaluation")).get("background")).get("enabled") is not False
    if policy.ref.group != KYVERNO or not scans or found is None:
        return  # Kubernetes' own policies decide at once, and leave no report
    # Policies of several engines may have one name; who judged is in the source (kyverno v1.19.1 pkg/utils/report).
    own = [row for row in rows if row.policy == policy.ref.name and row.source == f"Kyverno{policy.kind}"]
    if not own:
        world.refuse("CRE101", f"{name} has no result in any report: it was never evaluated")
        return
    # Every scan writes every row anew (kyverno v1.19.1 pkg/controllers/report/background): one that is old was left
    # behind, and what it says may be long untrue.
    seen = [row.seen for row in own if row.seen is not None]
    _fresh(name, min(seen) if len(seen) == len(own) else None, _changed(found), world, window)


def _fresh(name: str, seen: datetime | None, changed: datetime | None, world: World, window: Window) -> None:
    if seen is None:
        world.refuse("CRE108", f"{name} was evaluated at a time that nobody knows")
    elif seen > window.now + AHEAD:
        world.refuse("CRE108", f"{name} was evaluated in the future ({written(seen)})")
    elif window.now - seen > window.reports:
        world.refuse("CRE102", f"{name} has a result of {written(seen)}, more than {window.reports} ago")
    elif changed is not None and seen < changed - timedelta(seconds=1):
        world.refuse("CRE102", f"{name} was changed at {written(changed)}, after a result that is still told")


def _changed(policy: Manifest) -> datetime | None:
    """When somebody last wrote the policy, not counting writers of its status."""
    meta = mapping(policy.body.get("metadata"))
    times = [
        moment(mapping(entry).get("time"))
        for entry in items(meta.get("managedFields"))
        if mapping(entry).get("subresource") != "status"
    ]
    return max((time for time in (*times, moment(meta.get("creationTimestamp"))) if time), default=None)


def _exceptions(tree: World, world: World) -> None:
    """Kyverno's exceptions take objects out of a policy; one that Git does not hold is somebody's own."""
    for exception in world.all(KYVERNO, "PolicyException"):
        kept = tree.named(KYVERNO, "PolicyException", exception.ref.name, exception.ref.namespace)
        if kept is None or settled(kept) != settled(exception):
            message = f"the exception {exception.ref.namespace}/{exception.ref.name} is not one that was rendered"
            world.refuse("CRE105", message)


def _controllers(world: World) -> None:
    """Deployments that write reports must be available where they are among the objects."""
    for deployment in world.all("apps", "Deployment"):
        name = deployment.ref.name
        if "reports-controller" in name or name == "gatekeeper-audit":
            status = mapping(deployment.body.get("status"))
            deleted = mapping(deployment.body.get("metadata")).get("deletionTimestamp")
            if not status.get("availableReplicas") or deleted:
                world.refuse("CRE107", f"{name} is not available: nobody writes reports")


def _audit(file: Path, world: World, window: Window) -> dict[str, Any]:
    """What the API server's audit log adds: requests that got past an engine because it did not answer."""
    digest, first, last, number, newest = sha256(), "", "", 0, None
    with file.open("rb") as lines:
        for line in lines:
            digest.update(line)
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict) or not isinstance(event.get("auditID"), str):
                world.refuse("CRE109", f"line {number + 1} of the audit log is no event")
                break
            number += 1
            last = event["auditID"]
            first = first or last
            seen = moment(event.get("stageTimestamp"))
            newest = max(filter(None, (newest, seen)), default=None)
            for key in mapping(event.get("annotations")):
                if key.startswith("failed-open.validating.webhook.admission.k8s.io/"):
                    world.refuse("CRE109", f"a request got past a policy engine that did not answer (audit ID {last})")
    if not number:
        world.refuse("CRE109", "the audit log is empty")
    elif newest is None or not window.now - window.reports <= newest <= window.now + AHEAD:
        when = written(newest) if newest else "a time that nobody knows"
        world.refuse("CRE109", f"the audit log ends at {when}: of what came since it tells nothing")
    return {"sha256": digest.hexdigest(), "firstAuditID": first, "lastAuditID": last, "count": number}


def told(policy: Manifest) -> dict[str, Any]:
    """A policy as evidence names it: by the digest of its spec, and by what it does."""
    return {
        "kind": policy.kind,
        "name": policy.ref.name,
        "actions": actions(policy.body),
        "sha256": sha256(canonical(policy.body.get("spec"))).hexdigest(),
    }


def evidence_of(rows: Sequence[Row], policies: Sequence[Manifest], level: str) -> PolicyEvidence:
    """The hash of results and policies, and the document that it is over."""
    counted = Counter(row.result for row in rows)
    seen = sorted(row.seen for row in rows if row.seen)
    document: dict[str, Any] = {
        "level": level,
        "results": len(rows),
        **{result: counted[result] for result in ("pass", "fail", "warn", "error", "skip")},
        "oldest": written(seen[0]) if seen else None,
        "newest": written(seen[-1]) if seen else None,
        "policies": [told(policy) for policy in policies],
    }
    hashed = sorted(row.hashed() for row in rows)
    value = sha256(canonical({"results": hashed, "policies": document["policies"]})).hexdigest()
    return PolicyEvidence(value, document, seen[-1] if seen else None)
