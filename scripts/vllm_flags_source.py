"""Read the flags of `vllm serve` out of an unpacked source tree, by syntax alone: nothing of vLLM is imported or run.

The engine's flags come from `get_kwargs(SomeConfig)["field"]`, so the dataclass field decides type, choices and
default; `_compute_kwargs` in vllm/engine/arg_utils.py is the rule that `_shape` repeats. What the syntax does not
settle (a default that is computed) is left out of the row, never guessed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNKNOWN = object()
"""A value that the syntax does not settle."""

CLI_FILES = (
    "entrypoints/common/cli_args.py",
    "entrypoints/launchers/cli_args.py",
    "entrypoints/openai/cli_args.py",
    "entrypoints/cli/serve.py",
)
"""Where the server's own flags have lived, newest place first."""

_CONSTANTS = {"ssl.CERT_NONE": 0, "MISSING": UNKNOWN}
_DEPRECATED = re.compile(r"\(?(--[a-z0-9-]+)\)? (?:is|are) deprecated")
_CONVERTERS = {
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size",
    "nullable_kvs": "str",
    "parse_type": "str",
}


@dataclass
class Field:
    """One dataclass field: where its names resolve (`module`), its annotation, its default and its docstring."""

    module: str
    annotation: ast.expr | None
    default: ast.expr | None
    doc: str = ""


@dataclass
class Tree:
    """The parsed modules of one vLLM source tree, with what is needed to resolve a name."""

    root: Path
    modules: dict[str, ast.Module] = field(default_factory=dict)
    classes: dict[str, dict[str, Field]] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, dict[str, ast.expr]] = field(default_factory=dict)
    sizes: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, root: Path) -> Tree:
        """Parse the configuration and command-line modules under `root/vllm`."""
        tree = cls(root)
        package = root / "vllm"
        paths = [package / "engine/arg_utils.py", package / "config.py", *sorted(package.glob("config/*.py"))]
        paths += [package / name for name in CLI_FILES]
        paths += [*sorted(package.glob("entrypoints/**/chat_utils*.py")), package / "v1/attention/selector.py"]
        paths += [package / "tasks.py", package / "sampling_params.py", package / "pooling_params.py"]
        for path in paths:
            if path.exists():
                tree._index(str(path.relative_to(package)), ast.parse(path.read_text(encoding="utf-8")))
        for node in ast.walk(tree.modules["engine/arg_utils.py"]):
            if isinstance(node, ast.FunctionDef) and node.name in {"get_kwargs", "_compute_kwargs"}:
                # the only field names quoted there are those of integers that may be written 32k or 1G
                tree.sizes |= {s for s in strings(node) if re.fullmatch(r"[a-z]+(_[a-z]+)+", s)}
        return tree

    def _index(self, module: str, parsed: ast.Module) -> None:
        self.modules[module] = parsed
        names = self.names.setdefault(module, {})
        for node in _statements(parsed.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                names[node.target.id] = node.value
            elif isinstance(node, ast.ClassDef):
                self.bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                self.classes[node.name] = dict(_fields(module, node))

    def lookup(self, module: str, name: str) -> tuple[str, ast.expr] | None:
        """The expression that a module-level name stands for: in its own module first, then anywhere else."""
        for place in (module, *self.names):
            if name in self.names.get(place, {}):
                return place, self.names[place][name]
        return None

    def field(self, cls: str, name: str) -> Field | None:
        """A field of a dataclass or of one of its bases."""
        if found := self.classes.get(cls, {}).get(name):
            return found
        return next((f for base in self.bases.get(cls, []) if (f := self.field(base, name))), None)

    def value(self, module: str, node: ast.expr | None, depth: int = 0) -> object:
        """A default as plain data, or UNKNOWN."""
        if node is None or depth > 8:
            return UNKNOWN
        try:
            return ast.literal_eval(node)
        except ValueError:
            pass
        text = ast.unparse(node)
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if isinstance(node, ast.Name) and (found := self.lookup(module, node.id)):
            return self.value(*found, depth + 1)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._of_field(node.value.id, node.attr, depth)
        if isinstance(node, ast.Call):
            return self._of_call(module, node, depth)
        return UNKNOWN

    def _of_field(self, cls: str, name: str, depth: int) -> object:
        found = self.field(cls, name)
        return self.value(found.module, found.default, depth + 1) if found else UNKNOWN

    def _of_call(self, module: str, node: ast.Call, depth: int) -> object:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "get_field" and len(node.args) == 2:
            return self._of_field(ast.unparse(node.args[0]), ast.literal_eval(node.args[1]), depth)
        if name == "int" and node.args:
            return self.value(module, node.args[0], depth + 1)
        if name in {"Field", "field"}:
            if node.args and not isinstance(node.args[0], ast.Constant):
                return UNKNOWN
            keywords = {k.arg: k.value for k in node.keywords}
            if (factory := keywords.get("default_factory")) is not None:
                if isinstance(factory, ast.Lambda):
                    return self.value(module, factory.body, depth + 1)
                return {"list": [], "dict": {}, "set": []}.get(ast.unparse(factory), UNKNOWN)
            return self.value(module, keywords.get("default", node.args[0] if node.args else None), depth + 1)
        return UNKNOWN

    def types(self, module: str, node: ast.expr | None, depth: int = 0) -> list[tuple[str, list[Any]]]:
        """An annotation's parts as (outer type, literals): `Literal["a"] | None` → ("Literal", ["a"]), ("None", [])."""
        if node is None or depth > 8:
            return []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.types(module, node.left, depth) + self.types(module, node.right, depth)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.types(module, ast.parse(node.value, mode="eval").body, depth + 1)
            return [("None", [])]
        if isinstance(node, ast.Subscript):
            return self._subscript_types(module, node, depth)
        if isinstance(node, ast.Name) and node.id not in self.classes and (found := self.lookup(module, node.id)):
            return self.types(*found, depth + 1)
        return [(ast.unparse(node).rpartition(".")[2], [])]

    def _subscript_types(self, module: str, node: ast.Subscript, depth: int) -> list[tuple[str, list[Any]]]:
        outer = ast.unparse(node.value).rpartition(".")[2]
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if outer in {"Optional", "Union", "SkipValidation", "Annotated"}:
            parts = inner[:1] if outer == "Annotated" else inner
            found = [t for part in parts for t in self.types(module, part, depth + 1)]
            return [*found, ("None", [])] if outer == "Optional" else found
        if outer == "Literal":
            return [("Literal", list(self._literals(module, inner, depth)))]
        return [(outer.lower() if outer in {"List", "Dict", "Tuple", "Set"} else outer, [])]

    def _literals(self, module: str, nodes: list[ast.expr], depth: int) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Constant):
                yield node.value
            else:
                for kind, values in self.types(module, node, depth + 1):
                    if kind == "Literal":
                        yield from values


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Module-level statements; of `if TYPE_CHECKING` only what runs."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements(
                node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else node.body + node.orelse
            )
        else:
            yield node


def _fields(module: str, cls: ast.ClassDef) -> Iterator[tuple[str, Field]]:
    for node, after in zip(cls.body, [*cls.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            doc = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                doc = str(after.value.value)
            yield node.target.id, Field(module, node.annotation, node.value, doc)


def flags(tree: Tree) -> dict[str, dict[str, Any]]:
    """Every flag of `vllm serve`: name → {takes, type, choices?, default?, aliases?, deprecated?}.

    `takes` is switch (no value, no --no- form), boolean (--x and --no-x), value, values (one or more), optional (bare
    or with a value) or repeated (given several times). `type` size is an integer that may be written 32k or 1G.
    With `folds` the value may be written in any case and with - for _.
    """
    found: dict[str, dict[str, Any]] = {}
    warned = {
        m for mod in tree.modules.values() for s in strings(mod) for m in _DEPRECATED.findall(" ".join(s.split()))
    }
    for module, parsed in tree.modules.items():
        for function in (n for n in ast.walk(parsed) if isinstance(n, ast.FunctionDef)):
            configs, renamed = _configs(function), _renamed(function)
            folding = re.findall(
                r"(\w+)\['type'\] = lambda \w+: \w+\.lower\(\)\.replace\('-', '_'\)", ast.unparse(function)
            )
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                    names = [
                        n for a in call.args if isinstance(a, ast.Constant) and (n := str(a.value)).startswith("-")
                    ]
                    if names:
                        splats = [k.value for k in call.keywords if k.arg is None]
                        splats = [renamed.get(s.id, s) if isinstance(s, ast.Name) else s for s in splats]
                        row = _row(tree, module, call, _declared(tree, configs, splats), warned)
                        if any(f"**{name}" in ast.unparse(call) for name in folding):
                            row["folds"] = True
                        first = next((n for n in names if n.startswith("--")), names[0])
                        found[first] = row | ({"aliases": sorted({*names} - {first})} if len(names) > 1 else {})
    if "FrontendArgs" in tree.classes:
        found |= _frontend(tree, warned)
    return found


def strings(parsed: ast.AST) -> Iterator[str]:
    """Every string constant below a node."""
    return (n.value for n in ast.walk(parsed) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _renamed(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """`backend_kwargs = kernel_kwargs["backend"]` → {"backend_kwargs": the subscript}."""
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
    }


def _configs(function: ast.FunctionDef) -> dict[str, str]:
    """`model_kwargs = get_kwargs(ModelConfig)` → {"model_kwargs": "ModelConfig"}."""
    return {
        node.targets[0].id: ast.unparse(node.value.args[0])
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "get_kwargs"
    }


def _declared(tree: Tree, configs: dict[str, str], splats: list[ast.expr]) -> dict[str, Any]:
    """The row of the field behind `**model_kwargs["field"]`; of any other splat only that something is given."""
    row: dict[str, Any] = {"_settled": True} if splats else {}
    for part in (n for splat in splats for n in ast.walk(splat) if isinstance(n, ast.Subscript)):
        if (config := configs.get(ast.unparse(part.value))) and isinstance(part.slice, ast.Constant):
            name = str(part.slice.value)
            if (declared := tree.field(config, name)) is not None:
                row = _shape(tree, declared, name)
    return row


def _row(tree: Tree, module: str, call: ast.Call, row: dict[str, Any], warned: set[str]) -> dict[str, Any]:
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    action = ast.unparse(keywords["action"]) if "action" in keywords else ""
    if "store_true" in action:
        row |= {"takes": "switch", "type": "bool", "default": False}
    elif "BooleanOptionalAction" in action:
        row |= {"takes": "boolean", "type": "bool"}
    elif "append" in action:
        row |= {"takes": "repeated"}
    elif "nargs" in keywords:
        row |= {"takes": {"?": "optional"}.get(str(tree.value(module, keywords["nargs"])), "values")}
    row.setdefault("takes", "value")
    if "type" in keywords and row["takes"] not in {"switch", "boolean"}:
        converter = re.sub(r".*\(|\)", "", ast.unparse(keywords["type"])).rpartition(".")[2]
        row["type"] = _CONVERTERS.get(converter, "json" if converter not in {"str", "int", "float"} else converter)
    row.setdefault("type", "str")
    if "default" in keywords:
        value = tree.value(module, keywords["default"])
        row.pop("default", None)
        row |= {} if value is UNKNOWN else {"default": value}
    elif not row.keys() & {"default", "_settled"}:
        row["default"] = None
    if "choices" in keywords:
        choices = tree.value(module, keywords["choices"])
        if isinstance(keywords["choices"], ast.Call) and ast.unparse(keywords["choices"].func) == "get_args":
            choices = [
                v for kind, vs in tree.types(module, keywords["choices"].args[0]) if kind == "Literal" for v in vs
            ]
        row |= {"choices": sorted({*choices})} if isinstance(choices, list) else {}
    text = " ".join(s for s in (tree.value(module, keywords.get("help")), row.pop("_doc", "")) if isinstance(s, str))
    row.pop("_settled", None)
    flag = str(call.args[0].value) if isinstance(call.args[0], ast.Constant) else ""
    if "deprecated" in keywords or "[DEPRECATED]" in text or flag in warned or action.startswith("Deprecated"):
        row["deprecated"] = True
    return row


def _shape(tree: Tree, declared: Field, name: str) -> dict[str, Any]:
    """What vLLM's `_compute_kwargs` makes of a dataclass field; the first rule that fits wins, as there."""
    kinds = tree.types(declared.module, declared.annotation)
    outer = {kind for kind, _ in kinds}
    row: dict[str, Any] = {"_settled": True, "_doc": declared.doc}
    value = tree.value(declared.module, declared.default)
    row |= {} if value is UNKNOWN else {"default": value}
    literals = [v for _, values in kinds for v in values]
    if any(kind in tree.classes for kind in outer):
        return row | {"takes": "value", "type": "json"}
    if outer == {"bool", "str", "None"}:
        return row | {"takes": "optional", "type": "str"}
    if "bool" in outer:
        return row | {"takes": "boolean", "type": "bool"}
    if literals:
        row |= {"takes": "value", "type": type(literals[0]).__name__}
        return row if "str" in outer else row | {"choices": sorted({*literals})}
    if outer & {"tuple", "list", "set"}:
        return row | {"takes": "values", "type": "list"}
    if "int" in outer:
        return row | {"takes": "value", "type": "size" if name in tree.sizes else "int"}
    if "float" in outer:
        return row | {"takes": "value", "type": "float"}
    return row | {"takes": "value", "type": "json" if "dict" in outer else "str"}


def _frontend(tree: Tree, warned: set[str]) -> dict[str, dict[str, Any]]:
    """FrontendArgs is turned into flags by a loop over all its fields, after a few changes that are statements."""
    found: dict[str, dict[str, Any]] = {}
    for cls in ["FrontendArgs", *tree.bases.get("FrontendArgs", [])]:
        for name, declared in tree.classes.get(cls, {}).items():
            row = _shape(tree, declared, name)
            row.pop("_settled")
            flag = f"--{name.replace('_', '-')}"
            if flag in warned or "[DEPRECATED]" in row.pop("_doc"):
                row["deprecated"] = True
            found[flag] = row
    source = "\n".join(ast.unparse(parsed) for name, parsed in tree.modules.items() if name in CLI_FILES)
    for name in re.findall(r"frontend_kwargs\['(\w+)'\]\['type'\] = json.loads", source):
        found[f"--{name.replace('_', '-')}"]["type"] = "json"
    for name in re.findall(r"del frontend_kwargs\['(\w+)'\]\['nargs'\]", source):
        found[f"--{name.replace('_', '-')}"]["takes"] = "value"
    for name in re.findall(r"frontend_kwargs\['(\w+)'\]\['action'\] = 'append'", source):
        found[f"--{name.replace('_', '-')}"]["takes"] = "repeated"
    return found
