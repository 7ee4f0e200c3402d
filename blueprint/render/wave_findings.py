"""The words of the findings about order; which one is due is decided in `order` and `graph`."""

from __future__ import annotations

from collections.abc import Sequence

from blueprint.catalog.gating import Gate
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.render.plan import Item


def _at(item: Item) -> str:
    return f"{item.manifest.ref} ({item.manifest.source})"


def unmet(item: Item, target: Ref) -> Finding:
    """A stated need that nothing in the plan and nobody outside meets."""
    ref = item.manifest.ref
    return Finding(
        "WAV104",
        f"{ref} needs {target}, which nothing renders and nobody is said to bring",
        source=item.manifest.source,
        object=ref,
        fix=f"render {target}, or declare that it is brought from outside",
    )


def circle(items: Sequence[Item], cycle: Sequence[int]) -> Finding:
    """Objects that need each other in a circle; each needs the next one."""
    first = items[cycle[0]]
    path = " needs ".join(_at(items[number]) for number in [*cycle, cycle[0]])
    return Finding(
        "WAV101",
        f"these objects need each other in a circle: {path}",
        source=first.manifest.source,
        object=first.manifest.ref,
        fix="take away one of these needs",
    )


def application_circle(items: Sequence[Item], parts: Sequence[str], hops: Sequence[tuple[int, int]]) -> Finding:
    """Applications that need each other in a circle, though no object does; a hop is (needed, needing)."""
    steps = [
        f"{parts[needing]} needs {parts[needed]}, because {_at(items[needing])} needs {_at(items[needed])}"
        for needed, needing in hops
    ]
    first = items[hops[0][1]]
    return Finding(
        "WAV102",
        f"these Applications need each other in a circle: {'; '.join(steps)}",
        source=first.manifest.source,
        object=first.manifest.ref,
        fix="put the objects of one of these needs into the same Application",
    )


def does_not_wait(items: Sequence[Item], needed: int, needing: int, count: int, gate: Gate) -> Finding:
    """Somebody waits for a kind whose health Argo CD cannot judge."""
    target, user = items[needed].manifest.ref, items[needing]
    kind = f"{target.kind}.{target.group}" if target.group else target.kind
    more = f" and {count - 1} more" if count > 1 else ""
    known = gate is Gate.BLIND
    why = (
        f"Argo CD has no health check for {kind} and counts it as done at once"
        if known
        else f"it is not known whether Argo CD can judge the health of {kind}"
    )
    return Finding(
        "WAV103",
        f"{user.manifest.ref} does not wait for {target}{more}: {why}",
        source=user.manifest.source,
        severity=Severity.WARNING if known else Severity.NOTE,
        confidence=Confidence.CERTAIN if known else Confidence.LIKELY,
        object=user.manifest.ref,
        fix="render the health script shipped for this kind into argocd-cm"
        if known
        else f"give Argo CD a health script for {kind}",
    )


def object_waits(items: Sequence[Item], needed: int, needing: int, reason: str) -> Finding:
    """An object waits inside its Application for one that may never become Healthy by itself."""
    target, user = items[needed].manifest.ref, items[needing]
    return Finding(
        "WAV105",
        f"{user.manifest.ref} would wait for {target}, which may never become Healthy by itself: "
        f"{reason or 'it comes with one that can stall'}",
        source=user.manifest.source,
        object=user.manifest.ref,
        fix=f"do not make it need {target.kind} {target.name}, or put what can stall into an Application of its own",
    )


def application_waits(
    items: Sequence[Item], parts: Sequence[str], edge: tuple[int, int], stalled: int, reason: str
) -> Finding:
    """An Application waits for one that may stay Suspended or Progressing."""
    needed, needing = edge
    user = items[needing]
    cause = (
        f"{items[stalled].manifest.ref} in it can stall: {reason}" if stalled >= 0 else "it waits for such a one itself"
    )
    return Finding(
        "WAV106",
        f"Application {parts[needing]} would wait for {parts[needed]}, which may never become Healthy by itself: "
        f"{cause} (the need is {user.manifest.ref} → {items[needed].manifest.ref})",
        source=user.manifest.source,
        object=user.manifest.ref,
        fix=f"move {items[needed].manifest.ref} out of {parts[needed]}, or put what can stall into one of its own",
    )


def too_large(item: Item, count: int, size: int, pieces: int) -> Finding:
    """An Application with more objects or bytes than Argo CD handles well; it was cut."""
    name = item.application
    return Finding(
        "WAV107",
        f"Application {name} has {count:,} objects ({size / 2**20:.1f} MiB) and was cut into {pieces}: "
        "a new object can move others to another part",
        source=item.manifest.source,
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
        fix="divide it by team or namespace",
    )


def applications_do_not_gate(items: Sequence[Item], parts: Sequence[str], needed: int, needing: int) -> Finding:
    """Applications are ordered, and Argo CD has no health check for Applications."""
    user = items[needing]
    return Finding(
        "WAV108",
        f"Application {parts[needing]} does not wait for {parts[needed]}: Argo CD has had no health check for "
        "Applications since 1.8, so all are written within seconds",
        source=user.manifest.source,
        object=user.manifest.ref,
        fix="render the shipped script resource.customizations.health.argoproj.io_Application into argocd-cm",
    )
