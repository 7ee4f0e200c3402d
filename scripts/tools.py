"""Build the Go programs of `tools/programs.toml` once, into a folder keyed by what goes into them.

    python scripts/tools.py build                       the conformance group
    python scripts/tools.py build helm kwok             by name
    python scripts/tools.py build --group bench         by group
    python scripts/tools.py list

A program lands at `.tools/bin/<name>@<version>-<key>`, and the link `.tools/bin/<name>` points at the newest one.
The key is a digest of go.mod, go.sum, our own sources, toolchain, flags and platform: a present file is never rebuilt,
and a changed pin never reuses an old one. BLUEPRINT_TOOLS names another folder than `.tools`. Exit codes: 0 built,
1 a build failed, 2 usage, 3 Go is missing. Needs nothing but Python 3.11 and, to build, Go.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLCHAIN = "go1.26.8"
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
NO_GO = "tools: Go is missing; install Go 1.21 or newer (https://go.dev/dl), which fetches the pinned toolchain"


@dataclass(frozen=True)
class Program:
    """One row of the table, with the version that its go.mod pins."""

    name: str
    module: str
    package: str
    group: str
    source: Path
    version: str
    toolchain: str
    ldflags: str
    environment: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """Ten hex digits over everything that decides the bytes of the program."""
        digest = hashlib.sha256()
        for part in (
            self.package,
            self.toolchain,
            self.ldflags,
            str(dict(self.environment)),
            sys.platform,
            platform.machine(),
        ):
            digest.update(part.encode() + b"\0")
        own = sorted((self.source / self.package).glob("*.go")) if self.package.startswith("./") else []
        for file in (self.source / "go.mod", self.source / "go.sum", *own):
            digest.update(file.read_bytes() + b"\0")
        return digest.hexdigest()[:10]

    def path(self, bin_dir: Path) -> Path:
        """Where the built program lies."""
        return bin_dir / f"{self.name}@{self.version}-{self.key}"


def load(table: Path) -> dict[str, Program]:
    """Read the table; a module that its go.mod does not require is a mistake in this repository and ends the run."""
    programs = {}
    for name, row in tomllib.loads(table.read_text("utf-8")).items():
        source = table.parent / row["folder"]
        required = rf"^(?:require )?\s*{re.escape(row['module'])} (v\S+)"
        found = re.search(required, (source / "go.mod").read_text("utf-8"), re.MULTILINE)
        if found is None:
            sys.exit(f"tools: {source / 'go.mod'} does not require {row['module']}")
        version = found[1]
        ldflags = f"-s -w {row.get('ldflags', '')}".strip().replace("{version}", version)
        toolchain = row.get("toolchain", TOOLCHAIN)
        # Programs are linked statically, but for those around a library of C: they need a C compiler, too.
        environment = ENVIRONMENT | ({"CGO_ENABLED": "1"} if row.get("cgo") else {})
        places = (row["module"], row["package"], row["group"], source)
        programs[name] = Program(name, *places, version, toolchain, ldflags, tuple(environment.items()))
    return programs


def build(program: Program, bin_dir: Path) -> str:
    """Build one program unless it is there; returns what to say. Raises CalledProcessError with Go's own words."""
    target = program.path(bin_dir)
    said = "present"
    if not target.exists():
        started = time.monotonic()
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        command = ["go", "build", "-trimpath", "-mod=readonly", "-ldflags", program.ldflags, "-o", str(partial)]
        environment = os.environ | dict(program.environment) | {"GOTOOLCHAIN": program.toolchain}
        try:
            subprocess.run(
                [*command, program.package],
                cwd=program.source,
                env=environment,
                check=True,
                text=True,
                capture_output=True,
            )
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        said = f"built in {time.monotonic() - started:.0f} s, {target.stat().st_size / 1e6:.0f} MB"
    link = bin_dir / f".{program.name}.{os.getpid()}"
    link.symlink_to(target.name)
    link.replace(bin_dir / program.name)
    return said


def build_all(programs: list[Program], bin_dir: Path) -> int:
    """Build in order, one line each; the first failure ends the run."""
    if shutil.which("go") is None and not all(p.path(bin_dir).exists() for p in programs):
        print(NO_GO, file=sys.stderr)
        return 3
    bin_dir.mkdir(parents=True, exist_ok=True)
    for program in programs:
        print(f"{program.name} {program.version} ", end="", flush=True)
        try:
            print(build(program, bin_dir), flush=True)
        except subprocess.CalledProcessError as error:
            print("failed", flush=True)
            print("\n".join(error.stderr.splitlines()[-20:]), file=sys.stderr)
            return 1
    return 0


def show(programs: list[Program], bin_dir: Path) -> int:
    """Print the table of programs and which of them are built."""
    rows = [("NAME", "VERSION", "GROUP", "BUILT", "PACKAGE")]
    rows += [(p.name, p.version, p.group, "yes" if p.path(bin_dir).exists() else "no", p.package) for p in programs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    programs = load(ROOT / "tools" / "programs.toml")
    groups = sorted({p.group for p in programs.values()})
    parser = argparse.ArgumentParser(prog="tools.py", description="Build the pinned Go programs.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="names, versions, and what is built")
    building = verbs.add_parser("build", help="build by name or by group (conformance, where nothing is named)")
    building.add_argument("names", nargs="*", metavar="NAME")
    building.add_argument("--group", action="append", default=[], choices=groups)
    options = parser.parse_args(arguments)
    bin_dir = Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools") / "bin"
    if options.verb == "list":
        return show(list(programs.values()), bin_dir)
    if unknown := [name for name in options.names if name not in programs]:
        building.error(f"no program {', '.join(unknown)}; there are {', '.join(programs)}")
    wanted = options.group if options.group or options.names else ["conformance"]
    return build_all([p for p in programs.values() if p.name in options.names or p.group in wanted], bin_dir)


if __name__ == "__main__":
    sys.exit(main())
