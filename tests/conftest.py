"""Options and fixtures that several rooms use."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write the golden trees again instead of comparing")


@pytest.fixture
def repository() -> Path:
    """The top of the repository, which is the reference platform too."""
    return REPOSITORY
