"""How long the kubelet waits: probes, and the time between a pod's end and its kill. All times are seconds.

Source: k8s.io/kubernetes@v1.35.4 pkg/kubelet/prober/worker.go, pkg/apis/core/v1/defaults.go (SetDefaults_Probe).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blueprint.check.shapes import Body, items, known, mapping, maps, number, placeholder, text

HTTP = "httpGet"
_ACTIONS = (HTTP, "tcpSocket", "grpc", "exec")


def patience(probe: Body) -> int | None:
    """Seconds until a probe that always fails has failed for good, at the least; None where it is not known."""
    if any(placeholder(probe.get(key)) for key in ("initialDelaySeconds", "periodSeconds", "failureThreshold")):
        return None
    delay = number(probe.get("initialDelaySeconds"), 0) or 0
    period = number(probe.get("periodSeconds"), 10) or 10
    failures = number(probe.get("failureThreshold"), 3) or 3
    return delay + period * failures


def acts(probe: Body) -> bool:
    """Whether a probe does anything."""
    return any(action in probe for action in _ACTIONS)


def port_of(probe: Body, container: Body) -> int | None:
    """The port that an HTTP or TCP probe asks, by number; None where a name leads nowhere or is not known."""
    for action in (HTTP, "tcpSocket"):
        if action in probe:
            return resolve_port(mapping(probe[action]).get("port"), container)
    return None


def resolve_port(port: object, container: Body) -> int | None:
    """A port by number or by the name of a container port."""
    if isinstance(port, int) and not isinstance(port, bool):
        return port
    for row in maps(container.get("ports")):
        if known(port) and row.get("name") == port:
            return number(row.get("containerPort"))
    return int(text(port)) if text(port).isdigit() else None


def pre_stop(container: Body) -> int:
    """Seconds that the preStop hook takes at the least: those of a sleep that is written there."""
    hook = mapping(mapping(container.get("lifecycle")).get("preStop"))
    if slept := number(mapping(hook.get("sleep")).get("seconds")):
        return slept
    words = " ".join(text(word) for word in items(mapping(hook.get("exec")).get("command")))
    return max((int(found) for found in re.findall(r"\bsleep\s+(\d+)\b", words)), default=0)


def grace(spec: Body) -> int | None:
    """terminationGracePeriodSeconds, 30 where it is not given; None where it is not known."""
    value = spec.get("terminationGracePeriodSeconds")
    return 30 if value is None else number(value)


def mounted(spec: Body, container: Body, path: str) -> Mapping[str, object] | None:
    """The volume that is mounted at a path or above it, nearest first; None where there is none."""
    best: tuple[int, str] = (0, "")
    for row in maps(container.get("volumeMounts")):
        at = text(row.get("mountPath")).rstrip("/")
        if at and (path == at or path.startswith(f"{at}/")):
            best = max(best, (len(at), text(row.get("name"))))
    return next((volume for volume in maps(spec.get("volumes")) if best[1] and volume.get("name") == best[1]), None)
