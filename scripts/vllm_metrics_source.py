"""Read vLLM's Prometheus metrics out of an unpacked source tree, by syntax alone: nothing of vLLM is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_flags_source import strings

V0 = "engine/metrics.py"
"""The module of the old engine's metrics; both engines existed up to 0.10."""

_NAME = re.compile(r"vllm:[a-z0-9_]+")
_CONDITIONS = {
    "self.show_hidden_metrics": "hidden",
    "self.kv_cache_metrics_enabled": "--kv-cache-metrics",
    "vllm_config.observability_config.kv_cache_metrics": "--kv-cache-metrics",
    "vllm_config.lora_config is not None": "--enable-lora",
    "kv_transfer_config is not None and kv_transfer_config.is_kv_consumer": "a KV connector",
    "vllm_config.watermark_config is not None": "--watermark-config",
    "envs.VLLM_COMPUTE_NANS_IN_LOGITS": "VLLM_COMPUTE_NANS_IN_LOGITS",
    "type == 'cache_config'": "",
}
_OPTIONAL = {
    "distributed/ec_transfer": "an EC connector",
    "distributed/": "a KV connector",
    "entrypoints/rl": "reinforcement-learning endpoints",
    "entrypoints/serve/dev": "development mode",
    "entrypoints/speech_to_text": "a speech model",
    "entrypoints/openai/realtime": "a speech model",
    "v1/kv_offload": "KV offloading",
    "v1/metrics/perf.py": "--enable-mfu-metrics",
    "v1/simple_kv_offload": "KV offloading",
    "v1/spec_decode": "speculative decoding",
}


def metrics(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every `vllm:` metric that the source registers: (name as scraped, {type, labels?, buckets?, when?, module})."""
    for path in sorted((root / "vllm").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "vllm:" in text and re.search(r"Counter|Gauge|Histogram|_cls\b", text):
            yield from _module_metrics(str(path.relative_to(root / "vllm")), ast.parse(text), root)


def _module_metrics(module: str, parsed: ast.Module, root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    names = _Names.of(parsed, module)
    registered: set[str] = set()
    for call, tests in _calls(parsed, []):
        func = ast.unparse(call.func).rpartition(".")[2].lower()
        kind = next((k for k in ("counter", "gauge", "histogram") if k in func), None)
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        named = keywords.get("name", call.args[0] if call.args else None)
        if kind is None or named is None:
            continue
        row: dict[str, Any] = {"type": kind}
        label_node = keywords.get("labelnames", call.args[2] if len(call.args) > 2 else None)
        labels = _labels(label_node, names) if label_node is not None else []
        row |= {"labels": labels} if labels is not None else {}
        if kind == "histogram":
            buckets = _buckets(keywords.get("buckets"), names, root)
            row |= {"buckets": buckets} if buckets is not None else {}
        row |= {"when": when} if (when := _when(module, tests)) else {}
        row |= {"engine": "v0"} if module == V0 else {}
        for name in _metric_names(parsed, names, named):
            registered.add(name)
            yield (f"{name.removesuffix('_total')}_total" if kind == "counter" else name), dict(row)
    for name in sorted({s for s in strings(parsed) if _NAME.fullmatch(s)} - registered):
        yield name, {"type": "unknown"} | ({"when": when} if (when := _when(module, [])) else {})


@dataclass
class _Names:
    """What names stand for in one module, each with the lines where they are assigned."""

    assigned: dict[str, list[tuple[int, ast.expr]]]

    @classmethod
    def of(cls, parsed: ast.Module, module: str) -> _Names:
        names = cls({})
        for node in ast.walk(parsed):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                names.assigned.setdefault(ast.unparse(node.targets[0]), []).append((node.lineno, node.value))
        # handed down by the stat logger; the V0 engine had no engine label
        common: list[ast.expr] = [ast.Constant("model_name"), *([] if module == V0 else [ast.Constant("engine")])]
        names.assigned.setdefault("labelnames", [(0, ast.List(common))])
        names.assigned.setdefault("_labelnames", [(0, ast.List(common))])
        return names

    def get(self, node: ast.expr) -> ast.expr | None:
        """The last assignment above the place of use, else any; `self.x` and `Cls.x` also as `x`."""
        text = ast.unparse(node)
        for key in (text, text.rpartition(".")[2]):
            if places := self.assigned.get(key):
                above = [value for line, value in places if line < node.lineno]
                return above[-1] if above else places[0][1]
        return None


def _metric_names(parsed: ast.Module, names: _Names, named: ast.expr) -> list[str]:
    known = named if isinstance(named, ast.Constant) else names.get(named)
    found = [known.value] if isinstance(known, ast.Constant) else [] if known else _specs(parsed, named)
    return [str(name) for name in found if _NAME.fullmatch(str(name))]


def _when(module: str, tests: list[str]) -> str:
    """What must hold for the metric to exist: a flag or feature, `hidden`, or the condition as the source states it."""
    needs = next((needs for prefix, needs in _OPTIONAL.items() if module.startswith(prefix)), "")
    known = [_CONDITIONS.get(test, "" if needs else test) for test in tests]
    return " and ".join(part for part in (needs, *known) if part)


def _calls(node: ast.AST, tests: list[str]) -> Iterator[tuple[ast.Call, list[str]]]:
    """Calls with the conditions of the `if` statements around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If):
            test = ast.unparse(child.test)
            for part, more in ((child.body, [*tests, test]), (child.orelse, [*tests, f"not ({test})"])):
                for statement in part:
                    yield from _calls(ast.Module([statement], []), more)
        else:
            if isinstance(child, ast.Call):
                yield child, tests
            yield from _calls(child, tests)


def _specs(parsed: ast.Module, named: ast.expr) -> Iterator[str]:
    """Names given through a table of tuples: the string constants of the list that the loop variable runs over."""
    for node in ast.walk(parsed):
        for generator in node.generators if isinstance(node, ast.ListComp) else []:
            if ast.unparse(named) in ast.unparse(generator.target):
                source = ast.unparse(generator.iter)
                for other in ast.walk(parsed):
                    if isinstance(other, ast.Assign) and ast.unparse(other.targets[0]) == source:
                        yield from (str(n.value) for n in ast.walk(other.value) if isinstance(n, ast.Constant))


def _labels(node: ast.expr, names: _Names, depth: int = 0) -> list[str] | None:
    if depth > 5:
        return None
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_labels(item.value if isinstance(item, ast.Starred) else item, names, depth + 1) for item in node.elts]
        return None if any(p is None for p in parts) else [x for p in parts for x in p or []]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (_labels(side, names, depth + 1) for side in (node.left, node.right))
        return None if left is None or right is None else left + right
    value = names.get(node)
    return None if value is None or value is node else _labels(value, names, depth + 1)


def _buckets(node: ast.expr | None, names: _Names, root: Path, depth: int = 0) -> list[float] | str | None:
    if node is None or depth > 5:
        return None
    try:
        return [float(x) for x in ast.literal_eval(node)]
    except (ValueError, TypeError):
        pass
    text = ast.unparse(node)
    if "1_2_5" in text:
        return "1-2-5"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        whole = _buckets(node.value, names, root, depth + 1)
        lower = ast.literal_eval(node.slice.lower) if node.slice.lower else 0
        return whole[lower:] if isinstance(whole, list) and node.slice.upper is None else None
    if isinstance(node, ast.Call) and text.startswith("histogram_buckets("):
        family = ast.literal_eval(node.args[0])
        if family == "request_tokens":
            return "1-2-5"
        for statement in ast.parse((root / "vllm/v1/metrics/buckets.py").read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == f"{family.upper()}_BUCKETS":
                return _buckets(statement.value, names, root, depth + 1)
    value = names.get(node) if isinstance(node, ast.Name | ast.Attribute) else None
    return None if value is None or value is node else _buckets(value, names, root, depth + 1)
