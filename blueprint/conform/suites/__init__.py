"""The suites, in the order in which they run: the first lays the platform on which the others work, and the one on
policies, which takes webhooks away, is the last on the cluster. Argo CD syncs onto a cluster of its own.
"""

from __future__ import annotations

from blueprint.conform.stage import Suite
from blueprint.conform.suites import access, argocd, canary, devices, drift, kueue, order, policies, rules, scaling

ALL: tuple[Suite, ...] = (
    order.SUITE,
    drift.SUITE,
    access.SUITE,
    devices.SUITE,
    kueue.SUITE,
    canary.SUITE,
    scaling.SUITE,
    policies.SUITE,
    rules.SUITE,
    argocd.SUITE,
)
