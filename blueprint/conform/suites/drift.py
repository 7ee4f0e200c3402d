"""Zero drift: what was written is what is read, and writing it again changes nothing, also after controllers acted."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from blueprint.conform.client import Target
from blueprint.conform.install import MANAGER
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, refused
from blueprint.conform.tree import Tree
from blueprint.objects import Manifest
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
            _none([what for manifest in manifests for what in _moved(stage, manifest)])
            _none([difference for manifest in manifests for difference in _differences(stage, manifest)])
            case.said = f"{len(manifests)} objects"
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


def as_dry_run(stage: Stage) -> None:
    """On a cluster that is not ours: what its server would make of each object, of the kinds that it serves."""
    for name, manifests in stage.tree.applications.items():
        with stage.case(f"{name}: taken and read back as written, as a dry run") as case:
            served = [m for m in manifests if stage.client.serves(m.api_version, m.kind)]
            unasked = sorted({m.kind for m in manifests if m not in served})
            found: list[str] = []
            for manifest in served:
                answer = stage.client.apply(manifest.body, manager=MANAGER, dry_run=True)
                if not answer.ok and _DRY in answer.message:
                    unasked.append(f"{manifest.ref} (a webhook does not support dry run)")
                    continue
                body = accepted(answer, f"{manifest.ref}").body
                ignored = _ignored(manifest)
                found += [
                    f"{manifest.ref} {p}: {w!r} is {v!r}"
                    for p, w, v in _compared(manifest.body, body, "")
                    if p not in ignored
                ]
            _none(found)
            case.said = f"{len(served)} objects" + (f"; not asked: {', '.join(unasked)}" if unasked else "")
    with stage.case("a field that the server does not know is refused", negative=True) as case:
        body = copy.deepcopy(next(m.body for m in stage.tree.manifests if m.kind == "LimitRange"))
        body["spec"]["limitz"] = []
        case.said = refused(stage.client.apply(body, dry_run=True), "it", "limitz").message[:200]


_DRY = "does not support dry run"


def _none(found: list[str]) -> None:
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise WrongAnswerError("; ".join(found[:_SHOWN]) + more)


def _moved(stage: Stage, manifest: Manifest) -> Iterator[str]:
    """What a second apply changes. Where a controller owns fields that Git holds, too, Argo CD asks a dry run first."""
    target = Target.of(manifest.body)
    before = accepted(stage.client.get(target), f"{manifest.ref}").body
    ignored = _ignored(manifest)
    answer = stage.client.apply(manifest.body, manager=MANAGER, dry_run=bool(ignored))
    after = accepted(answer, f"{manifest.ref} again").body
    for path, new, old in _compared(_told(after), _told(before), ""):
        if path not in ignored:
            yield f"{manifest.ref} {path}: {old!r} becomes {new!r}"


def _told(body: Body) -> Body:
    """What somebody wrote: no status, nothing that the server counts, nothing that a controller notes."""
    meta = {key: body["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
    return {**{key: value for key, value in body.items() if key not in ("status", "metadata")}, "metadata": meta}


def _ignored(manifest: Manifest) -> str:
    return str((manifest.body["metadata"].get("annotations") or {}).get(IGNORE, ""))


def _differences(stage: Stage, manifest: Manifest) -> Iterator[str]:
    """Fields of the written object that the server holds otherwise, but for those that Argo CD is told to ignore."""
    body = accepted(stage.client.get(Target.of(manifest.body)), f"{manifest.ref}").body
    ignored = _ignored(manifest)
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
    elif wanted != live and not (live is None and not wanted):  # the server leaves out what is empty, as Argo CD does
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
    faults=(Fault("a quantity spelled otherwise than the server spells it", _spelled, "read back as written"),),
    elsewhere=as_dry_run,
)
