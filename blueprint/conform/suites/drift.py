"""Zero drift: what was written is what is read, and writing it again changes nothing, also after controllers acted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.catalog.gating import Gate
from blueprint.conform.client import Target
from blueprint.conform.install import MANAGER
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted
from blueprint.conform.tree import Tree
from blueprint.objects import Manifest
from blueprint.render.health import gates
from blueprint.render.options import IGNORE

Body = dict[str, Any]

_SHOWN = 5


def run(stage: Stage) -> None:
    """Each Application is read back, twice, and applied again as a dry run."""
    for name, manifests in stage.tree.applications.items():
        with stage.case(f"{name}: read back as written") as case:
            found = [difference for manifest in manifests for difference in _differences(stage, manifest)]
            _none(found)
            case.said = f"{len(manifests)} objects"
        with stage.case(f"{name}: applied again, nothing changes") as case:
            first = [_version(stage, manifest) for manifest in manifests]
            for manifest in manifests:
                accepted(stage.client.apply(manifest.body, manager=MANAGER), f"{manifest.ref} again")
            again = [_version(stage, manifest) for manifest in manifests]
            moved = [f"{m.ref}" for m, a, b in zip(manifests, first, again, strict=True) if a != b]
            _none([*moved])
            found = [difference for manifest in manifests for difference in _differences(stage, manifest)]
            _none(found)
            case.said = f"{len(manifests)} objects keep their generation"
    with stage.case("a field changed by hand is seen as drift", negative=True) as case:
        queue = next(m for m in stage.tree.manifests if m.kind == "LimitRange")
        target = Target.of(queue.body)
        accepted(
            stage.client.patch(target, {"metadata": {"labels": {"app.kubernetes.io/managed-by": "hand"}}}), "a label"
        )
        found = list(_differences(stage, queue))
        accepted(stage.client.apply(queue.body, manager=MANAGER), "the object again")
        if not found:
            raise WrongAnswerError("the change is not seen")
        case.said = found[0]
        _none(list(_differences(stage, queue)))


def _none(found: list[str]) -> None:
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise WrongAnswerError("; ".join(found[:_SHOWN]) + more)


def _version(stage: Stage, manifest: Manifest) -> tuple[str, str]:
    """The generation of an object; its resource version where no controller writes into it."""
    body = accepted(stage.client.get(Target.of(manifest.body)), f"{manifest.ref}").body
    ref = manifest.ref
    quiet = gates().of(ref.group, ref.kind) is Gate.WRITTEN
    meta = body["metadata"]
    return str(meta.get("generation", "")), meta["resourceVersion"] if quiet and not body.get("status") else ""


def _differences(stage: Stage, manifest: Manifest) -> Iterator[str]:
    """Fields of the written object that the server holds otherwise, but for those that Argo CD is told to ignore."""
    body = accepted(stage.client.get(Target.of(manifest.body)), f"{manifest.ref}").body
    ignored = (manifest.body["metadata"].get("annotations") or {}).get(IGNORE, "")
    for path, wanted, live in _compared(manifest.body, body, ""):
        if path not in ignored:
            yield f"{manifest.ref} {path}: {wanted!r} is {live!r}"


def _compared(wanted: Any, live: Any, path: str) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 (any JSON value)
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            yield from _compared(value, live.get(key), f"{path}/{key}")
    elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        for index, (one, other) in enumerate(zip(wanted, live, strict=True)):
            yield from _compared(one, other, f"{path}/{index}")
    elif wanted != live and not (wanted in ({}, [], None) and live is None):
        yield path, wanted, live


def _spelled(tree: Tree) -> Tree:
    """A quantity that is not written as the server writes it: 1000m instead of 1."""

    def put(body: Body) -> None:
        for container in body["spec"]["template"]["spec"]["containers"]:
            container["resources"]["requests"]["cpu"] = "16000m"
            container["resources"]["limits"]["cpu"] = "16000m"

    return tree.changed("Deployment", put)


SUITE = Suite(
    name="drift",
    title="Zero drift between the tree and the cluster",
    run=run,
    faults=(Fault("a quantity spelled otherwise than the server spells it", _spelled),),
)
