"""Promises: what is measured, the rules that record and warn, and the analysis that judges a canary.

A bound on a quantile is the same as a bound on the share of requests that are slower, and a histogram knows that share
exactly where the bound is one of its buckets: p90 below 750 ms means that at most one request in ten is above 750 ms.
So every promise becomes a share of bad requests with a budget, and vLLM is told the buckets that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.render import series
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.series import Selector, span
from blueprint.render.served import Served
from blueprint.render.vllm import Bound, custom_buckets, has, le
from blueprint.spec.inference import Quantile

#: The argument of the analysis: the hash of the canary's pods.
CANARY_HASH = "canary-hash"

#: Burn rates for a budget of 30 days: factor, long and short window, severity (Google SRE workbook, chapter 5).
BURNS = (
    (Decimal("14.4"), 3600, 300, "page"),
    (Decimal(6), 6 * 3600, 1800, "page"),
    (Decimal(3), 86400, 7200, "ticket"),
    (Decimal(1), 3 * 86400, 6 * 3600, "ticket"),
)
#: With fewer requests than this in the long window a share says nothing.
_ENOUGH = 50
#: The same for a canary and the window of one measurement.
_ENOUGH_CANARY = 10
#: Measurements of a step: with fewer, a single reading decides alone.
_FEWEST = 3
_QUANTILES = {"p50": Decimal("0.5"), "p90": Decimal("0.9"), "p95": Decimal("0.95"), "p99": Decimal("0.99")}
_RATE_QUANTILE = Decimal("0.95")


@dataclass(frozen=True, slots=True)
class Promise:
    """At most `budget` of the requests are bad. `bound` is None for the share of failures."""

    name: str
    bad: str
    budget: Decimal
    bound: Bound | None
    text: str

    def share(self, served: Served, of: Selector, window: str) -> str:
        """The share of bad requests: one series, none or NaN where nothing was asked."""
        if self.bound is None:
            count = series.requests(served)
            # No failure yet means no series of failures, which is not the same as nothing.
            return f"({count.rate(of, window, failed=True)} or vector(0)) / {count.rate(of, window)}"
        good = of.having(f'le="{le(self.bound.seconds)}"')
        metric = self.bound.metric
        return f"1 - sum(rate({metric}_bucket{good}[{window}])) / sum(rate({metric}_count{of}[{window}]))"


def promises(served: Served) -> list[Promise]:
    """What the spec promises, in a fixed order."""
    slo = served.spec.slo
    if slo is None:
        return []
    found = []
    if slo.first_token:
        metric = "vllm:time_to_first_token_seconds"
        found.append(_latency("first-token", "slow_first_tokens", slo.first_token, metric, "time_to_first_token"))
    if slo.latency:
        metric = "vllm:e2e_request_latency_seconds"
        found.append(_latency("latency", "slow_requests", slo.latency, metric, "request_latency"))
    if slo.output_rate:
        # Rounded down to a microsecond: the promise gets no weaker, and the bucket has a short name.
        seconds = float((1 / slo.output_rate).quantize(Decimal("0.000001"), rounding="ROUND_DOWN"))
        metric = "vllm:request_time_per_output_token_seconds"
        found.append(
            Promise(
                "output-rate",
                "slow_outputs",
                1 - _RATE_QUANTILE,
                Bound(metric, "inter_token_latency", seconds),
                f"95% of requests get at least {plain(slo.output_rate)} tokens per second",
            )
        )
    if slo.errors is not None:
        text = f"at most {plain(slo.errors * 100)}% of requests fail"
        found.append(Promise("errors", "failed_requests", slo.errors, None, text))
    return found


def _latency(kind: str, bad: str, quantile: Quantile, metric: str, buckets: str) -> Promise:
    for key, share in _QUANTILES.items():
        value = getattr(quantile, key)
        if value is not None:
            seconds = value.total_seconds()
            what = "first tokens" if kind == "first-token" else "answers"
            text = f"{plain(share * 100)}% of {what} come within {seconds:g} s"
            return Promise(kind, bad, 1 - share, Bound(metric, buckets, seconds), text)
    raise AssertionError(kind)  # the spec has exactly one


def plain(number: Decimal) -> str:
    """A number without exponent and without zeros at its end."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def bounds(served: Served) -> list[Bound]:
    """The bounds that must be buckets, for the command line; none where nobody would read them."""
    return [promise.bound for promise in promises(served) if promise.bound] if served.watched else []


def measurable(served: Served) -> None:
    """SRV102: a promise that the histograms of the pinned version cannot measure."""
    version, flag = served.spec.engine.vllm, "--custom-histogram-buckets"
    for promise in promises(served):
        if promise.bound and custom_buckets([promise.bound], version) and not has(flag, version):
            served.problem(
                "SRV102",
                f"vllm {version} has no bucket at {promise.bound.seconds:g} s in {promise.bound.metric} and no {flag}: "
                f"nobody can tell whether {promise.text}",
                "spec.slo",
                "promise a bound that is a bucket, or use a newer vllm",
            )


def rules(served: Served) -> Iterator[Item]:
    """The PrometheusRule of the service: what the scaler reads, shares of bad requests, and alerts."""
    labels = {"namespace": served.namespace, "service": served.name, "team": served.team.metadata.name}
    mine = Selector(tuple(f'{key}="{value}"' for key, value in labels.items() if key != "team"))
    interval = served.site.cluster.spec.monitoring.scrape_interval.total_seconds()
    burning = [(promise, list(_burns(served, promise))) for promise in promises(served)]
    volumes = {long for _, burns in burning for _, long, _, _ in burns}
    groups = [
        {"name": f"{served.name}.load", "interval": span(interval), "rules": list(_load(served, labels, volumes))},
        {"name": f"{served.name}.blind", "rules": [_blind(served, labels)]},
    ]
    for promise, burns in burning:
        windows = sorted({window for _, long, short, _ in burns for window in (long, short)})
        recorded = [
            {
                "record": f"service:{promise.bad}:ratio_rate{span(window)}",
                "expr": promise.share(served, series.pods(served), span(window)),
                "labels": labels,
            }
            for window in windows
        ]
        alerts = [_alert(promise, mine, labels, *burn) for burn in burns]
        groups.append({"name": f"{served.name}.{promise.name}", "interval": "30s", "rules": [*recorded, *alerts]})
    yield served.item(
        "PrometheusRule",
        labels={**served.labels, **served.site.cluster.spec.monitoring.labels},
        groups=groups,
    )


def waiting_record(served: Served) -> str:
    """The recorded number of waiting requests of a service."""
    return f"service:waiting_requests:avg{span(served.window(60))}"


def rate_record(served: Served, window: float = 60) -> str:
    """The recorded rate of requests of a service."""
    return f"service:requests:rate{span(served.window(window))}"


def _load(served: Served, labels: dict[str, str], volumes: set[int]) -> Iterator[dict[str, Any]]:
    """Sums over all pods, smoothed over at least four scrapes: batching makes single readings jump."""
    of, window = series.pods(served), span(served.window(60))
    waiting = f"sum(avg_over_time(vllm:num_requests_waiting{of}[{window}]))"
    yield {"record": waiting_record(served), "expr": waiting, "labels": labels}
    for seconds in sorted({served.window(60), *volumes}):
        expr = series.requests(served).rate(of, span(seconds))
        yield {"record": rate_record(served, seconds), "expr": expr, "labels": labels}


def _burns(served: Served, promise: Promise) -> Iterator[tuple[Decimal, int, int, str]]:
    """The burn rates that this budget can reach: a share of bad requests never passes one."""
    for factor, long, short, severity in BURNS:
        if factor * promise.budget < 1:
            yield factor, served.window(long), served.window(short), severity


def _alert(
    promise: Promise, mine: Selector, labels: dict[str, str], factor: Decimal, long: int, short: int, severity: str
) -> dict[str, Any]:
    limit = plain(factor * promise.budget)
    long_share, short_share = (f"service:{promise.bad}:ratio_rate{span(w)}{mine}" for w in (long, short))
    volume = f"service:requests:rate{span(long)}{mine} * {long} > {_ENOUGH}"
    title = "".join(part.capitalize() for part in promise.name.split("-"))
    return {
        "alert": f"{title}BudgetBurns",
        "expr": f"{long_share} > {limit} and {short_share} > {limit} and {volume}",
        "for": "2m",
        "labels": {**labels, "severity": severity, "window": span(long)},
        "annotations": {
            "summary": f"{labels['service']} breaks its promise: {promise.text}",
            "description": f"{{{{ $value | humanizePercentage }}}} of requests in {span(long)} were bad, "
            f"{plain(factor)} times what 30 days allow.",
        },
    }


def _blind(served: Served, labels: dict[str, str]) -> dict[str, Any]:
    """Nothing is measured: no promise can be seen to break, and the scaler has nothing to go by."""
    return {
        "alert": "ServiceUnmeasured",
        "expr": f"absent_over_time(vllm:num_requests_running{series.pods(served)}[{span(served.window(600))}])",
        "for": "5m",
        "labels": {**labels, "severity": "ticket"},
        "annotations": {
            "summary": f"there are no metrics of {served.name}",
            "description": "No pod of it is scraped: its promises are not watched and it is not scaled.",
        },
    }


@dataclass(frozen=True, slots=True)
class Trial:
    """How a step of a canary is judged, in seconds: first the window fills, then `count` measurements are taken."""

    window: int
    interval: int
    count: int

    @property
    def length(self) -> int:
        """The whole step."""
        return self.window + self.count * self.interval

    @property
    def tolerated(self) -> int:
        """Bad or empty measurements that do not decide: one, where enough others remain."""
        return 1 if self.count > _FEWEST else 0


def trial(served: Served) -> Trial:
    """Measurements for the length of a step (`rollout.pause`), at least three."""
    pause = served.rollout.pause.total_seconds() if served.rollout else 0
    window, interval = served.window(120), served.window(60)
    return Trial(window, interval, max(_FEWEST, int((pause - window) // interval)))


def judge_pause(served: Served) -> None:
    """SRV107: a step of another length than the spec says, since a window and whole measurements do not fit into it."""
    rollout, plan, path = served.rollout, trial(served), "spec.rollout.pause"
    if rollout is None or "pause" not in rollout.model_fields_set or rollout.pause.total_seconds() == plan.length:
        return
    message = (
        f"each step of the canary takes {span(plan.length)}, not {span(rollout.pause.total_seconds())}: "
        f"{span(plan.window)} in which the window of the rates fills, then {plan.count} measurements, "
        f"{span(plan.interval)} for each; {_FEWEST} are the fewest that judge, since a single one may be chance "
        f"(on {served.site.name})"
    )
    at, fix = served.document.locate(path), f"write {span(plan.length)}"
    served.site.problem(Finding("SRV107", message, at, Severity.NOTE, Confidence.STYLE, path=path, fix=fix))


def analysis_name(served: Served) -> str:
    """The AnalysisTemplate of a service."""
    return name("AnalysisTemplate", served.name, "slo")


def analysis(served: Served) -> Iterator[Item]:
    """The AnalysisTemplate: a canary fails on a broken promise, and waits for a person where it had no traffic."""
    plan, of = trial(served), series.canary(served, CANARY_HASH)
    window = span(plan.window)
    there = "len(result) > 0 && !isNaN(result[0])"
    count = f"{series.requests(served).rate(of, window)} * {plan.window}"
    metrics = [
        {
            "name": "volume",
            "query": count,
            "success": f"{there} && result[0] >= {_ENOUGH_CANARY}",
            # Too few requests are no failure of the version.
            "failure": f"{there} && result[0] < 0",
        }
    ]
    for promise in promises(served):
        limit = plain(promise.budget)
        metrics.append(
            {
                "name": promise.name,
                "query": promise.share(served, of, window),
                "success": f"{there} && result[0] <= {limit}",
                "failure": f"{there} && result[0] > {limit}",
            }
        )
    yield served.item(
        "AnalysisTemplate",
        name=analysis_name(served),
        argument=CANARY_HASH,
        metrics=metrics,
        interval=span(plan.interval),
        count=plan.count,
        tolerated=plan.tolerated,
        address=served.site.cluster.spec.monitoring.address,
    )


def analysis_ref(served: Served) -> Ref:
    """The identity of the AnalysisTemplate."""
    return Ref("argoproj.io", "AnalysisTemplate", served.namespace, analysis_name(served))
