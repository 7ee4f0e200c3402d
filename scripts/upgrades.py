#!/usr/bin/env python3
"""Write blueprint/catalog/data/releases/: what the CRDs of several releases of each component say.

    python scripts/upgrades.py [--check]

Reads the modules that scripts/upgrades.toml names from the Go module cache. One compressed file for each release, and
LOCK.json with module, version and the digest of every file.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import orjson
import schemas

from blueprint.catalog import crds
from blueprint.catalog.schemas import SchemaPack

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "blueprint/catalog/data/releases"


def release(row: dict[str, Any], version: str) -> bytes:
    """The records of one release, compressed, the same bytes at every run."""
    folder = schemas.module_folder(row["module"], version)
    meta = SchemaPack.shipped().object_meta()
    found = [r for part in row["crds"] for crd in schemas.definitions(folder / part) for r in crds.records(crd, meta)]
    for record in found:
        record["schema"]["properties"].pop("metadata", None)  # the same for all: it is put back when it is read
    ordered = sorted(found, key=lambda record: (record["apiVersion"], record["kind"]))
    return gzip.compress(orjson.dumps(ordered, option=orjson.OPT_SORT_KEYS), mtime=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    check = parser.parse_args().check
    lock: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    for row in tomllib.loads((ROOT / "scripts/upgrades.toml").read_text())["component"]:
        for version in row["versions"]:
            name = f"{row['name']}@{version.removeprefix('v')}.json.gz"
            files[name] = release(row, version)
            digest = hashlib.sha256(gzip.decompress(files[name])).hexdigest()
            lock.setdefault(row["name"], {"module": row["module"], "releases": {}})
            lock[row["name"]]["releases"][version.removeprefix("v")] = digest
    files["LOCK.json"] = orjson.dumps(lock, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if check:
        same = TARGET.is_dir() and (TARGET / "LOCK.json").read_bytes() == files["LOCK.json"]
        print("the releases are current" if same else f"{TARGET} differs from the modules", file=sys.stderr)
        return int(not same)
    TARGET.mkdir(parents=True, exist_ok=True)
    for stale in TARGET.iterdir():
        stale.unlink()
    for name, data in files.items():
        (TARGET / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
