"""The door to the tables of facts: typed look-ups that answer None or `unknown` for what they do not know."""

from blueprint.catalog.argocd import HealthCheck, checked_kinds, health_check, is_excluded, sync_rank
from blueprint.catalog.components import Component, Support, component, components, oversized_crds, served_versions
from blueprint.catalog.gpus import Geometry, Gpu, Product, Profile, geometry, gpu, gpus, product
from blueprint.catalog.metrics import Family, PlatformMetric, family_of, platform_metric
from blueprint.catalog.models import Model, Problem, model, models, parallelism_problem, tensor_parallel_sizes
from blueprint.catalog.vllm import Flag, FlagAnswer, Metric, MetricAnswer, Presence, flag, metric, option_name

__all__ = [
    "Component",
    "Family",
    "Flag",
    "FlagAnswer",
    "Geometry",
    "Gpu",
    "HealthCheck",
    "Metric",
    "MetricAnswer",
    "Model",
    "PlatformMetric",
    "Presence",
    "Problem",
    "Product",
    "Profile",
    "Support",
    "checked_kinds",
    "component",
    "components",
    "family_of",
    "flag",
    "geometry",
    "gpu",
    "gpus",
    "health_check",
    "is_excluded",
    "metric",
    "model",
    "models",
    "option_name",
    "oversized_crds",
    "parallelism_problem",
    "platform_metric",
    "product",
    "served_versions",
    "sync_rank",
    "tensor_parallel_sizes",
]
