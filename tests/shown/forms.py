"""What examples of pages give that are no sessions: specs, templates, and what is seen of a cluster."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from blueprint.finding import Finding
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from blueprint.spec.load import load
from tests.attest.deployment import NOW, Deployment

PLATFORM = Path(__file__).parents[1] / "bad" / "platform"
THEN = datetime(2026, 12, 1, 12, tzinfo=UTC)
"""The moment at which the clusters of pages are looked at."""
_HEAD = re.compile(r"^# ([\w.@-]+(?:/[\w.@-]+)*)$", re.MULTILINE)
_TIME = re.compile(r"\b2026-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SECONDS = re.compile(r"(?<=seconds: )\d{10}")


def files(text: str) -> dict[str, str]:
    """The files of an example by their names, which stand above them as comments."""
    _, *parts = _HEAD.split(text)
    return dict(zip(parts[::2], (part.lstrip("\n") for part in parts[1::2]), strict=True))


def specs(text: str, folder: Path, *, whole: bool) -> list[Finding]:
    """What is found in specs that are put over a small platform; `whole` renders it, too."""
    shutil.copytree(PLATFORM, folder)
    _put(text, folder)
    found = list(load(folder).findings)
    if not whole:
        return found
    return list(render_platform(folder, folder / "rendered", check_only=True).report.findings)


def templates(text: str, folder: Path) -> list[Finding]:
    """What is found where a template is put into the smallest platform, and it is rendered."""
    copy_example("minimal", folder)
    _put(text, folder)
    return list(render_platform(folder, folder / "rendered", check_only=True).report.findings)


def _put(text: str, folder: Path) -> None:
    found = files(text)
    assert found, "no line says which file it is"
    for name, part in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(part)


def cluster(text: str, folder: Path) -> list[str]:
    """The codes for which no credential is given, where a sound cluster has the objects of an example instead.

    `# rendered` says what the tree renders, `# audit.log` what the API server wrote down, `# store` which files lie in
    the object store (all but these are lost), `# volumes` what Velero wrote of volumes, and `# objects` what is there.
    """
    deployment = Deployment(folder / "store")
    for name, part in files(_today(text)).items():
        match name:
            case "rendered":
                _over(deployment.tree, part)
            case "objects":
                _there(deployment.objects, part)
            case "audit.log":
                deployment.audit = folder / "audit.log"
                deployment.audit.write_text(part)
            case "volumes":
                deployment.volumes = json.loads(part)
            case "store":
                deployment.write_store()
                assert deployment.store is not None
                kept = {line.strip() for line in part.splitlines()}
                for path in deployment.store.rglob("*"):
                    if path.is_file() and path.relative_to(deployment.store).as_posix() not in kept:
                        path.unlink()
            case _:
                raise AssertionError(name)
    return [refused.code for refused in deployment.judge()[0].refusals]


def _today(text: str) -> str:
    """The example with its times as long ago as they were then."""
    ago = NOW - THEN

    def moved(match: re.Match[str]) -> str:
        return f"{datetime.fromisoformat(match[0]) + ago:%Y-%m-%dT%H:%M:%SZ}"

    return _SECONDS.sub(lambda match: str(int(match[0]) + int(ago.total_seconds())), _TIME.sub(moved, text))


def _over(held: list[dict[str, Any]], text: str) -> None:
    """Put objects in the place of those of their kind, namespace and name, or beside them."""
    there = {str(at): body for at, body in enumerate(held)}
    _there(there, text)
    held[:] = there.values()


def _there(held: dict[str, dict[str, Any]], text: str) -> None:
    for number, body in enumerate(map(_texts, yaml.safe_load_all(text))):
        name = next((name for name, old in held.items() if _key(old) == _key(body)), f"shown {number}")
        held[name] = body


def _texts(value: Any) -> Any:
    """Times as texts, as JSON has them."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, dict):
        return {key: _texts(part) for key, part in value.items()}
    return [_texts(part) for part in value] if isinstance(value, list) else value


def _key(body: dict[str, Any]) -> tuple[str, str | None, str]:
    return body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]
