"""The one base error. Mistakes in what users write are findings; only a broken environment or wrong usage raises."""

from __future__ import annotations


class BlueprintError(Exception):
    """Something that ends a run: `exit_code` for the shell, `diagnostics()` for a person."""

    exit_code = 2

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def diagnostics(self) -> str:
        """One to three lines: where, what, and what to do about it."""
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  hint: {self.hint}" if self.hint else head


class UsageError(BlueprintError):
    """The call is wrong: a path that is not there, options that exclude each other."""


class EnvironmentLacks(BlueprintError):
    """The machine lacks something: a program, a permission, space on the disk."""

    exit_code = 3
