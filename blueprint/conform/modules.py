"""Files that projects ship in their Go modules: CustomResourceDefinitions, webhook manifests, KWOK's stages."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml_rs

from blueprint.errors import EnvironmentLacks


@cache
def tools() -> Path:
    """The folder `tools/` of this repository, where every program and module is pinned.

    Raises EnvironmentLacks where blueprint was installed without it.
    """
    here = Path.cwd()
    for folder in (Path(__file__).parents[2], here, *here.parents):
        if (folder / "tools" / "programs.toml").is_file():
            return folder / "tools"
    raise EnvironmentLacks(
        "the pinned programs are not here", hint="run it in a clone of blueprint's repository, which holds tools/"
    )


@cache
def folder(module: str, pinned: str) -> Path:
    """Where the files of a Go module lie, at the version of `tools/<pinned>/go.mod`; fetched where they do not.

    Raises EnvironmentLacks without Go, or where the module cannot be fetched.
    """
    environment = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    command = ["go", "mod", "download", "-json", module]
    try:
        done = subprocess.run(
            command, cwd=tools() / pinned, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
    except FileNotFoundError:
        raise EnvironmentLacks("Go is missing, which finds the modules", hint="https://go.dev/dl") from None
    found = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in found:
        raise EnvironmentLacks(f"the Go module {module} cannot be fetched: {found.get('Error') or done.stderr[:200]}")
    return Path(found["Dir"])


@cache
def sources() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The Go modules that ship the CustomResourceDefinitions of the schema pack, with the folders that hold them.

    All are pinned in `tools/crds/go.mod`. Raises EnvironmentLacks where blueprint was installed without `tools/`.
    """
    table = tomllib.loads((tools().parent / "scripts" / "schemas.toml").read_text("utf-8"))
    return tuple((row["module"], tuple(row["crds"])) for row in table["source"] if "crds" in row)


def documents(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Every YAML document of the files that is a map; none of these files is a list at its top."""
    for file in files:
        found: Any = yaml_rs.loads(file.read_text("utf-8"), parse_datetime=False)
        yield from (
            document for document in (found if isinstance(found, list) else [found]) if isinstance(document, dict)
        )


def crds(
    module: str,
    pinned: str,
    folders: Sequence[str],
    kinds: Collection[tuple[str, str]] | None = None,
    *,
    kind: str = "",
) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions in folders of a module, of the kinds (group, kind) or the one `kind` given.

    A file whose text names none of them is not parsed: some modules ship megabytes.
    """
    root = folder(module, pinned)
    files = [file for name in folders for file in sorted((root / name).glob("*.yaml"))]
    if kinds is not None:
        files = [file for file in files if _names_one(file.read_text("utf-8"), kinds)]
    found = [body for body in documents(files) if body.get("kind") == "CustomResourceDefinition"]
    if kinds is None:
        return [crd for crd in found if kind in ("", crd["spec"]["names"]["kind"])]
    return [crd for crd in found if (crd["spec"]["group"], crd["spec"]["names"]["kind"]) in kinds]


def _names_one(text: str, kinds: Collection[tuple[str, str]]) -> bool:
    return any(f"kind: {kind}\n" in text and f"group: {group}\n" in text for group, kind in kinds)
