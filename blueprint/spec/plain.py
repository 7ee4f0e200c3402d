"""Credentials that stand in specs, where everybody who reads the repository reads them."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint import plaintext
from blueprint.finding import Confidence, Finding, Severity
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform
from blueprint.spec.training import TrainingJob

_FIX = "take it out, make it invalid, and let the pod read its successor from a Secret"


def plain(platform: Platform) -> Iterator[Finding]:
    """SPC226: variables and arguments that hold a credential; the finding never holds it."""
    for job in platform.training_jobs:
        yield from _variables(job, "spec.env", job.model.spec.env)
        yield from _arguments(job, "spec.args", job.model.spec.args)
        yield from _arguments(job, "spec.command", job.model.spec.command)
    for service in platform.services:
        yield from _variables(service, "spec.engine.env", service.model.spec.engine.env)
        yield from _arguments(service, "spec.engine.args", service.model.spec.engine.args)


def _variables(
    document: Document[TrainingJob] | Document[InferenceService], at: str, env: dict[str, str]
) -> Iterator[Finding]:
    for name, value in env.items():
        path = f"{at}.{name}"
        if not document.knows(path):
            continue
        if what := plaintext.by_form(value):
            yield Finding("SPC226", f"{name} holds {what} in plain text", document.locate(path), path=path, fix=_FIX)
        elif plaintext.by_name(name, value):
            message = f"{name} is called like a credential and holds its value in plain text"
            at_value, sure = document.locate(path), Confidence.LIKELY
            yield Finding("SPC226", message, at_value, Severity.WARNING, sure, path=path, fix=_FIX)


def _arguments(
    document: Document[TrainingJob] | Document[InferenceService], at: str, given: tuple[str, ...]
) -> Iterator[Finding]:
    for index, value in enumerate(given):
        path = f"{at}[{index}]"
        if document.knows(path) and (what := plaintext.by_form(value)):
            message = f"an argument holds {what} in plain text"
            yield Finding("SPC226", message, document.locate(path), path=path, fix=_FIX)
