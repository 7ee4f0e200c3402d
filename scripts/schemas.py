"""Build the schema pack `blueprint/catalog/data/schemas` from the Go modules that `tools/*/go.mod` pin.

    python scripts/schemas.py [--out FOLDER] [--docs FILE]

Needs Go (to find the modules; they are downloaded where missing) and the package `blueprint`. The same modules give the
same bytes. Exit code 3 when Go or a module is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from blueprint.catalog import crds, openapi
from blueprint.conform.modules import documents

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "blueprint" / "catalog" / "data"
_REQUIRE = re.compile(r"^\s*(?:require\s+)?(\S+/\S+) (v\S+)(?:\s*//(?!\s*indirect).*)?$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DATA / "schemas", help="folder of the pack; replaced")
    parser.add_argument("--docs", type=Path, help="where to write the list of sources, as Markdown")
    options = parser.parse_args()
    sources = tomllib.loads((ROOT / "scripts" / "schemas.toml").read_text())["source"]
    versions = pinned()
    for source in sources:
        source["version"] = versions[source["module"]]
        source["folder"] = module_folder(source["module"], source["version"])
    write(options.out, sources)
    if options.docs:
        options.docs.write_text(markdown(sources))
    return 0


def pinned() -> dict[str, str]:
    """Module to version, as the go.mod files require them directly; the modules of `tools/crds` come first."""
    found: dict[str, str] = {}
    files = sorted(ROOT.glob("tools/*/go.mod"), key=lambda file: (not file.parent.name.startswith("crds"), file))
    for file in files:
        for module, version in _REQUIRE.findall(file.read_text()):
            found.setdefault(module, version)
    return found


def module_folder(module: str, version: str) -> Path:
    """Where Go keeps the module's files."""
    go = shutil.which("go")
    if not go:
        fail("the schema pack is built from Go modules; install Go 1.25 or newer")
    # Some modules ask for a newer Go than the one installed, even to be looked up: let Go fetch that toolchain.
    env = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    command = [go, "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(command, check=False, cwd="/", env=env, capture_output=True, text=True)
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        fail(f"{module}@{version}: {answer.get('Error') or done.stderr.strip()}")
    return Path(answer["Dir"])


def fail(message: str) -> None:
    print(message, file=sys.stderr)
    raise SystemExit(3)


def records(sources: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every kind of every source, built-in kinds first."""
    table = core_table()
    meta: dict[str, Any] = {}
    for source in sources:
        if "openapi" in source:
            for group_version in table["groups"]:
                prefix = "apis__" if "/" in group_version else "api__"
                name = f"{prefix}{group_version.replace('/', '__')}_openapi.json"
                document = orjson.loads((source["folder"] / source["openapi"] / name).read_bytes())
                meta = meta or openapi.object_meta(document)
                yield from openapi.records(document, table)
        for folder in source.get("crds", ()):
            for document in definitions(source["folder"] / folder):
                yield from crds.records(document, meta)


def definitions(folder: Path) -> Iterator[dict[str, Any]]:
    """Every CustomResourceDefinition in the YAML files of a folder; none where a release has no such folder."""
    for document in documents(sorted(folder.glob("*.yaml"))):
        if document.get("kind") == "CustomResourceDefinition":
            yield document


def core_table() -> dict[str, Any]:
    """The built-in kinds that the pack holds."""
    return next(documents([DATA / "core.yaml"]))


def write(out: Path, sources: list[dict[str, Any]]) -> None:
    """The whole pack: one file a kind and version, the index, the lock."""
    digests: dict[str, str] = {}
    index = []
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    kubernetes = next(source["version"] for source in sources if "openapi" in source)
    for record in sorted(records(sources), key=lambda r: (r["apiVersion"], r["kind"])):
        name = file_name(record)
        if name in digests:
            raise SystemExit(f"{name} comes from two sources")
        index.append({key: record.pop(key) for key in list(record) if key not in BODY} | {"file": name})
        digests[name] = put(out / name, record)
    digests["index.json"] = put(out / "index.json", {"kinds": index, "moved": core_table()["moved"]})
    modules = {source["module"]: source["version"] for source in sources}
    lock = {"kubernetes": kubernetes, "modules": modules, "files": dict(sorted(digests.items()))}
    (out / "LOCK.json").write_bytes(orjson.dumps(lock, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


BODY = {"schema", "defaults", "lists", "sets", "rules", "casts", "immutable"}


def file_name(record: dict[str, Any]) -> str:
    group, _, version = record["apiVersion"].rpartition("/")
    return f"{group or 'core'}/{version}/{record['kind']}.json"


def put(path: Path, data: object) -> str:
    """Write compact sorted JSON; the SHA-256 of the bytes."""
    content = orjson.dumps(data, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def markdown(sources: list[dict[str, Any]]) -> str:
    rows = [f"| `{s['module']}` | {s['version']} | {s['licence']} |" for s in sources]
    head = [
        "# Sources of the schema pack",
        "",
        "`scripts/schemas.py` derives the files in `blueprint/catalog/data/schemas` from these Go modules.",
        "",
        "| module | version | licence |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
