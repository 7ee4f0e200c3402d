#!/usr/bin/env python3
"""Write blueprint/catalog/data/api_lifecycle.yaml: since when Kubernetes serves each API, until when, and what is off.

    python scripts/api_lifecycle.py [--check]

Reads the generated lifecycle methods of k8s.io/api and the API server's defaults from the Go module cache; for a kind
that both releases know, the newer one counts.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import yaml

TARGET = Path(__file__).parents[1] / "blueprint/catalog/data/api_lifecycle.yaml"
RELEASES = (("v0.35.4", "v1.35.4"), ("v0.37.2", "v1.37.2"))

HEAD = """\
# Since which release Kubernetes serves an API, from which it warns of it, and from which it no longer serves it.
# Made by scripts/api_lifecycle.py; do not edit. An API that is not here is as old as the oldest release in question.
# kinds: the methods APILifecycle… in k8s.io/api v0.35.4 and v0.37.2. off: group versions that an API server serves only
# when it is told to (k8s.io/kubernetes pkg/controlplane/instance.go).
"""

_METHOD = re.compile(
    r"func \(in \*(\w+)\) APILifecycle(Introduced|Deprecated|Removed|Replacement)\(\)[^{]*\{\s*return ([^\n]+)"
)
_GROUP_VERSION = re.compile(r'Group: "([^"]*)", Version: "([^"]*)", Kind: "([^"]*)"')


def modules() -> Path:
    """The Go module cache."""
    out = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout
    return Path(out.strip())


def kinds(api: Path) -> dict[str, dict[str, str]]:
    """`group/version Kind` to its releases, for every kind that says any."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(api.glob("*/*/zz_generated.prerelease-lifecycle.go")):
        package = path.parent
        group = re.search(r'GroupName = "([^"]*)"', (package / "register.go").read_text("utf-8"))
        assert group, package
        version = f"{group[1]}/{package.name}".lstrip("/")
        for kind, what, value in _METHOD.findall(path.read_text("utf-8")):
            if kind.endswith("List"):
                continue
            row = found.setdefault(f"{version} {kind}", {})
            if what == "Replacement":
                replaced = _GROUP_VERSION.search(value)
                assert replaced, value
                row["replacement"] = f"{replaced[1]}/{replaced[2]}".lstrip("/")
            else:
                row[what.lower()] = ".".join(part.strip() for part in value.split(","))
    return found


def off(kubernetes: Path, api: Path) -> list[str]:
    """Group versions that are not served by default."""
    text = (kubernetes / "pkg/controlplane/instance.go").read_text("utf-8")
    imports = dict(re.findall(r'^\s*(\w+) "k8s\.io/api/([\w/]+)"', text, re.MULTILINE))
    found = []
    for block in re.findall(
        r"APIGroupVersionsDisabledByDefault = \[\]schema\.GroupVersion\{(.*?)\n\t\}", text, re.DOTALL
    ):
        for alias in re.findall(r"(\w+)\.SchemeGroupVersion", block):
            if alias in imports:
                group = re.search(r'GroupName = "([^"]*)"', (api / imports[alias] / "register.go").read_text("utf-8"))
                assert group, alias
                found.append(f"{group[1]}/{imports[alias].rpartition('/')[2]}")
    return sorted(set(found))


def table() -> str:
    """The file."""
    cache = modules()
    known: dict[str, dict[str, str]] = {}
    disabled: dict[str, list[str]] = {}
    for api, kubernetes in RELEASES:
        known |= kinds(cache / f"k8s.io/api@{api}")
        release = ".".join(kubernetes.removeprefix("v").split(".")[:2])
        disabled[release] = off(cache / f"k8s.io/kubernetes@{kubernetes}", cache / f"k8s.io/api@{api}")
    body = {"off": disabled, "kinds": {key: known[key] for key in sorted(known)}}
    return HEAD + yaml.safe_dump(body, sort_keys=False, width=120, default_flow_style=None)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = table()
    if parser.parse_args().check:
        return 0 if TARGET.read_text("utf-8") == text else 1
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
