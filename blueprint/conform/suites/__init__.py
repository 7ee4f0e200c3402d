"""The suites, in the order in which they run: the first lays the platform on which the others work, and the one on
policies, which takes webhooks away, is the last on the cluster. Argo CD syncs onto a cluster of its own.

`scaling` is not among them before it has been seen to pass, and its fault to be noticed, on a built KEDA.
"""

from __future__ import annotations

from blueprint.conform.stage import Suite
from blueprint.conform.suites import access, argocd, canary, devices, drift, kueue, order, policies, rules

ALL: tuple[Suite, ...] = (
    order.SUITE,
    drift.SUITE,
    access.SUITE,
    devices.SUITE,
    kueue.SUITE,
    canary.SUITE,
    policies.SUITE,
    rules.SUITE,
    argocd.SUITE,
)
