"""MIG: whether GPUs can be cut as wished, and whether quota names the resource that nodes then advertise.

Sources: NVIDIA MIG user guide (placements); k8s-device-plugin and gpu-feature-discovery (resources and labels of the
strategies single and mixed); NVIDIA/mig-parted deployments (configuration); issues NVIDIA/gpu-operator#637, #460,
NVIDIA/mig-parted#29, NVIDIA/k8s-device-plugin#260.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import yaml_rs

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.nodes import Node
from blueprint.catalog import slips
from blueprint.catalog.gpus import Gpu, geometry, gpu, gpus, product
from blueprint.check.graph import Graph, labels_of
from blueprint.check.kueue import CLUSTER_QUEUE, FLAVOR, Kueue, kueue
from blueprint.check.machines import GPU, MIG, PRODUCT, pools
from blueprint.check.pods import containers
from blueprint.check.rules.kueue_paths import closest
from blueprint.check.rules.kueue_queues import rows
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.shapes import Body, mapping, maps, number, placeholder, text
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_STRATEGY = "nvidia.com/mig.strategy"
_POLICY = "ClusterPolicy.nvidia.com"


def infeasible(graph: Graph) -> Iterator[Finding]:
    """KQ602: one GPU cannot be cut into the wished instances."""
    for pool in pools(graph):
        if pool.mig is None:
            continue
        if pool.gpu is None:
            problem = _on_any(pool.mig.wish) if not text(pool.body.get("gpu")) and PRODUCT not in pool.labels else ""
        else:
            problem = geometry(pool.gpu, pool.mig.wish).problem
        if problem:
            where = (
                f"{pool.path}.mig.geometry" if pool.path in ("spec", "") or pool.path.startswith("pools") else pool.path
            )
            message = f"pool {pool.name}: {problem}"
            sure = None if pool.gpu and pool.gpu.placed else Confidence.LIKELY
            fix = _nearest(pool.gpu, pool.mig.wish)
            yield say("KQ602", pool.manifest, message, where, fix, Severity.ERROR, sure)
    for manifest, key, name, wish in _parted(graph):
        if problem := _on_any(wish):
            message = f"configuration {name} cannot be applied to any known GPU: {problem}"
            yield say("KQ602", manifest, message, f"data[{key}]", "", Severity.ERROR, Confidence.LIKELY)


def _on_any(wish: Sequence[str]) -> str:
    """Why no known GPU can be cut so; "" where one can, or where a profile is not known at all."""
    able = [each for each in gpus() if all(each.profile(name) for name in wish)]
    if not able:
        known = all(any(each.profile(name) for each in gpus()) for name in wish)
        return f"no GPU has the profiles {', '.join(dict.fromkeys(wish))} together" if known and wish else ""
    answers = [geometry(each, wish) for each in able]
    return "" if any(answer.fits for answer in answers) else answers[0].problem


def _nearest(of: Gpu | None, wish: Sequence[str]) -> str:
    """The largest part of the wish that fits."""
    if of is None:
        return ""
    kept: list[str] = []
    for name in wish:
        if of.profile(name) and geometry(of, [*kept, name]).fits:
            kept.append(name)
    counted = [f"{kept.count(name)} × {name}" for name in dict.fromkeys(kept)]
    return f"what fits: {', '.join(counted)}" if counted else ""


def _parted(graph: Graph) -> Iterator[tuple[Manifest, str, str, list[str]]]:
    """The configurations of mig-parted in ConfigMaps: (manifest, key, name, instances of one GPU)."""
    for manifest, key, name, entry in _entries(graph):
        devices = mapping(entry.get("mig-devices"))
        wish = [str(p) for p, n in devices.items() for _ in range(min(number(n, 0) or 0, 16))]
        if entry.get("mig-enabled") is True and wish:
            yield manifest, key, name, wish


def _entries(graph: Graph) -> Iterator[tuple[Manifest, str, str, Body]]:
    """Every entry of every configuration of mig-parted in ConfigMaps: (manifest, key, name, entry)."""
    for manifest in graph.kind("ConfigMap"):
        for key, content in mapping(manifest.body.get("data")).items():
            if not isinstance(content, str) or "mig-configs" not in content:
                continue
            try:
                read = mapping(yaml_rs.loads(content, parse_datetime=False))
            except ValueError:
                continue
            for name, entries in mapping(read.get("mig-configs")).items():
                yield from ((manifest, str(key), str(name), entry) for entry in maps(entries))


_ENTRY = ("devices", "device-filter", "mig-enabled", "mig-devices")


def unreadable(graph: Graph) -> Iterator[Finding]:
    """KQ606: a configuration of mig-parted with a field or a profile that there is not."""
    known = {each.name for model in gpus() for each in model.profiles}
    for manifest, key, name, entry in _entries(graph):
        path = f"data[{key}]"
        wrong = [str(field) for field in entry if field not in _ENTRY]
        if wrong:
            message = f"configuration {name}: there is no field {wrong[0]}, and mig-parted refuses the whole file"
            yield say("KQ606", manifest, message, path, closest(wrong[0], _ENTRY) or one_of(_ENTRY))
        for profile in map(str, mapping(entry.get("mig-devices"))):
            plain = profile.partition("+")[0].partition("-")[0]
            if plain not in {each.partition("+")[0] for each in known} and not placeholder(profile):
                message = f"configuration {name}: no GPU has a profile {profile}"
                yield say("KQ606", manifest, message, path, closest(profile, sorted(known)) or "such as 1g.10gb")


_CONFIG = "nvidia.com/mig.config"
_ALL = re.compile(r"all-(\d+g\.\d+gb)((?:\.\w+)*)")


def configurations(graph: Graph) -> Iterator[Finding]:
    """KQ606: a node asks for a configuration that mig-parted does not have, so that it is not cut at all."""
    own = {name for _, _, name, _ in _entries(graph)}
    for manifest in graph.kind("Node"):
        labels = labels_of(manifest.body)
        name, model = labels.get(_CONFIG, ""), gpu(labels.get(PRODUCT, "").partition("-MIG-")[0])
        if not name or placeholder(name) or name in own or graph.generated("ConfigMap"):
            continue
        match = _ALL.fullmatch(name)
        problem, fix = "", ""
        if own and not match and name not in _SHIPPED:
            near = slips.meant(name, frozenset(own)) or next(iter(get_close_matches(name, own, 1, 0.8)), "")
            problem, fix = ("no configuration of this name is here", near) if near else ("", "")
        elif match and not own and not any(each.profile(match[1]) for each in ([model] if model else gpus())):
            problem = f"{model.name} has no profile {match[1]}" if model else f"no GPU has a profile {match[1]}"
            fix = f"all-{model.profiles[0].name}" if model and model.profiles else ""
        elif not match and name.startswith("all-") and not own and name not in _SHIPPED:
            known_ones = [f"all-{each.name}" for model_ in gpus() for each in model_.profiles]
            near = slips.meant(name, frozenset({*known_ones, *_SHIPPED}))
            problem, fix = ("the operator ships no configuration of this name", near) if near else ("", "")
        if problem:
            message = f"{_CONFIG} {name}: {problem}; the node is not cut, and mig.config.state says failed"
            yield warn("KQ606", manifest, message, f"metadata.labels[{_CONFIG}]", f"did you mean {fix}?" if fix else "")


_SHIPPED = ("all-disabled", "all-enabled", "all-balanced")
"""What the operator ships beside one for each profile (gpu-operator v26.3.2, default-mig-parted-config)."""


def uniform(graph: Graph) -> Iterator[Finding]:
    """KQ601: the strategy single with instances of several profiles, which the device plugin refuses."""
    for pool in pools(graph):
        if pool.mig and pool.mig.strategy == "single" and len(pool.mig.geometry) > 1:
            profiles = ", ".join(pool.mig.geometry)
            message = f"pool {pool.name}: the strategy single wants one profile on all GPUs, and there are {profiles}"
            yield say("KQ601", pool.manifest, message, f"{pool.path}.mig.strategy", "mixed, or one profile")


def advertised(graph: Graph) -> Iterator[Finding]:
    """KQ601: quota counts a GPU resource that the nodes of the flavor do not advertise under their MIG strategy."""
    found = kueue(graph)
    policy = _policy(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        if manifest.ref in found.open:
            continue
        quotas = found.world.queues[manifest.ref.name].quotas
        for path, flavor, row in rows(manifest):
            resource = text(row.get("name"))
            mine = quotas.get(FlavorResource(flavor, resource))
            if mine is None or not mine.nominal or not (resource == GPU or resource.startswith(MIG)):
                continue
            if problem := _mismatch(found, flavor, resource, policy):
                fix = "count what the nodes advertise, or choose the other strategy"
                yield say("KQ601", manifest, f"flavor {flavor}: {problem}", path, fix)


def _mismatch(found: Kueue, flavor: str, resource: str, policy: str) -> str:
    """Why the resource is never there on nodes of a flavor, "" where it may be."""
    nodes = [node for node, _ in found.nodes_of(flavor)]
    if nodes:
        return _not_offered(nodes, resource)
    known = found.world.flavors.get(flavor)
    labels = known.labels if known else {}
    label = labels.get(PRODUCT, "")
    strategy = labels.get(_STRATEGY, "") or ("single" if "-MIG-" in label else policy)
    if strategy == "single" and resource.startswith(MIG):
        return f"under the MIG strategy single slices are advertised as {GPU}, and {resource} never is"
    if strategy == "none" and resource.startswith(MIG):
        return f"the GPU operator is set not to offer MIG (strategy none): {resource} is never advertised"
    return ""


def _not_offered(nodes: Sequence[Node], resource: str) -> str:
    offers = {
        name for node in nodes for name, value in node.allocatable.items() if name.startswith("nvidia.com/") and value
    }
    if resource in offers or not offers:
        return ""
    sliced = any(name.startswith(MIG) for name in offers)
    if not sliced and not resource.startswith(MIG):
        return ""
    return f"its nodes advertise {', '.join(sorted(offers))}, and the quota counts {resource}, of which there is none"


def _policy(graph: Graph) -> str:
    """The MIG strategy of the GPU operator's ClusterPolicy, "" where there is none."""
    for manifest in graph.kind(_POLICY):
        strategy = mapping(mapping(manifest.body.get("spec")).get("mig")).get("strategy")
        if isinstance(strategy, str) and not placeholder(strategy):
            return strategy
    return ""


def profiles_of_pods(graph: Graph) -> Iterator[Finding]:
    """KQ603: a pod asks for a MIG profile that no GPU has, or not the one that it selects."""
    for manifest, pod in graph.pods:
        for path, container in containers(pod.spec):
            for resource in mapping(mapping(container.get("resources")).get("limits")):
                name = str(resource).removeprefix(MIG)
                if name == resource or placeholder(name):
                    continue
                label = text(mapping(pod.spec.get("nodeSelector")).get(PRODUCT))
                model = gpu(label.removesuffix("-SHARED").partition("-MIG-")[0]) if label else None
                if model is not None and model.profile(name) is None:
                    has = ", ".join(each.name for each in model.profiles) or "no MIG at all"
                    message = f"the pod goes to {model.name}, which has no profile of {resource}; it has {has}"
                    where = f"{pod.spec_path}.{path}.resources.limits"
                    yield say("KQ603", manifest, message, where, "take a profile that the GPU has")
                    continue
                if any(each.profile(name) for each in gpus()):
                    continue
                message = f"no GPU has a profile of {resource}: no node advertises it, and the pod stays Pending"
                where = f"{pod.spec_path}.{path}.resources.limits"
                yield warn("KQ603", manifest, message, where, "a profile such as nvidia.com/mig-1g.10gb")


def profiles(graph: Graph) -> Iterator[Finding]:
    """KQ603: a MIG profile that the GPU of the flavor does not have."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        for path, flavor, row in rows(manifest):
            resource = text(row.get("name"))
            known = found.world.flavors.get(flavor)
            label = known.labels.get(PRODUCT, "") if known else ""
            model = gpu(label.removesuffix("-SHARED").partition("-MIG-")[0]) if label else None
            quotas = found.world.queues[manifest.ref.name].quotas
            mine = quotas.get(FlavorResource(flavor, resource))
            if model is None or not resource.startswith(MIG) or mine is None or not mine.nominal:
                continue
            if model.profile(resource.removeprefix(MIG)) is None:
                has = ", ".join(each.name for each in model.profiles) or "no MIG at all"
                message = f"flavor {flavor} is on {model.name}, which has no profile of {resource}; it has {has}"
                yield say("KQ603", manifest, message, path, "take a profile that the GPU has")
    for manifest in graph.kind(FLAVOR):
        label = found.world.flavors[manifest.ref.name].labels.get(PRODUCT, "")
        model = gpu(label.removesuffix("-SHARED").partition("-MIG-")[0])
        if "-MIG-" in label and model is not None and product(label) is None and not placeholder(label):
            profile = label.removesuffix("-SHARED").partition("-MIG-")[2]
            message = f"{PRODUCT} {label}: {model.name} has no profile {profile}"
            fix = one_of((each.name for each in model.profiles), 20)
            yield say("KQ603", manifest, message, f"spec.nodeLabels[{PRODUCT}]", fix)


def misspelt(graph: Graph) -> Iterator[Finding]:
    """KQ604: a product label written otherwise than gpu-feature-discovery writes it, so that it selects no node."""
    right = {_plain(name): name for each in gpus() for name in each.products}
    places: list[tuple[Manifest, str, Body]] = [
        (manifest, "spec.nodeLabels", mapping(mapping(manifest.body.get("spec")).get("nodeLabels")))
        for manifest in graph.kind(FLAVOR)
    ]
    places += [(m, f"{pod.spec_path}.nodeSelector", mapping(pod.spec.get("nodeSelector"))) for m, pod in graph.pods]
    for manifest, path, labels in places:
        label = text(labels.get(PRODUCT))
        if not label or placeholder(label):
            continue
        plain = label.removesuffix("-SHARED").partition("-MIG-")[0]
        meant = right.get(_plain(plain)) or right.get(slips.meant(_plain(plain), right))
        if meant is not None and plain != meant and gpu(plain) is None:
            message = f"{PRODUCT} {label} is not how nodes are labelled: they have {meant}"
            yield warn("KQ604", manifest, message, f"{path}[{PRODUCT}]", label.replace(plain, meant))


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-").removeprefix("nvidia-")


def labelled(graph: Graph) -> Iterator[Finding]:
    """KQ601: a Node says single and advertises MIG resources, or mixed and no such resource."""
    for manifest in graph.kind("Node"):
        labels = labels_of(manifest.body)
        offers = mapping(mapping(manifest.body.get("status")).get("allocatable"))
        slices = [str(name) for name in offers if str(name).startswith(MIG)]
        if labels.get(_STRATEGY) == "single" and slices:
            message = f"the node is labelled with the strategy single and advertises {', '.join(slices)}"
            yield warn("KQ601", manifest, message, "status.allocatable", "make both say the same")


RULES = (infeasible, unreadable, configurations, uniform, advertised, profiles, profiles_of_pods, misspelt, labelled)
TREE = ()
