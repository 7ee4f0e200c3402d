"""The suites, in the order in which they run: the first ones lay the platform on which the later ones work."""

from __future__ import annotations

from blueprint.conform.stage import Suite
from blueprint.conform.suites import access, devices, drift, kueue, order, policies, rules

ALL: tuple[Suite, ...] = (
    order.SUITE,
    drift.SUITE,
    access.SUITE,
    devices.SUITE,
    kueue.SUITE,
    policies.SUITE,
    rules.SUITE,
)
