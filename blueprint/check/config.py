"""`blueprint.yaml`: what a repository says about itself, so that checking it needs no options.

    versions: {kubernetes: "1.35", kueue: 0.17.0}      # what its clusters run
    closed: [Namespace, LocalQueue.kueue.x-k8s.io]     # kinds of which every object is here; or true, for all
    inventory: ops/nodes.yaml                          # the nodes, for rules that count them
    exclude: [vendor/**]                               # files to pass over
    ignore:
      - {rules: [IMG104], paths: [legacy/**], reason: our registry never moves a tag}
    baseline: .blueprint-baseline.json                 # findings that are known

Paths count from the folder of the file.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError, field_validator

from blueprint.catalog.components import components
from blueprint.catalog.rules import rules
from blueprint.check.documents import load_yaml
from blueprint.check.globs import glob
from blueprint.check.locate import field_path, locate
from blueprint.check.scalars import Unreadable
from blueprint.errors import UsageError
from blueprint.finding import Finding, Source

NAME = "blueprint.yaml"
EVERY_KIND = "*"

Text = Annotated[StrictStr, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ignore(_Model):
    """Rules that do not count, in some files or everywhere, and why."""

    rules: tuple[Text, ...] = Field(min_length=1)
    paths: tuple[Text, ...] = ("**",)
    reason: Text

    @field_validator("rules")
    @classmethod
    def _exist(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return codes(value)


class Config(_Model):
    """What the file says; what it leaves out is empty."""

    versions: dict[str, Text] = {}
    closed: StrictBool | tuple[Text, ...] = ()
    inventory: StrictStr = ""
    exclude: tuple[Text, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    baseline: StrictStr = ""

    @field_validator("versions")
    @classmethod
    def _known(cls, value: dict[str, str]) -> dict[str, str]:
        known = ["kubernetes", "vllm", *(component.name for component in components())]
        for name in value:
            if name not in known:
                raise ValueError(f"no component is called {name}; {_close(name, known)}")
        return value

    @property
    def closed_kinds(self) -> tuple[str, ...]:
        """Kinds of which every object is in the tree, EVERY_KIND for all."""
        if isinstance(self.closed, bool):
            return (EVERY_KIND,) if self.closed else ()
        return self.closed

    def ignores(self, finding: Finding) -> bool:
        """Whether a finding does not count."""
        file = finding.source.file if finding.source else ""
        return any(
            finding.code.startswith(each.rules) and any(glob(pattern, file, "/") for pattern in each.paths)
            for each in self.ignore
        )


def codes(asked: Iterable[str]) -> tuple[str, ...]:
    """Codes or the beginnings of codes, in capitals. Raises ValueError for one that no rule starts with."""
    found = tuple(code.upper() for code in asked)
    for code in found:
        if not any(known.startswith(code) for known in rules()):
            raise ValueError(f"no rule has the code {code}; {_close(code, list(rules()))}")
    return found


def find(paths: Sequence[str]) -> Path | None:
    """The file that counts: in the first folder that is checked and has one, or in the current folder."""
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    return next((folder / NAME for folder in (*folders, Path()) if (folder / NAME).is_file()), None)


def load(path: Path) -> Config:
    """The configuration in a file, with its paths made to count from the current folder. Raises UsageError."""
    try:
        text = path.read_text("utf-8")
        body = load_yaml(text)[0]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the configuration: {error}", where=str(path)) from None
    except Unreadable as problem:
        where = f"{path}:{problem.remark.line + 1}"
        raise UsageError(problem.remark.message, where=where, hint=problem.remark.fix) from None
    try:
        config = Config.model_validate({} if body is None else body)
    except ValidationError as error:
        raise _wrong(path, text, error) from None
    return _placed(config, path.parent)


def _placed(config: Config, folder: Path) -> Config:
    """The same with paths that count from the current folder."""

    def placed(name: str) -> str:
        return os.path.normpath(folder / name).replace(os.sep, "/") if name else ""

    ignore = tuple(each.model_copy(update={"paths": tuple(map(placed, each.paths))}) for each in config.ignore)
    update = {
        "inventory": placed(config.inventory),
        "exclude": tuple(map(placed, config.exclude)),
        "ignore": ignore,
        "baseline": placed(config.baseline),
    }
    return config.model_copy(update=update)


def _wrong(path: Path, text: str, error: ValidationError) -> UsageError:
    errors = error.errors()
    # Of a union every alternative tells, with its name in the place: the one that went deepest knows most.
    first = max((each for each in errors if each["loc"][:1] == errors[0]["loc"][:1]), key=lambda each: len(each["loc"]))
    steps = [
        step for step in first["loc"] if not (isinstance(step, str) and ("[" in step or step in ("bool", "tuple")))
    ]
    place = locate(text, Source(str(path), 1, 1), field_path(*steps)) if steps else Source(str(path))
    message = first["msg"].removeprefix("Value error, ")
    hint = ""
    if first["type"] == "extra_forbidden":
        message = f"unknown field {steps[-1]}"
        hint = _close(str(steps[-1]), [*Config.model_fields, *Ignore.model_fields])
    elif first["type"] == "string_type" and isinstance(first["input"], (int, float)):
        hint = f'quote it: "{first["input"]}"'
    elif ";" in message:
        message, _, hint = (part.strip() for part in message.partition(";"))
    named = f"{field_path(*steps)}: " if steps and first["type"] != "extra_forbidden" else ""
    return UsageError(f"{named}{message[0].lower()}{message[1:]}", where=str(place), hint=hint)


def _close(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, 1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known[:12])}"
