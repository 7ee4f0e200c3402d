"""Examples of rules as `check` reads them, and tests by rule."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check.read import Reading, read_bytes
from tests.conformance.certain.table import Case


def ids(found: list[Case]) -> Any:
    """A parametrisation by rule."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.code) for case in found])


def reading(text: str) -> Reading:
    """An example as `check` reads it."""
    found = Reading()
    read_bytes(text.encode(), "shown/queues/objects.yaml", found)
    return found


@cache
def pack() -> SchemaPack:
    """The schema pack that is shipped."""
    return SchemaPack.shipped()
