#!/usr/bin/env python3
"""Regenerate blueprint/catalog/data/argocd.yaml from the sources of Argo CD and of its GitOps engine.

    scripts/argocd_facts.py [--check]

Needs Go, which brings the module archives; nothing is compiled. `--check` compares instead of writing.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml_rs

VERSION = "v3.6.1"
ARGOCD = f"github.com/argoproj/argo-cd/v3@{VERSION}"
ENGINE = f"github.com/argoproj/argo-cd/gitops-engine/v3@{VERSION}"
TABLE = Path(__file__).resolve().parent.parent / "blueprint/catalog/data/argocd.yaml"
STATUSES = ("Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown")


@dataclass(frozen=True)
class Module:
    """A Go module's archive: files by their path inside the module."""

    name: str
    archive: zipfile.ZipFile

    @classmethod
    def get(cls, name: str) -> Module:
        """Let Go bring the archive; a module that wants a newer Go than the local one is an error with the archive."""
        ran = subprocess.run(["go", "mod", "download", "-json", name], check=False, capture_output=True, text=True)
        path = json.loads(ran.stdout or "{}").get("Zip")
        if not path:
            raise SystemExit(f"Go did not bring {name}: {ran.stdout}{ran.stderr}")
        return cls(name, zipfile.ZipFile(io.BytesIO(Path(path).read_bytes())))

    def text(self, path: str) -> str:
        """One file."""
        return self.archive.read(f"{self.name}/{path}").decode()

    def files(self, pattern: str) -> Iterator[tuple[str, str]]:
        """(path, text) of the files whose path matches the whole pattern, sorted."""
        for full in sorted(self.archive.namelist()):
            path = full.removeprefix(f"{self.name}/")
            if re.fullmatch(pattern, path):
                yield path, self.archive.read(full).decode()


def lua_checks(argocd: Module) -> Iterator[str]:
    """The scripts under resource_customizations; `_` in a folder's name is a wildcard (util/lua/lua.go)."""
    for path, script in argocd.files(r"resource_customizations/.*/health\.lua"):
        group, kind = (part.replace("_", "*") for part in path.split("/")[1:3])
        code = re.sub(r"--[^\n]*", "", re.sub(r"--\[\[.*?\]\]", "", script, flags=re.DOTALL))
        said = re.findall(r"""\bstatus["'\]]*\s*=(?!=)\s*([^\n,}]+)""", code)
        computed = any(not re.match(r"""\s*["'{]""", value) for value in said)
        found = {s for s in STATUSES for v in ([code] if computed else said) if re.search(rf"""["']{s}["']""", v)}
        yield check(group, kind, "lua", found, computed)


def go_checks(engine: Module) -> Iterator[str]:
    """The functions that pkg/health/health.go chooses by group and kind."""
    constants = dict(re.findall(r'(\w+Kind)\s*=\s*"(\w+)"', engine.text("pkg/utils/kube/kube.go")))
    chooser = engine.text("pkg/health/health.go").partition("func GetHealthCheckFunc")[2]
    functions = {
        name: {s for s in STATUSES if f"HealthStatus{s}" in source}
        for _, source in engine.files(r"pkg/health/health_\w+\.go")
        for name in re.findall(r"^func (get\w+Health)\(", source, re.MULTILINE)
    }
    group = kind = ""
    for line in chooser.splitlines():
        if match := re.match(r'\tcase "(.*)":', line):
            group = match[1]
        elif match := re.search(r'(?:case |gvk\.Kind == )(?:kube\.(\w+)|"(\w+)")', line):
            kind = constants[match[1]] if match[1] else match[2]
        elif match := re.search(r"return (get\w+Health)$", line):
            yield check(group, kind, "go", functions[match[1]], False)


def check(group: str, kind: str, by: str, statuses: set[str], computed: bool) -> str:
    """One row of the table."""
    ordered = [s for s in STATUSES if s in statuses]
    extra = ", computed: true" if computed else ""
    return (
        f"- {{group: {json.dumps(group)}, kind: {json.dumps(kind)}, by: {by}, statuses: [{', '.join(ordered)}]{extra}}}"
    )


def kind_order(engine: Module) -> list[str]:
    """The kinds that a sync puts in order within a wave; every other kind comes after them."""
    listed = engine.text("pkg/sync/sync_tasks.go").partition("kinds := []string{")[2].partition("}")[0]
    return re.findall(r'"(\w+)"', listed)


def exclusions(argocd: Module) -> Iterator[str]:
    """The kinds that the shipped argocd-cm tells Argo CD never to look at."""
    config: Any = yaml_rs.loads(argocd.text("manifests/base/config/argocd-cm.yaml"))
    rows: Any = yaml_rs.loads(config["data"]["resource.exclusions"])
    for row in rows:
        yield f"- {{groups: {json.dumps(row['apiGroups'])}, kinds: {json.dumps(row['kinds'])}}}"


def table() -> str:
    """The whole file."""
    argocd, engine = Module.get(ARGOCD), Module.get(ENGINE)
    return "\n".join(
        [
            "# What Argo CD knows about kinds. Generated by scripts/argocd_facts.py; do not edit.",
            f"version: {VERSION.removeprefix('v')}",
            "",
            f"# {ARGOCD} manifests/base/config/argocd-cm.yaml resource.exclusions",
            "exclusions:",
            *exclusions(argocd),
            "",
            f"# {ENGINE} pkg/sync/sync_tasks.go",
            "kind_order:",
            *(f"- {kind}" for kind in kind_order(engine)),
            "",
            "# Kinds with a health check. `statuses` are those that it can set; `computed`: it also hands on a value",
            "# of the object's own status. A script in Lua goes before a function in Go, an exact name before `*`.",
            f"# {ENGINE} pkg/health; {ARGOCD} resource_customizations",
            "health:",
            *go_checks(engine),
            *lua_checks(argocd),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed table")
    text = table()
    if parser.parse_args().check:
        same = TABLE.exists() and TABLE.read_text() == text
        print("the table is current" if same else f"{TABLE} differs from {ARGOCD}", file=sys.stderr)
        return int(not same)
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
