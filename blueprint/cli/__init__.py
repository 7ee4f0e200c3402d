"""The command line: each verb is one call, and an exit code.

0 fine · 1 findings that fail · 2 wrong input or usage · 3 the environment lacks something.
One module per group of verbs; `app.py` holds what they share, and the order in which `--help` lists them.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from pathlib import Path

from typer.core import TyperGroup

# Each registers its verbs.
from blueprint.cli import (  # noqa: F401
    attesting,
    conforming,
    credentials,
    delivering,
    imaging,
    judging,
    making,
    picturing,
    reviewing,
    simulating,
    upgrading,
)
from blueprint.cli.app import Output, app
from blueprint.errors import BlueprintError, EnvironmentLacks

__all__ = ["Output", "app", "main"]

# What `--help` lists, in the order in which a platform meets the verbs.
VERBS = (
    *("new", "render", "check", "explain", "simulate", "review", "why", "commit", "promote"),
    *("graph", "handbook", "upgrade", "images", "sign", "verify", "credential", "conform", "rules", "version"),
)


class _InOrder(TyperGroup):
    """Verbs and groups of verbs in one order; left alone, groups come last."""

    def list_commands(self, ctx: object) -> list[str]:
        return sorted(self.commands, key=VERBS.index)


app.info.cls = _InOrder


def main() -> None:
    """Run the command line; every known failure is one message, never a traceback."""
    gc.disable()  # a run is short, and what it makes lives to its end: looking for garbage finds none
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by the caller (`>&-`): a file of the tree must not become our standard output.
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows "?"; it must not end the run.
            stream.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="blueprint")
        finally:
            sys.stdout.flush()
    except BlueprintError as error:
        print(f"blueprint: {error.diagnostics()}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"blueprint: {where}{error.strerror or error}", file=sys.stderr)
        _drop_output()
        sys.exit(EnvironmentLacks.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _drop_output() -> None:
    """Nobody can read our output (`| head`, a full disk): the interpreter must not complain about it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
