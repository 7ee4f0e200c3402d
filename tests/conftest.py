"""Options and fixtures that several rooms use."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# CI draws the same examples each time; by hand each run draws new ones.
settings.register_profile("ci", derandomize=True, database=None)
if os.environ.get("BLUEPRINT_CONFORMANCE") == "required":
    settings.load_profile("ci")

# Hundreds of tests start the command line: its modules are compiled once, not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What renderings told is kept in a place of our own: nothing of a test comes from, or goes to, the user's cache.
if "BLUEPRINT_CACHE" not in os.environ:
    os.environ["BLUEPRINT_CACHE"] = tempfile.mkdtemp(prefix="blueprint-cache-")
    atexit.register(shutil.rmtree, os.environ["BLUEPRINT_CACHE"], ignore_errors=True)

REPOSITORY = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write the golden trees again instead of comparing")


@pytest.fixture
def repository() -> Path:
    """The top of the repository, which is the reference platform too."""
    return REPOSITORY
