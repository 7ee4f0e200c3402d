"""Errors: what a person reads, and the exit code."""

from __future__ import annotations

from blueprint.errors import BlueprintError, EnvironmentLacks, UsageError


def test_diagnostics_say_where_what_and_what_to_do() -> None:
    error = UsageError("there is no such folder", where="x/y", hint="start one")
    assert error.diagnostics() == "x/y: there is no such folder\n  hint: start one"
    assert BlueprintError("alone").diagnostics() == "alone"


def test_exit_codes() -> None:
    assert (UsageError("").exit_code, EnvironmentLacks("").exit_code) == (2, 3)
