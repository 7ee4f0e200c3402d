"""Which pods the Pod Security level of their namespace would refuse, wherever the pods are written.

A level bars plain pods at once and the pods of workloads later, when their controller creates them: both never run.
Source: k8s.io/pod-security-admission@v0.35.4 api/helpers.go (labels), admission/admission.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.shapes import Body, mapping, text
from blueprint.check.standards import LATEST, LEVELS, Policy, Violation, violations
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_PREFIX = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")


def policy_of(labels: Body, mode: str) -> Policy:
    """The policy that a namespace's labels give for `enforce`, `warn` or `audit`; what cannot be read is restricted."""
    level = labels.get(f"{_PREFIX}{mode}")
    if level is None:
        return Policy("privileged")
    match = _VERSION.fullmatch(text(labels.get(f"{_PREFIX}{mode}-version", "latest")))
    return Policy(level if level in LEVELS else "restricted", min(int(match[1]), LATEST) if match else LATEST)


def pod_security(manifests: Sequence[Manifest]) -> Iterable[Finding]:
    """PSS1xx, PSS2xx: pods that the level of their namespace refuses; only namespaces of the same set have a level.

    What `enforce` refuses is an error; what only `warn` or `audit` would tell is a warning.
    """
    labels = {
        manifest.ref.name: mapping(mapping(manifest.body.get("metadata")).get("labels"))
        for manifest in manifests
        if manifest.kind == "Namespace" and manifest.api_version == "v1"
    }
    enforced = {name: policy_of(given, "enforce") for name, given in labels.items()}
    told = {
        name: max(policy_of(given, "warn"), policy_of(given, "audit"), key=_strictness)
        for name, given in labels.items()
    }
    for manifest in manifests:
        namespace = manifest.ref.namespace
        if namespace not in labels:
            continue
        must, should = enforced[namespace], told[namespace]
        if must.level == should.level == "privileged":
            continue
        for template in pod_templates(manifest):
            refused = violations(template, must)
            for violation in refused:
                yield _finding(manifest, template, violation, must, namespace, Severity.ERROR)
            if _strictness(should) > _strictness(must):
                for violation in violations(template, should):
                    if violation not in refused:
                        yield _finding(manifest, template, violation, should, namespace, Severity.WARNING)


def _strictness(policy: Policy) -> int:
    return LEVELS.index(policy.level)


def _finding(
    manifest: Manifest, template: PodTemplate, violation: Violation, policy: Policy, namespace: str, severity: Severity
) -> Finding:
    path = (
        f"{template.spec_path}.{violation.path}"
        if violation.path
        else f"{template.path}.metadata.annotations".lstrip(".")
    )
    return Finding(
        violation.code,
        f"{violation.message} (namespace {namespace} is {policy.level})",
        manifest.source,
        severity,
        Confidence.CERTAIN if severity is Severity.ERROR else Confidence.LIKELY,
        manifest.ref,
        path,
        violation.fix,
    )
