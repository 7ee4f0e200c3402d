"""Analyses of Argo Rollouts that cannot start, cannot fail, or judge something else than the new version.

Sources: argo-rollouts v1.10.2 utils/analysis/factory.go (ValidateMetrics), utils/analysis/helpers.go (FlattenTemplates,
MergeArgs), pkg/apis/rollouts/validation/validation_references.go, analysis/analysis.go (assessMetricStatus).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from blueprint.check.graph import Graph
from blueprint.check.rollouts import (
    Metric,
    Rollout,
    arguments_in,
    has_value,
    is_go_duration,
    metrics,
    rollouts,
    seconds,
    templates,
)
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import known, mapping, maps, number, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_PROVIDERS = frozenset(
    {
        "prometheus",
        "job",
        "web",
        "wavefront",
        "kayenta",
        "datadog",
        "newRelic",
        "cloudWatch",
        "graphite",
        "influxdb",
        "skywalking",
        "plugin",
    }
)
_INSTEAD = {
    "threshold": "write successCondition and failureCondition",
    "thresholdRange": "write successCondition and failureCondition",
    "templateRef": "an analysis names templates: [{templateName: …}]",
    "query": "put it into provider.prometheus.query",
    "address": "put it into provider.prometheus.address",
}


def foreign_fields(graph: Graph) -> Iterator[Finding]:
    """ANA201: fields of other tools, or a provider that stands beside `provider`."""
    for template in templates(graph):
        spec = mapping(template.body.get("spec"))
        if "metric" in spec and "metrics" not in spec:
            yield say(
                "ANA201", template, "`metric` is no field: metrics is a list", "spec.metric", "metrics: [{name: …}]"
            )
        for metric in metrics(template):
            for name in metric.body:
                fix = _INSTEAD.get(name) or (f"put it below provider: provider.{name}" if name in _PROVIDERS else "")
                if fix:
                    message = f"`{name}` is no field of a metric; it is dropped or refused"
                    yield say("ANA201", template, message, f"{metric.at}.{name}", fix)
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            for name in ("templateName", "templateRef", "analysisTemplateName"):
                if name in analysis.body:
                    message = f"`{name}` is no field of an analysis"
                    yield say(
                        "ANA201", rollout.manifest, message, f"{analysis.at}.{name}", "templates: [{templateName: …}]"
                    )


def broken_metrics(graph: Graph) -> Iterator[Finding]:
    """ANA202, ANA203: what the controller refuses in a metric, so that each run ends in Error at once."""
    for template in templates(graph):
        rows = metrics(template)
        if not rows and not maps(mapping(template.body.get("spec")).get("templates")):
            yield say("ANA202", template, "there are no metrics", "spec.metrics", "add a metric")
        for name, count in Counter(metric.name for metric in rows).items():
            if count > 1:
                yield say(
                    "ANA202", template, f"two metrics are called {name!r}", "spec.metrics", "give each its own name"
                )
        for metric in rows:
            for path, problem, fix in _problems(metric):
                yield say("ANA202", template, f"{metric.name}: {problem}", f"{metric.at}{path}", fix)
            yield from _address(metric)


def _problems(metric: Metric) -> Iterator[tuple[str, str, str]]:
    body = metric.body
    providers = [name for name in mapping(body.get("provider")) if name in _PROVIDERS]
    if len(providers) != 1:
        which = "no provider" if not providers else f"several providers: {', '.join(providers)}"
        yield ".provider", which, "exactly one, such as provider.prometheus"
    interval, delay = body.get("interval"), body.get("initialDelay")
    for name, value in (("interval", interval), ("initialDelay", delay)):
        if (
            value is not None
            and not placeholder(value)
            and not (isinstance(value, str) and (not value or is_go_duration(value)))
        ):
            yield f".{name}", f"{value!r} is no duration", "write it as text with a unit: 1m, 90s"
    numbers = {
        name: _whole(body.get(name))
        for name in ("count", "failureLimit", "inconclusiveLimit", "consecutiveSuccessLimit", "consecutiveErrorLimit")
    }
    if None in numbers.values():
        return
    count, failures = numbers["count"] or 0, numbers["failureLimit"] or 0
    inconclusive, successes = numbers["inconclusiveLimit"] or 0, numbers["consecutiveSuccessLimit"] or 0
    if failures < -1 or inconclusive < 0 or successes < 0 or (numbers["consecutiveErrorLimit"] or 0) < 0:
        yield "", "a limit is negative", "0 or more; failureLimit may be -1"
    elif successes == 0 and failures == -1:
        yield ".failureLimit", "failureLimit -1 needs consecutiveSuccessLimit", "give one of the two limits"
    if count > 1 and not interval:
        yield ".count", f"count {count} needs an interval", "interval: 1m"
    if count > 0 and failures >= 0 and count < failures + successes:
        yield (
            ".failureLimit",
            f"count {count} is less than the limits together ({failures} + {successes})",
            "raise count",
        )
    if count > 0 and count < inconclusive:
        yield ".inconclusiveLimit", f"count {count} is less than inconclusiveLimit {inconclusive}", "raise count"


def _whole(value: object) -> int | None:
    """A number or text of digits as the controller takes it, 0 for nothing, None where it is filled in later."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    word = text(value)
    return None if placeholder(word) else int(word) if re.fullmatch(r"-?\d+", word) else 0


def _address(metric: Metric) -> Iterator[Finding]:
    prometheus = metric.prometheus
    if prometheus is None:
        return
    address, at = text(prometheus.get("address")), f"{metric.at}.provider.prometheus"
    if not address:
        message = "no address: the run ends in Error unless the controller has ARGO_ROLLOUTS_PROMETHEUS_ADDRESS"
        yield warn("ANA203", metric.manifest, message, at, "address: http://prometheus…:9090")
    elif not placeholder(address) and not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/]", address):
        message = f"{address} is no URL"
        yield say("ANA203", metric.manifest, message, f"{at}.address", f"http://{address}")


def never_fails(graph: Graph) -> Iterator[Finding]:
    """ANA204, ANA205: as many failures are allowed as there are measurements, or no condition judges them."""
    for template in templates(graph):
        for metric in metrics(template):
            count, failures = metric.count, _whole(metric.body.get("failureLimit"))
            if (
                count
                and failures
                and count == failures
                and not metric.endless
                and not metric.body.get("consecutiveSuccessLimit")
            ):
                message = f"{metric.name} cannot fail: that takes more than {failures} failures of {count} measurements"
                yield say(
                    "ANA204", template, message, f"{metric.at}.failureLimit", f"at most {count - 1}; 0 or 1 is usual"
                )
            success, failure = (text(metric.body.get(n)).strip() for n in ("successCondition", "failureCondition"))
            judged = {
                "prometheus",
                "web",
                "datadog",
                "newRelic",
                "wavefront",
                "cloudWatch",
                "graphite",
                "influxdb",
                "skywalking",
            }
            kinds = mapping(metric.body.get("provider")).keys() & judged
            if kinds and (not (success or failure) or success == "true" or (failure == "false" and not success)):
                message = f"{metric.name} cannot fail: every value that comes is a success"
                yield say("ANA205", template, message, metric.at, "write a successCondition and a failureCondition")


def dry_runs(graph: Graph) -> Iterator[Finding]:
    """ANA206: every metric of an analysis is a dry run, so that it decides nothing."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            rows = [*maps(analysis.body.get("dryRun"))]
            for template in analysis.templates:
                rows += maps(mapping(template.body.get("spec")).get("dryRun"))
            names = [metric.name for metric in analysis.metrics()]
            patterns = [known(row.get("metricName")) for row in rows]
            if (
                names
                and patterns
                and not analysis.missing
                and all(any(_matches(p, n) for p in patterns) for n in names)
            ):
                message = "every metric of this analysis is a dry run: it cannot stop the update"
                yield warn("ANA206", rollout.manifest, message, analysis.at, "leave out dryRun for what is to decide")


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.search(pattern, name) is not None
    except re.error:
        return False


def missing_templates(graph: Graph) -> Iterator[Finding]:
    """ANA207: a template that is not there; the Rollout becomes InvalidSpec and stops."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            for ref in analysis.missing:
                other = "ClusterAnalysisTemplate" if ref.kind == "AnalysisTemplate" else "AnalysisTemplate"
                namespace = "" if other.startswith("Cluster") else rollout.manifest.ref.namespace
                twin = graph.get(type(ref)("argoproj.io", other, namespace, ref.name))
                if twin is not None:
                    message = f"{ref.name} is a {other}, and the analysis asks for a {ref.kind}"
                    fix = "clusterScope: true" if other.startswith("Cluster") else "leave clusterScope out"
                    yield say("ANA207", rollout.manifest, message, f"{analysis.at}.templates", fix)
                elif graph.closed(f"{ref.kind}.argoproj.io"):
                    message = f"there is no {ref.kind} {ref.name}" + (f" in {ref.namespace}" if ref.namespace else "")
                    yield say(
                        "ANA207", rollout.manifest, message, f"{analysis.at}.templates", "add it, or name another"
                    )


def arguments(graph: Graph) -> Iterator[Finding]:
    """ANA208 to ANA211: arguments without a value, given twice, not declared, or used and not declared."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            if analysis.missing or not analysis.templates:
                continue
            declared, passed = analysis.declared(), Counter(text(row.get("name")) for row in analysis.args)
            for name, row in declared.items():
                if not has_value(row) and name not in passed:
                    message = f"the argument {name} has no value: the template declares it and nothing passes it"
                    yield say("ANA208", rollout.manifest, message, analysis.at, f"args: [{{name: {name}, value: …}}]")
            for name, count in passed.items():
                values = [row for row in analysis.args if text(row.get("name")) == name]
                if count > 1:
                    empty = "" if has_value(values[-1]) else ", and is empty"
                    message = f"the argument {name} is passed {count} times; the last one wins{empty}"
                    yield say("ANA209", rollout.manifest, message, f"{analysis.at}.args", "pass it once")
                elif not has_value(values[0]):
                    message = f"the argument {name} is passed without a value: it is the empty text"
                    yield say("ANA209", rollout.manifest, message, f"{analysis.at}.args", "give it value or valueFrom")
                if name not in declared:
                    message = f"the argument {name} is declared by no template and ignored"
                    yield warn(
                        "ANA210", rollout.manifest, message, f"{analysis.at}.args", f"declare {name} in the template"
                    )


def undeclared_arguments(graph: Graph) -> Iterator[Finding]:
    """ANA211: a template uses an argument that it does not declare."""
    shared: dict[int, set[str]] = {}
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            for template in analysis.templates:
                shared.setdefault(id(template), set()).update(analysis.declared())
    for template in templates(graph):
        spec = mapping(template.body.get("spec"))
        names = {text(row.get("name")) for row in maps(spec.get("args"))} | shared.get(id(template), set())
        for metric in metrics(template):
            for name in sorted(set(arguments_in(metric.body)) - names):
                message = f"{{{{args.{name}}}}} is used and not declared: the run ends in Error"
                yield say("ANA211", template, message, metric.at, f"args: [{{name: {name}}}]")


def endless_steps(graph: Graph) -> Iterator[Finding]:
    """ANA212: an analysis that a Rollout waits for is measured for ever."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            for metric in analysis.metrics() if analysis.kind != "background" else ():
                if metric.endless:
                    where = f"{metric.name} of {metric.manifest.ref.name}"
                    message = f"{where} has an interval and no count: the Rollout is InvalidSpec"
                    yield say("ANA212", rollout.manifest, message, analysis.at, "give the metric a count")


def late_measurements(graph: Graph) -> Iterator[Finding]:
    """ANA213: the steps are over before a background analysis has measured once; its end counts as success."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            if analysis.kind != "background":
                continue
            start = number(analysis.body.get("startingStep"), 0) or 0
            if start >= len(rollout.steps) and rollout.steps:
                message = f"startingStep {start} is behind the last step, {len(rollout.steps) - 1}: nothing is measured"
                yield say("ANA213", rollout.manifest, message, f"{analysis.at}.startingStep", "name an earlier step")
                continue
            length = _length(rollout, start)
            for metric in analysis.metrics() if length is not None else ():
                delay = seconds(metric.body.get("initialDelay") or 0)
                if delay and length is not None and delay > length:
                    message = (
                        f"{metric.name} is first measured after {delay:.0f} s; the steps pause {length:.0f} s in all"
                    )
                    fix = "a shorter initialDelay, longer pauses, or an analysis as a step"
                    yield say("ANA213", rollout.manifest, message, analysis.at, fix)


def _length(rollout: Rollout, start: int) -> float | None:
    """Seconds that the steps pause from one on; None where somebody decides, or something else is waited for."""
    total = 0.0
    for step in rollout.steps[start:]:
        if "pause" in step:
            pause = mapping(step["pause"])
            length = seconds(pause.get("duration")) if pause.get("duration") is not None else None
            if length is None:
                return None
            total += length
        elif step.keys() & {"analysis", "experiment", "plugin"}:
            return None
    return total if rollout.steps else None


def duplicate_metrics(graph: Graph) -> Iterator[Finding]:
    """ANA214: templates of one analysis with metrics of the same name, or with arguments of different values."""
    for rollout in rollouts(graph):
        for analysis in rollout.analyses:
            names = Counter(metric.name for metric in analysis.metrics())
            within = [metric.name for template in analysis.templates for metric in _once(template)]
            for name, count in Counter(within).items():
                if count > 1 and names[name] > 1:
                    message = (
                        f"two templates of this analysis have a metric called {name!r}: the Rollout is InvalidSpec"
                    )
                    yield say("ANA214", rollout.manifest, message, f"{analysis.at}.templates", "rename one of them")
            yield from _clashes(rollout, analysis.templates, analysis.at)


def _once(template: Manifest) -> list[Metric]:
    return list({metric.name: metric for metric in metrics(template)}.values())


def _clashes(rollout: Rollout, several: tuple[Manifest, ...], at: str) -> Iterator[Finding]:
    rows = chain.from_iterable(maps(mapping(template.body.get("spec")).get("args")) for template in several)
    values: dict[str, str] = {}
    for row in rows:
        name, value = text(row.get("name")), row.get("value")
        if isinstance(value, str) and values.setdefault(name, value) != value:
            message = f"two templates of this analysis give the argument {name} different values"
            yield say("ANA214", rollout.manifest, message, f"{at}.templates", "give it in one of them")


RULES = (
    foreign_fields,
    broken_metrics,
    never_fails,
    dry_runs,
    missing_templates,
    arguments,
    undeclared_arguments,
    endless_steps,
    late_measurements,
    duplicate_metrics,
)
TREE = ()
