#!/usr/bin/env python3
"""Write the generated pages, and the generated parts of docs/architecture.md.

docs/rules.md and a page for each rule in docs/rules/ come from the rows of the rules, docs/specs.md from the schemas of
the specs; the tables of modules come from their first lines, the picture of imports from `.importlinter`.

    python scripts/docs.py [--check]

`--check` compares instead of writing, and ends with 1 where a page is old.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, get_origin

from pydantic import TypeAdapter

from blueprint.catalog.rules import FORMS, Rule, notice, rules
from blueprint.check.patches import MAKERS
from blueprint.spec import base
from blueprint.spec.load import KINDS
from blueprint.spec.schemas import schemas

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

#: What each family of rules is about; the order is the order of the page.
FAMILIES = {
    "SPC": ("Specs", "What people write: its YAML, its fields, and what specs say of each other."),
    "TPL": ("Templates", "The Jinja files that give objects their shape."),
    "SRV": ("Served models", "What a cluster can do for a model, and what its promises need."),
    "VER": ("Versions", "Components against the versions that objects are rendered for."),
    "STO": ("Storage", "Volume claims against the quota of their namespace."),
    "NOD": ("Nodes", "What kubelets do with pods."),
    "POL": ("Policies", "What an engine can enforce."),
    "WAV": ("Order", "Waves, the health that makes them wait, and what Argo CD must ignore."),
    "YML": ("Reading YAML and JSON", "Files, and what parsers make of them."),
    "SCH": ("Schemas", "Objects against the API schemas of Kubernetes and the pinned CRDs."),
    "CEL": ("Rules of CRDs", "The validation rules that a CRD brings with it."),
    "NAM": ("Names and labels", "Metadata of objects."),
    "NAT": ("Built-in kinds", "What the API server checks in code and no schema can say."),
    "PSS": ("Pod security", "The Pod Security Standards, wherever a pod is written."),
    "SIZ": ("Sizes", "What the API server, etcd or the way of applying do not take."),
    "REF": ("References", "The same object twice, and what objects say of each other."),
    "KQ": ("Queues and machines", "Kueue: queues, cohorts, workloads, topology, devices and quotas against machines."),
    "ANA": ("Canaries and analysis", "Rollouts, and whether their analysis can fail."),
    "SCL": ("Autoscaling", "HPA and KEDA: what is scaled, on what, and who else writes it."),
    "PQL": ("Queries", "PromQL: names, types, labels, windows and buckets."),
    "MON": ("Monitors", "What Prometheus finds to scrape, and how much of it."),
    "TRF": ("Traffic", "Routes, subsets, timeouts and what must agree with them."),
    "ARG": ("Argo CD", "Applications, projects and ApplicationSets."),
    "DRF": ("Drift", "Fields that two write."),
    "RBA": ("Rights", "Roles and bindings that reach too far."),
    "TEN": ("Tenants", "What keeps tenants apart."),
    "IMG": ("Images", "Which image really runs."),
    "BAK": ("Backups", "Whether a backup would help."),
    "UPG": ("Upgrades", "APIs that the target version does not serve."),
    "SIG": ("Signatures", "Who signed the tree and when, whether it is still that tree, and what the log says."),
    "CRE": ("The credential", "Why a deployment is not allowed: policies, reports, backups and times."),
    "SIM": ("Simulation", "Arrivals of jobs, and what waits for ever."),
    "REV": ("Reviews", "What a change does, by class of risk."),
    "CNF": ("Conformance", "What a real control plane said."),
    "TRE": ("The tree", "Its lock, what people did to it, and the names of rendered files."),
}

RULES_HEAD = """\
# Rules

Written by `make docs` from `blueprint/catalog/data/rules/`. Each code leads to its page; `blueprint rules CODE` says
the same in a terminal. How to silence a rule, and all else of `blueprint check`: [checking](check.md).

| confidence | means | an error of it ends a run with 1 |
|---|---|---|
| certain | the real system refuses it, or can never act on it | yes |
| likely | it goes wrong in nearly every case | yes |
| style | it works, and will surprise somebody | no |

Warnings and notes never end a run with 1, whatever their confidence.
"""

SPECS_HEAD = """\
# Specs

Written by `make docs` from the models in `blueprint/spec/`. Examples: [handbook](handbook.md).

Every spec has `apiVersion: platform.blueprint/v1alpha1`, a `kind`, `metadata.name` (unique among its kind) and `spec`.
A file may hold several, divided by `---`. A field that is not listed here is an error.
"""


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    found = {"architecture.md": architecture_page(), "rules.md": rules_page(), "specs.md": specs_page()}
    return found | {f"rules/{rule.code}.md": rule_page(rule) for rule in rules().values()}


def architecture_page() -> str:
    """The page as it is written, with the parts between the marks made again."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for mark, part in (("imports", _imports()), ("modules", _modules())):
        text, found = re.subn(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", lambda m: m[1] + part + m[2], text, flags=re.S)  # noqa: B023
        if found != 1:
            raise SystemExit(f"docs/architecture.md: no place for {mark}")
    return text


def _imports() -> str:
    """The layers of `.importlinter`, the highest first, as a picture."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:direction"]["layers"].split("\n")
    boxes = [[name.strip(" ()").removeprefix("blueprint.") for name in layer.split("|")] for layer in layers if layer]
    lines = [f'  l{at}["{" · ".join(names)}"]' for at, names in enumerate(boxes)]
    arrows = " --> ".join(f"l{at}" for at in range(len(boxes)))
    return "\n".join(("```mermaid", "graph TD", *lines, f"  {arrows}", "```")) + "\n"


def _modules() -> str:
    """A table of the modules of each package, the top of the package first."""
    top = ROOT / "blueprint"
    parts = []
    for package in sorted({path.parent for path in top.rglob("*.py")}):
        name = package.relative_to(ROOT).as_posix()
        said = _first(package / "__init__.py")
        parts.append(f"### {name}/\n\n{said}\n" if said else f"### {name}/\n")
        files = sorted(path for path in package.glob("*.py") if path.stem != "__init__")
        rows = [(f"`{path.name}`", _first(path)) for path in files]
        parts += [_table(("file", "is"), rows)] if rows else []
    return "\n".join(parts)


def _first(path: Path) -> str:
    """The first paragraph of a module's docstring."""
    return " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n\n")[0].split())


def rules_page() -> str:
    """The list of all rules: a table of families, then a table for each family."""
    known = {code: list(group) for code, group in groupby(rules().values(), _family)}
    if strange := known.keys() - FAMILIES:
        raise SystemExit(f"scripts/docs.py: say in FAMILIES what {', '.join(sorted(strange))} is about")
    families = {code: FAMILIES[code] for code in FAMILIES if code in known}
    rows = [
        (f"[{code}](#{_slug(f'{code}: {title}')})", title, about, str(len(known[code])))
        for code, (title, about) in families.items()
    ]
    parts = [RULES_HEAD, _table(("family", "", "about", "rules"), rows)]
    for code, (title, about) in families.items():
        rows = [
            (f'<a id="{r.code.lower()}"></a>[{r.code}](rules/{r.code}.md)', r.name, r.confidence, r.summary)
            for r in known[code]
        ]
        parts += [f"## {code}: {title}\n\n{about}\n", _table(("code", "name", "confidence", "what"), rows)]
    return "\n".join(parts)


def rule_page(rule: Rule) -> str:
    """One rule as a page of a manual."""
    family = _family(rule)
    title = FAMILIES[family][0] if family in FAMILIES else family
    parts = [
        f"# {rule.code}: {rule.name}",
        f"{_safe(rule.summary)}",
        f"Family [{title}](../rules.md#{_slug(f'{family}: {title}')}) · {_CONFIDENCE[rule.confidence]}",
        f"## What happens\n\n{_safe(rule.why)}",
    ]
    mark, told = FORMS[rule.form][0], notice(rule)
    if rule.bad:
        intro = f"{_safe(told)}\n\n" if told else ""
        parts.append(f"## Bad\n\n{intro}````{mark}\n{rule.bad.rstrip()}\n````")
    if rule.good:
        parts.append(f"## Good\n\n````{mark}\n{rule.good.rstrip()}\n````")
    if rule.near:
        said = rule.spared
        parts.append(f"## Near miss\n\n{_safe(said[0].upper() + said[1:])}\n\n````{mark}\n{rule.near.rstrip()}\n````")
    parts.append(f"## Fix\n\n{_safe(rule.fix)}")
    if rule.code in MAKERS:
        parts[-1] += "\n\nWhere only one thing can be meant, `blueprint check --fix` writes it, and `--diff` shows it."
    parts.append(
        "## Silence it\n\nNot possible: only what `blueprint check` says of objects can be silenced."
        if family in _FIRM or rule.code in _FIRM
        else f"## Silence it\n\n`# blueprint: ignore {rule.code} reason` at the line, or an entry of `ignore` in "
        "`blueprint.yaml`: see [checking](../check.md#silencing)."
    )
    if rule.sources:
        parts.append("## Sources\n\n" + "\n".join(f"- {_linked(source)}" for source in rule.sources))
    return "\n\n".join(parts) + "\n"


def _linked(source: str) -> str:
    """A source, as a link where it is a page of ours."""
    page = source.partition(" ")[0].partition("#")[0]
    ours = page.startswith("docs/") and (ROOT / page).is_file()
    return re.sub(r"^docs/(\S+)", r"[docs/\1](../\1)", _safe(source)) if ours else _safe(source)


_CONFIDENCE = {
    "certain": "**certain**: the real system refuses it, or can never act on it",
    "likely": "**likely**: it goes wrong in nearly every case",
    "style": "**style**: it works, and will surprise somebody",
}


#: Families, and rules, that other verbs say than `check`, which alone reads comments and `blueprint.yaml`.
_FIRM = frozenset({"SPC", "TPL", "SIG", "CRE", "SIM", "REV", "CNF", "TRE", "VER", "NOD", "STO101"})


def _family(rule: Rule) -> str:
    return rule.code.rstrip("0123456789")


def specs_page() -> str:
    """Every field of every kind: the forms of values first, then one table for each part of a spec."""
    kinds = schemas()
    rows = [(f"[{kind}](#{kind.lower()})", kinds[kind.lower()]["description"]) for kind in KINDS]
    parts = [SPECS_HEAD, _table(("kind", "is"), rows), _forms()]
    for kind in KINDS:
        parts += _kind(kind, kinds[kind.lower()])
    return "\n".join(parts)


def _named_types() -> dict[str, dict[str, Any]]:
    """The types with a form of their own, as editors see them."""
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower(): TypeAdapter(value).json_schema()
        for name, value in vars(base).items()
        if get_origin(value) is Annotated
    }


NAMED = _named_types()


def _forms() -> str:
    rows = [
        (f'<a id="{name.replace(" ", "-")}"></a>{name}', form["description"], " ".join(map(_code, form["examples"])))
        for name, form in NAMED.items()
    ]
    return "## Forms of values\n\n" + _table(("form", "is", "such as"), rows)


def _kind(kind: str, schema: dict[str, Any]) -> Iterator[str]:
    """The tables of one kind: `spec`, then each part below it, in the order in which they are first named."""
    places: dict[str, list[str]] = {}
    body = schema["properties"]["spec"]["$ref"]
    _find(body, "spec", schema["$defs"], places)
    yield f"## {kind}\n\n{_safe(schema['description'])}\n"
    for reference, paths in places.items():
        part = schema["$defs"][reference.rpartition("/")[2]]
        where = ", ".join(f"`{path}`" for path in paths)
        anchor = f'<a id="{_anchor(kind, reference)}"></a>'
        required = set(part.get("required", ()))
        rows = [
            (f"`{name}`", _type(field, kind, schema["$defs"]), _default(field, name in required), field["description"])
            for name, field in part["properties"].items()
        ]
        text = "" if reference == body else f"{_safe(_joined(part['description']))}\n\n"
        yield f"### {anchor}{kind} {where}\n\n{text}{_table(('field', 'type', 'default', 'meaning'), rows)}"


def _find(reference: str, path: str, definitions: dict[str, Any], places: dict[str, list[str]]) -> None:
    """Collect the paths at which each part stands, parents before children."""
    part = definitions[reference.rpartition("/")[2]]
    if "properties" not in part:
        return
    places.setdefault(reference, []).append(path)
    for name, field in part["properties"].items():
        for found, suffix in _references(field, ""):
            _find(found, f"{path}.{name}{suffix}", definitions, places)


def _references(node: dict[str, Any], suffix: str) -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        yield node["$ref"], suffix
    for choice in node.get("anyOf", ()):
        yield from _references(choice, suffix)
    if "items" in node:
        yield from _references(node["items"], f"{suffix}[]")
    for value in node.get("patternProperties", {}).values():
        yield from _references(value, f"{suffix}.<name>")


def _type(node: dict[str, Any], kind: str, definitions: dict[str, Any]) -> str:
    """The type of a field in words."""
    for name, form in NAMED.items():
        if all(node.get(key) == value for key, value in form.items() if key not in ("description", "examples")):
            return f"[{name}](#{name.replace(' ', '-')})"
    if "$ref" in node:
        part = definitions[node["$ref"].rpartition("/")[2]]
        return f"[map](#{_anchor(kind, node['$ref'])})" if "properties" in part else _type(part, kind, definitions)
    if "anyOf" in node:
        choices = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
        return " or ".join(_type(choice, kind, definitions) for choice in choices)
    if "enum" in node or "const" in node:
        return " \\| ".join(map(_code, node.get("enum", [node.get("const")])))
    match node["type"]:
        case "array":
            return f"list of {_type(node['items'], kind, definitions)}"
        case "object":
            (value,) = node.get("patternProperties", {"": node.get("additionalProperties")}).values()
            return f"map of names to {_type(value, kind, definitions)}"
        case "integer":
            least, most = node.get("minimum"), node.get("maximum")
            bounds = f" {least}–{most}" if most is not None else f" ≥ {least}" if least is not None else ""
            return f"number{bounds}"
        case "boolean":
            return "`true` \\| `false`"
        case _:
            return "text"


def _default(field: dict[str, Any], required: bool) -> str:
    if required:
        return "**required**"
    value = field.get("default")
    return "" if value in (None, [], {}, "") else _code(value)


def _code(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{text.replace('0' * 64, '…')}`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [tuple(head), ("---",) * len(head), *(tuple(map(_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- ", "|---").replace("---|\n", "---|\n")


def _safe(text: str) -> str:
    """A text that Markdown shows as it is: `<` outside of code would start a tag."""
    outside = re.split(r"(`[^`]*`|<a id=[^>]*></a>)", text)
    return "".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(outside))


def _cell(text: str) -> str:
    """A text in a table, where a line's end would end the row, and a bar the cell, also in code."""
    return re.sub(r"(?<!\\)\|", r"\|", _safe(" ".join(text.split())))


def _joined(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _anchor(kind: str, reference: str) -> str:
    return f"{kind}-{reference.rpartition('/')[2]}".lower()


def _slug(heading: str) -> str:
    """The anchor that GitHub and GitLab give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main() -> int:
    """Write the pages, or say which are old."""
    parser = argparse.ArgumentParser(description="Write the generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 where a page is old")
    check = parser.parse_args().check
    wanted = pages()
    old = [name for name, text in wanted.items() if not _same(DOCS / name, text)]
    gone = [path for path in sorted((DOCS / "rules").glob("*.md")) if f"rules/{path.name}" not in wanted]
    for name in old:
        if not check:
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_text(wanted[name], encoding="utf-8")
        print(f"docs/{name} {'is old: run `make docs`' if check else 'is written'}")
    for path in gone:
        if not check:
            path.unlink()
        print(f"docs/rules/{path.name} {'is of no rule: run `make docs`' if check else 'is removed'}")
    return 1 if check and (old or gone) else 0


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
