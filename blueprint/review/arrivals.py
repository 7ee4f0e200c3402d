"""What a new object opens beyond its being there: pods that reach their node, ways in, namespaces without a guard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blueprint.check.shapes import mapping, text
from blueprint.check.standards import Policy, violations
from blueprint.report.totals import counted
from blueprint.review import holders
from blueprint.review.around import Around
from blueprint.review.model import Meaning, Pair, Risk, Statement
from blueprint.review.risks import stated
from blueprint.review.sides import Sides
from blueprint.review.workloads import pods

_SKIPPED = b"+argocd:skip-file-rendering"
"""Argo CD leaves a file out that holds this: argo-cd v3.6.1 reposerver/repository/repository.go."""
_ENFORCE = "pod-security.kubernetes.io/enforce"


def opened_by(pair: Pair, around: Around) -> Iterator[Statement]:
    """What a new object lets happen; nothing for one that only is there."""
    body, kind = pair.there.body, pair.ref.kind_name
    for pod in pods(pair.there):
        found = violations(pod, Policy("baseline"))
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            words = f"new, and its pods reach their node: {found[0].message}{more}"
            path = f"{pod.spec_path}.{found[0].path}"
            source = "k8s.io/pod-security-admission v0.35.4 policy, baseline"
            yield stated(pair, Risk.SECURITY, "arrival", words, path=path, source=source)
        if strong := holders.of_pod(pod, pair, around):
            words = f"new, and its pods run as {strong}"
            path = f"{pod.spec_path}.serviceAccountName"
            yield stated(pair, Risk.SECURITY, "arrival-account", words, path=path, source=holders.SOURCE)
    if kind == "Service" and (way := text(mapping(body.get("spec")).get("type"))) in ("LoadBalancer", "NodePort"):
        source = "k8s.io/api v0.35.4 core/v1/types.go"
        yield stated(pair, Risk.SECURITY, "arrival", f"new: reachable from outside, type {way}", source=source)
    labels = mapping(mapping(body.get("metadata")).get("labels"))
    if kind == "Namespace" and labels.get(_ENFORCE) == "privileged":
        words = "new: pod security lets everything in (enforces privileged)"
        yield stated(pair, Risk.SECURITY, "arrival", words, source="k8s.io/pod-security-admission v0.35.4")


def hidden(opened: Sides) -> Mapping[str, Meaning]:
    """Files that Argo CD leaves out from now on, though they are there: what they hold is pruned."""
    found: dict[str, Meaning] = {}
    for path in opened.changed:
        old, new = (side.files.get(path, b"") for side in (opened.base, opened.head))
        if _SKIPPED in new and _SKIPPED not in old and old:
            count = len(opened.head.of(iter([path])).manifests)
            gone = f"{counted(count, 'object')} go with a prune"
            words = f"{path} is left out by Argo CD (+argocd:skip-file-rendering): {gone}"
            found[path] = Meaning(Risk.DESTRUCTIVE, words, "", "", "file")
    return found
