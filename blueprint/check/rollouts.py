"""Argo Rollouts as objects: the strategy, its steps, the analyses it starts, and the templates that these take.

Source: argo-rollouts v1.10.2 pkg/apis/rollouts/v1alpha1/types.go, utils/analysis/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from blueprint.check.graph import Graph
from blueprint.check.shapes import Body, items, known, mapping, maps, text
from blueprint.finding import Ref
from blueprint.objects import Manifest

ROLLOUT = "Rollout.argoproj.io"
TEMPLATES = ("AnalysisTemplate.argoproj.io", "ClusterAnalysisTemplate.argoproj.io")
HASH_LABEL = "rollouts-pod-template-hash"
HASH_SERIES = "rollouts_pod_template_hash"

_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(value: object) -> float | None:
    """A Go duration (`1m30s`) or whole seconds; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    word = text(value)
    if re.fullmatch(r"\d+", word):
        return float(word)
    parts = _DURATION.findall(word)
    return sum(float(n) * _UNITS[u] for n, u in parts) if parts and _DURATION.sub("", word) == "" else None


def is_go_duration(value: str) -> bool:
    """Whether Go's time.ParseDuration reads it."""
    return value == "0" or bool(value and _DURATION.findall(value) and not _DURATION.sub("", value.lstrip("-+")))


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a template; `at` is its path in the template's object."""

    manifest: Manifest
    body: Body
    at: str

    @property
    def name(self) -> str:
        """The name of the metric."""
        return text(self.body.get("name"))

    @property
    def prometheus(self) -> Body | None:
        """The part for Prometheus, None where another provider measures."""
        found = mapping(self.body.get("provider")).get("prometheus")
        return found if isinstance(found, dict) else None

    @property
    def query(self) -> str:
        """The PromQL, "" where there is none."""
        return text((self.prometheus or {}).get("query"))

    @property
    def count(self) -> int | None:
        """How many measurements are taken; None for ever, or where it is not known."""
        written = self.body.get("count")
        number = int(written) if isinstance(written, int) else int(text(written)) if text(written).isdigit() else None
        if written is None or number == 0:
            return None if self.body.get("interval") else 1
        return number

    @property
    def endless(self) -> bool:
        """Whether it is measured until somebody stops it."""
        return self.body.get("count") in (None, 0, "0") and bool(self.body.get("interval"))


def metrics(template: Manifest) -> list[Metric]:
    """The metrics of an AnalysisTemplate, ClusterAnalysisTemplate or AnalysisRun."""
    rows = maps(mapping(template.body.get("spec")).get("metrics"))
    return [Metric(template, body, f"spec.metrics[{n}]") for n, body in enumerate(rows)]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A place in a Rollout that starts an analysis.

    `kind` is background, inline, prePromotion or postPromotion; `missing` are templates that are not in the tree.
    """

    kind: str
    at: str
    body: Body
    templates: tuple[Manifest, ...]
    missing: tuple[Ref, ...]

    @property
    def args(self) -> Sequence[Body]:
        """The arguments as they are passed."""
        return maps(self.body.get("args"))

    def declared(self) -> dict[str, Body]:
        """The arguments that the templates declare; one with a value goes before one without."""
        found: dict[str, Body] = {}
        for template in self.templates:
            for row in maps(mapping(template.body.get("spec")).get("args")):
                name = text(row.get("name"))
                if name not in found or not has_value(found[name]):
                    found[name] = row
        return found

    def bound(self) -> dict[str, Body]:
        """Each argument with what it is in the end: passed, or from the template; the last passed one wins."""
        return {**self.declared(), **{text(row.get("name")): row for row in self.args}}

    def metrics(self) -> Iterator[Metric]:
        """The metrics of all templates."""
        for template in self.templates:
            yield from metrics(template)


def has_value(argument: Body) -> bool:
    """Whether an argument says what it is."""
    return argument.get("value") is not None or argument.get("valueFrom") is not None


class Rollout:
    """One Rollout."""

    def __init__(self, graph: Graph, manifest: Manifest) -> None:
        self._graph = graph
        self.manifest = manifest
        self.spec = mapping(manifest.body.get("spec"))
        self.strategy = mapping(self.spec.get("strategy"))
        self.canary = mapping(self.strategy.get("canary"))
        self.routing = mapping(self.canary.get("trafficRouting"))

    @property
    def steps(self) -> list[Body]:
        """The steps of the canary."""
        return maps(self.canary.get("steps"))

    @cached_property
    def workload(self) -> Manifest | None:
        """The object that workloadRef names, where the tree has it."""
        ref = mapping(self.spec.get("workloadRef"))
        group, slash, _ = text(ref.get("apiVersion")).partition("/")
        namespace = self.manifest.ref.namespace
        return (
            self._graph.nearest(
                Ref(group if slash else "", text(ref.get("kind")), namespace, text(ref.get("name"))), self.manifest
            )
            if ref
            else None
        )

    @property
    def template(self) -> Body:
        """The pod template, also of the workload it names; empty where that is not in the tree."""
        if self.spec.get("workloadRef"):
            spec = mapping(self.workload.body.get("spec")) if self.workload else {}
            return mapping(spec.get("template"))
        return mapping(self.spec.get("template"))

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its pods."""
        found = mapping(mapping(self.template.get("metadata")).get("labels"))
        return {str(key): text(value) for key, value in found.items()}

    @cached_property
    def analyses(self) -> list[Analysis]:
        """Every analysis that it starts, the background one first."""
        found = []
        if background := mapping(self.canary.get("analysis")):
            found.append(self._analysis("background", "spec.strategy.canary.analysis", background))
        for index, step in enumerate(self.steps):
            if inline := mapping(step.get("analysis")):
                found.append(self._analysis("inline", f"spec.strategy.canary.steps[{index}].analysis", inline))
        blue = mapping(self.strategy.get("blueGreen"))
        for name in ("prePromotion", "postPromotion"):
            if body := mapping(blue.get(f"{name}Analysis")):
                found.append(self._analysis(name, f"spec.strategy.blueGreen.{name}Analysis", body))
        return found

    def _analysis(self, kind: str, at: str, body: Body) -> Analysis:
        there: list[Manifest] = []
        missing: list[Ref] = []
        waiting = maps(body.get("templates"))
        namespace = self.manifest.ref.namespace
        for row in waiting:
            name, cluster = known(row.get("templateName")), row.get("clusterScope") is True
            ref = Ref(
                "argoproj.io", f"{'Cluster' if cluster else ''}AnalysisTemplate", "" if cluster else namespace, name
            )
            template = self._graph.nearest(ref, self.manifest)
            if template is None:
                missing += [ref] if name else []
            elif template not in there:
                there.append(template)
                waiting += maps(mapping(template.body.get("spec")).get("templates"))
        return Analysis(kind, at, body, tuple(there), tuple(missing))


def rollouts(graph: Graph) -> list[Rollout]:
    """Every Rollout of a tree, read once for each graph."""
    return graph.derived(_rollouts)


def _rollouts(graph: Graph) -> list[Rollout]:
    return [Rollout(graph, manifest) for manifest in graph.kind(ROLLOUT)]


def templates(graph: Graph) -> list[Manifest]:
    """Every AnalysisTemplate and ClusterAnalysisTemplate."""
    return list(graph.kind(*TEMPLATES))


_RESULT = re.compile(r"(?<![\w.])result\b(?!\s*[\[.])")
_OF_LISTS = re.compile(
    r"\b(?:len|isNil|default|all|any|none|one|filter|map|count|sum|mean|median|min|max|first|last|reduce|sort|reverse|find\w*|get)\(\s*$"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A successCondition or failureCondition, in the expression language of expr-lang."""

    text: str

    @property
    def indexed(self) -> bool:
        """Whether it takes one element of a list."""
        return bool(re.search(r"(?<![\w.])result\s*\[", self.text))

    @property
    def plain(self) -> bool:
        """Whether it uses the result as a number."""
        return any(not _OF_LISTS.search(self.text[: match.start()]) for match in _RESULT.finditer(self.text))

    @property
    def asks_length(self) -> bool:
        """Whether it looks whether there is a result at all."""
        return bool(re.search(r"\blen\(\s*result\s*\)|\bisNil\(|\bresult\s*==\s*nil|\?\.", self.text))

    @property
    def asks_nan(self) -> bool:
        """Whether it looks for NaN."""
        return "isNaN" in self.text

    @property
    def limits(self) -> list[tuple[str, float]]:
        """Comparisons of the value with numbers, as (operator, number)."""
        found = re.findall(
            r"\bresult(?:\s*\[\s*0\s*\])?\s*(<=|>=|==|!=|<|>)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b", self.text
        )
        return [(operator, float(number)) for operator, number in found]


def conditions(metric: Metric) -> tuple[Condition | None, Condition | None]:
    """The success and the failure condition, None where there is none."""
    found = [text(metric.body.get(name)).strip() for name in ("successCondition", "failureCondition")]
    first, second = (Condition(word) if word else None for word in found)
    return first, second


def hosts(rollout: Rollout) -> tuple[str, str]:
    """The Services of the stable and the new version, "" where there is none."""
    return known(rollout.canary.get("stableService")), known(rollout.canary.get("canaryService"))


def arguments_in(value: object) -> Iterator[str]:
    """The names of `{{args.NAME}}` in any text of a body."""
    if isinstance(value, str):
        yield from re.findall(r"\{\{\s*args\.([^}\s]+)\s*\}\}", value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from arguments_in(each)
    else:
        for each in items(value):
            yield from arguments_in(each)
