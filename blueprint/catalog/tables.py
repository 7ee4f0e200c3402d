"""The tables of facts: YAML files beside this package, each row with its source, read once."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml_rs


@cache
def table(name: str) -> dict[str, Any]:
    """One table by its name without the ending (`gpus`). Callers must not change it.

    Raises FileNotFoundError for a name that the package does not ship.
    """
    text = resources.files("blueprint.catalog").joinpath(f"data/{name}.yaml").read_text("utf-8")
    read = yaml_rs.loads(text, parse_datetime=False)
    assert isinstance(read, dict)  # noqa: S101 - our own files
    return read
