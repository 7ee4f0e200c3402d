"""Kueue and Kubeflow Trainer by version: fields that moved, and defects of the version that is judged.

Sources: kueue v0.17.0 apis/kueue/v1beta1/*_conversion.go, apis/config/v1beta1/configuration_conversion.go; issues as
named in catalog/data/kueue_rules.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.admission.podsets import QUEUE_LABEL
from blueprint.admission.queues import GROUP
from blueprint.admission.state import PROVISIONING, controller
from blueprint.catalog.components import component
from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.check.graph import Graph, labels_of
from blueprint.check.kueue import CLUSTER_QUEUE, Kueue, kueue
from blueprint.check.rules.kueue_devices import TEMPLATE, requests
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.finding import Confidence, Finding, Severity

_NEW = f"{GROUP}/v1beta2"
_CONFIG_NEW = "config.kueue.x-k8s.io/v1beta2"
_MOST_FLAVORS = 16
_PARENT = "gpu.nvidia.com/parentUUID"
_TRAINJOB = "TrainJob.trainer.kubeflow.org"
_JOBSET = "JobSet.jobset.x-k8s.io"


def _at(body: Body, path: str) -> tuple[bool, Any]:
    """Whether the field is there, and its value."""
    *steps, last = path.split(".")
    for step in steps:
        body = mapping(body.get(step))
    return last in body, body.get(last)


def moved(graph: Graph) -> Iterator[Finding]:
    """KQ701: fields and values of an older API version, which the newer one drops without a word."""
    for row in table("kueue_rules")["moved"]:
        if row["kind"].startswith("Configuration."):
            yield from _moved_in_file(graph, row)
            continue
        for manifest in graph.kind(row["kind"]):
            if manifest.api_version == _NEW and _at(manifest.body, row["path"])[0]:
                message = f"{row['path']} is of an older version; v1beta2 drops it without a word, and {row['effect']}"
                yield say("KQ701", manifest, message, row["path"], f"{row['path']} is now {row['now']}")
    for row in table("kueue_rules")["renamed_values"]:
        for manifest in graph.kind(row["kind"]):
            value = _at(manifest.body, row["path"])[1]
            if manifest.api_version == _NEW and isinstance(value, str) and value in row["values"]:
                now = row["values"][value]
                message = f"{value} is a value of an older version, which v1beta2 refuses"
                yield say("KQ701", manifest, message, row["path"], f"{value} is now {now}")


def _moved_in_file(graph: Graph, row: dict[str, Any]) -> Iterator[Finding]:
    for each in kueue(graph).configurations:
        if each.body and each.body.get("apiVersion") == _CONFIG_NEW and _at(each.body, row["path"])[0]:
            message = f"{row['path']} is of v1beta1 and unknown in v1beta2: {row['effect']}"
            yield say("KQ701", each.manifest, message, each.at(row["path"]), f"it is now {row['now']}")


def _trainer(graph: Graph) -> tuple[str, bool]:
    """The version of Trainer, and whether somebody said so."""
    said = graph.versions.get("trainer", "")
    if said:
        return said.removeprefix("v"), True
    pinned = component("trainer")
    return (pinned.version.removeprefix("v") if pinned else ""), False


def overrides(graph: Graph) -> Iterator[Finding]:
    """KQ701: a TrainJob with the override field of another Trainer, or with a Trainer that Kueue cannot use."""
    rules = table("kueue_rules")
    release, said = _trainer(graph)
    mine = version(release)
    if mine is None:
        return
    need = rules["trainer_for_kueue"]
    for manifest in graph.kind(_TRAINJOB):
        spec = mapping(manifest.body.get("spec"))
        for row in rules["trainjob_overrides"]:
            if row["field"] in spec and not _fits(mine, row):
                right = next((r["field"] for r in rules["trainjob_overrides"] if _fits(mine, r)), "")
                message = f"Trainer {release} has no {row['field']}: it is dropped, or refused"
                severity = Severity.ERROR if said else Severity.WARNING
                sure = None if said else Confidence.LIKELY
                yield say("KQ701", manifest, message, f"spec.{row['field']}", f"use {right}", severity, sure)
        queued = QUEUE_LABEL in labels_of(manifest.body)
        lowest = version(need["trainer"])
        if queued and said and lowest is not None and mine < lowest and not kueue(graph).before(need["kueue"]):
            message = (
                f"Kueue {kueue(graph).version} starts TrainJobs through runtimePatches, which Trainer {release} drops: "
                "the job is admitted and stays suspended"
            )
            yield say("KQ701", manifest, message, "spec", f"use Trainer {need['best']} or newer")


def _fits(mine: tuple[int, ...], row: dict[str, str]) -> bool:
    since, until = version(row["since"]), version(row["until"])
    return since is not None and mine >= since and (until is None or mine < until)


def _broken(found: Kueue, name: str) -> bool:
    """Whether the version that is judged has a defect; one that is no number counts as mended."""
    row = next(each for each in table("kueue_rules")["defects"] if each["name"] == name)
    mine = version(found.version)
    if mine is None:
        return False
    mended = sorted(each for text in row["mended"] if (each := version(text)) is not None)
    if not mended:
        return True
    same = [each for each in mended if each[:2] == mine[:2]]
    return mine < same[0] if same else mine < mended[-1]


def patched_volumes(graph: Graph) -> Iterator[Finding]:
    """KQ702: runtimePatches with volumes or containers, which Trainer 2.2 does not let Kueue send again."""
    release, _ = _trainer(graph)
    mine = version(release)
    if mine is None or mine[:2] != (2, 2):
        return
    for manifest in graph.kind(_TRAINJOB):
        if QUEUE_LABEL not in labels_of(manifest.body):
            continue
        for index, patch in enumerate(maps(mapping(manifest.body.get("spec")).get("runtimePatches"))):
            fixed = {"volumes", "containers", "initContainers"} & set(_pod_fields(patch))
            if fixed:
                message = (
                    f"the patch sets {' and '.join(sorted(fixed))}, which Trainer {release} keeps from changing: it "
                    "may refuse the patch with which Kueue starts the job"
                )
                fix = "put them into the training runtime, or use Trainer 2.3.0"
                yield warn("KQ702", manifest, message, f"spec.runtimePatches[{index}]", fix)


def _pod_fields(patch: Body) -> Iterator[str]:
    template = mapping(mapping(mapping(patch.get("trainingRuntimeSpec")).get("template")).get("spec"))
    for row in maps(template.get("replicatedJobs")):
        job = mapping(mapping(mapping(row.get("template")).get("spec")).get("template"))
        yield from mapping(job.get("spec"))


def many_flavors(graph: Graph) -> Iterator[Finding]:
    """KQ702: more flavors than the status of a LocalQueue may list before 0.17.5."""
    found = kueue(graph)
    if not _broken(found, "local-queue-flavors"):
        return
    for manifest in graph.kind(CLUSTER_QUEUE):
        count = len(found.world.queues[manifest.ref.name].flavors)
        if count > _MOST_FLAVORS:
            message = (
                f"{count} flavors: before Kueue 0.17.5 the status of a LocalQueue holds {_MOST_FLAVORS}, and is not "
                "written any more with a larger number"
            )
            yield warn("KQ702", manifest, message, "spec.resourceGroups", "use Kueue 0.17.5, or split the queue")


def recreated_jobsets(graph: Graph) -> Iterator[Finding]:
    """KQ702: JobSets that restart by Recreate under waitForPodsReady may keep their quota after an eviction."""
    found = kueue(graph)
    waiting = [each for each in found.configurations if each.body and _ready(each.body)]
    if not waiting or not _broken(found, "recreate-keeps-quota"):
        return
    for manifest in graph.kind(_JOBSET):
        policy = mapping(mapping(manifest.body.get("spec")).get("failurePolicy"))
        restarts = policy.get("maxRestarts")
        recreated = policy.get("restartStrategy", "Recreate") == "Recreate"
        if QUEUE_LABEL in labels_of(manifest.body) and isinstance(restarts, int) and restarts > 0 and recreated:
            message = (
                "waitForPodsReady and a JobSet that restarts by Recreate: after a recovery that took too long the "
                "quota may stay taken"
            )
            fix = "try it on this version, or raise recoveryTimeout above the time of a restart"
            yield warn("KQ702", manifest, message, "spec.failurePolicy.restartStrategy", fix)


def _ready(body: Body) -> bool:
    block = body.get("waitForPodsReady")
    return isinstance(block, dict) and block.get("enable") is not False


def starving_preference(graph: Graph) -> Iterator[Finding]:
    """KQ702: preference PreemptionOverBorrowing, which starves workloads before 0.18.5 and 0.19.1."""
    found = kueue(graph)
    if not _broken(found, "preemption-over-borrowing"):
        return
    for manifest in graph.kind(CLUSTER_QUEUE):
        path = "spec.flavorFungibility.preference"
        if _at(manifest.body, path)[1] == "PreemptionOverBorrowing":
            message = f"Kueue {found.version} may starve workloads with the preference PreemptionOverBorrowing"
            yield warn("KQ702", manifest, message, path, "leave it out, or use Kueue 0.18.5 or 0.19.1")


def provisioned_topology(graph: Graph) -> Iterator[Finding]:
    """KQ702: a flavor with topology behind a ProvisioningRequest check, counted twice before 0.17.3."""
    found = kueue(graph)
    if not _broken(found, "topology-and-provisioning"):
        return
    for manifest in graph.kind(CLUSTER_QUEUE):
        queue = found.world.queues[manifest.ref.name]
        for check, flavors in queue.checks.items():
            if controller(found.world, check) != PROVISIONING:
                continue
            aware = sorted(n for n in flavors if n in found.world.flavors and found.world.flavors[n].topology)
            if aware:
                message = (
                    f"flavor {aware[0]} has a topology and waits for check {check}: before 0.17.3 its use counts twice"
                )
                yield warn("KQ702", manifest, message, "spec.admissionChecksStrategy", "use Kueue 0.17.3")


def mixed_profiles(graph: Graph) -> Iterator[Finding]:
    """KQ702: slices of several profiles from one GPU in a claim, which NVIDIA's driver was seen to mix up."""
    for manifest in graph.kind(TEMPLATE):
        found = [
            (text(exact.get("deviceClassName")), str(exact.get("selectors"))) for _, _, exact in requests(manifest)
        ]
        spec = mapping(mapping(mapping(manifest.body.get("spec")).get("spec")).get("devices"))
        bound = any(row.get("matchAttribute") == _PARENT for row in maps(spec.get("constraints")))
        if bound and len(set(found)) > 1:
            message = (
                "the claim wants different MIG profiles of one GPU; the driver was seen to hand out the wrong ones"
            )
            fix = "one profile for each claim, or a driver with the correction"
            yield warn("KQ702", manifest, message, "spec.spec.devices.constraints", fix)


def elastic_master(graph: Graph) -> Iterator[Finding]:
    """KQ702: elasticPolicy with a Master, which makes torchrun wait for a wrong number of nodes."""
    for manifest in graph.kind("PyTorchJob.kubeflow.org"):
        spec = mapping(manifest.body.get("spec"))
        if "elasticPolicy" in spec and "Master" in mapping(spec.get("pytorchReplicaSpecs")):
            message = (
                "with a Master beside elasticPolicy the operator computes a wrong PET_NNODES: the rendezvous waits for "
                "nodes that never come"
            )
            yield warn("KQ702", manifest, message, "spec.elasticPolicy", "use Workers only")


RULES = (
    moved,
    overrides,
    patched_volumes,
    many_flavors,
    recreated_jobsets,
    starving_preference,
    provisioned_topology,
    mixed_profiles,
    elastic_master,
)
TREE = ()
