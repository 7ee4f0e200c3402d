"""Jobs and CronJobs.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from blueprint.check import forms
from blueprint.check.native.pods import pod_template
from blueprint.check.native.problems import Problems, label_selector
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.cron import schedule_problem
from blueprint.finding import Confidence

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("True", "False", "Unknown")
_ZONE = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}")
_OF_INDEXED = ("backoffLimitPerIndex", "maxFailedIndexes")


def job(problems: Problems, body: Body) -> None:
    """NAT202, NAT204, NAT205, NAT207 for a Job."""
    spec = mapping(body.get("spec"))
    job_spec(problems, "spec", spec)
    name = text(mapping(body.get("metadata")).get("name"))
    completions = number(spec.get("completions"))
    if name and spec.get("completionMode") == "Indexed" and completions and completions > 0:
        last = f"{name}-{completions - 1}"
        if not forms.subdomain(name) and (problem := forms.label_1123(last)):
            message = f"pods of an Indexed job are named after it, and {last} is no DNS label: it {problem}"
            problems.add("NAT205", "metadata.name", message)
    elif len(name) > forms.LABEL_LENGTH and not forms.subdomain(name):
        message = f"the name becomes a label of the pods, so it {forms.label_value(name)}"
        problems.add("NAT205", "metadata.name", message)
    if spec.get("selector") is not None and spec.get("manualSelector") is not True:
        message = "the server makes the selector of a job, so this one cannot match"
        problems.add("NAT205", "spec.selector", message, "remove the selector")
    elif spec.get("manualSelector") is True:
        label_selector(problems, "NAT205", "spec.selector", spec.get("selector"))


def job_spec(problems: Problems, at: str, spec: Body) -> None:
    """What holds for the spec of a Job and of the template of a CronJob."""
    problems.at_least("NAT204", at, spec, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    problems.at_least("NAT204", at, spec, "ttlSecondsAfterFinished", *_OF_INDEXED)
    mode = spec.get("completionMode") or "NonIndexed"
    problems.choice("NAT205", f"{at}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        _indexed(problems, at, spec)
    elif mode == "NonIndexed":
        for name in (*_OF_INDEXED, "successPolicy"):
            if spec.get(name) is not None:
                problems.add("NAT205", f"{at}.{name}", f"{name} needs completionMode: Indexed")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        problems.add("NAT205", f"{at}.maxFailedIndexes", "maxFailedIndexes needs backoffLimitPerIndex")
    manager = spec.get("managedBy")
    if isinstance(manager, str):
        domain, slash, path = manager.partition("/")
        if len(manager) > 63 or not slash or not path or forms.subdomain(domain):
            problems.add("NAT205", f"{at}.managedBy", f"{manager!r} is no domain/path of at most 63 characters")
    template = mapping(spec.get("template"))
    if spec.get("podFailurePolicy") is not None:
        _failure(problems, f"{at}.podFailurePolicy", mapping(spec["podFailurePolicy"]), spec, template)
    if mode == "Indexed" and spec.get("successPolicy") is not None:
        _success(problems, f"{at}.successPolicy", mapping(spec["successPolicy"]), number(spec.get("completions")))
    if spec.get("podReplacementPolicy") is not None:
        allowed = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
        problems.choice("NAT205", f"{at}.podReplacementPolicy", spec["podReplacementPolicy"], allowed, True)
    _ends(problems, at, spec, template)
    pod_template(problems, f"{at}.template", template)


def _ends(problems: Problems, at: str, spec: Body, template: Body) -> None:
    """NAT202: pods of a job end, so they do not restart Always."""
    pod = mapping(template.get("spec"))
    policy = pod.get("restartPolicy")
    path = f"{at}.template.spec.restartPolicy" if "restartPolicy" in pod else f"{at}.template.spec"
    if policy is None or policy in ("", "Always"):
        message = "pods of a job restart OnFailure or Never" + (", not Always" if policy else "; the default is Always")
        problems.add("NAT202", path, message, "restartPolicy: Never")
    elif policy == "OnFailure" and spec.get("podFailurePolicy") is not None:
        problems.add("NAT202", path, "podFailurePolicy needs restartPolicy: Never")


def _indexed(problems: Problems, at: str, spec: Body) -> None:
    completions, parallel = number(spec.get("completions")), number(spec.get("parallelism"))
    failing = number(spec.get("maxFailedIndexes"))
    # Of a Job with neither number the server makes one of each (pkg/apis/batch/v1/defaults.go), not of a template.
    if spec.get("completions") is None and (at != "spec" or spec.get("parallelism") is not None):
        problems.add("NAT205", at, "an Indexed job needs completions")
    if parallel is not None and parallel > 100_000:
        problems.add("NAT205", f"{at}.parallelism", f"parallelism {parallel} of an Indexed job is above 100,000")
    if failing is not None and (failing > 100_000 or (completions is not None and failing > completions)):
        problems.add("NAT205", f"{at}.maxFailedIndexes", f"maxFailedIndexes {failing} is above completions or 100,000")
    many = completions is not None and completions > 100_000 and spec.get("backoffLimitPerIndex") is not None
    if many and (failing is None or failing > 10_000 or (parallel or 0) > 10_000):
        message = "above 100,000 completions, backoffLimitPerIndex needs maxFailedIndexes and parallelism up to 10,000"
        problems.add("NAT205", f"{at}.completions", message)


def _failure(problems: Problems, at: str, policy: Body, spec: Body, template: Body) -> None:
    """NAT207: rules for failed pods."""
    pod = mapping(template.get("spec"))
    names = {text(each.get("name")) for kind in ("containers", "initContainers") for each in maps(pod.get(kind))}
    rules = maps(policy.get("rules"))
    if len(rules) > 20:
        problems.add("NAT207", f"{at}.rules", "no more than 20 rules")
    for index, rule in enumerate(rules):
        here = f"{at}.rules[{index}]"
        if rule.get("action") is not None:
            problems.choice("NAT207", f"{here}.action", rule["action"], _ACTIONS, True)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            problems.add("NAT207", f"{here}.action", "FailIndex needs backoffLimitPerIndex")
        codes, conditions = rule.get("onExitCodes"), maps(rule.get("onPodConditions"))
        if (codes is None) == (not conditions):
            problems.add("NAT207", here, "exactly one of onExitCodes and onPodConditions must be given")
        for position, condition in enumerate(conditions):
            if problem := forms.qualified_name(text(condition.get("type"))):
                problems.add("NAT207", f"{here}.onPodConditions[{position}].type", problem)
            if condition.get("status"):
                problems.choice("NAT207", f"{here}.onPodConditions[{position}].status", condition["status"], _STATUSES)
        if codes is not None:
            _exit_codes(problems, f"{here}.onExitCodes", mapping(codes), names)


def _exit_codes(problems: Problems, at: str, codes: Body, names: set[str]) -> None:
    operator, values = codes.get("operator"), items(codes.get("values"))
    if operator is not None:
        problems.choice("NAT207", f"{at}.operator", operator, ("In", "NotIn"), True)
    if isinstance(codes.get("containerName"), str) and codes["containerName"] not in names:
        problems.add("NAT207", f"{at}.containerName", f"the template has no container {codes['containerName']!r}")
    numbers = [value for value in values if number(value) is not None]
    if not values or len(values) > 255:
        problems.add("NAT207", f"{at}.values", "between 1 and 255 values must be given")
    if operator == "In" and 0 in numbers:
        problems.add("NAT207", f"{at}.values", "0 is success and cannot be In the codes of failures")
    if numbers != sorted(set(numbers)):
        problems.add("NAT207", f"{at}.values", "values must be in order, each once", f"write {sorted(set(numbers))}")


def _success(problems: Problems, at: str, policy: Body, completions: int | None) -> None:
    rules = maps(policy.get("rules"))
    if policy.get("rules") is not None and not 1 <= len(rules) <= 20:
        problems.add("NAT207", f"{at}.rules", "between 1 and 20 rules must be given")
    for index, rule in enumerate(rules):
        here, count, indexes = f"{at}.rules[{index}]", number(rule.get("succeededCount")), rule.get("succeededIndexes")
        if count is None and indexes is None:
            problems.add("NAT207", here, "succeededCount or succeededIndexes must be given")
        total = completions
        if isinstance(indexes, str):
            total = _count_indexes(indexes, completions)
            if total is None:
                problems.add(
                    "NAT207", f"{here}.succeededIndexes", f"{indexes!r} is no list such as 0,2-5 below completions"
                )
        if count is not None and (count < 0 or (total is not None and count > total)):
            problems.add("NAT207", f"{here}.succeededCount", f"{count} is negative or more than can succeed ({total})")


def _count_indexes(written: str, completions: int | None) -> int | None:
    """How many indexes `0,2-5` names; None where it is badly formed or names one that does not exist."""
    total, last = 0, -1
    for part in written.split(",") if written else ():
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            return None
        first, end = int(match[1]), int(match[2] or match[1])
        if (
            first <= last
            or end < first
            or (match[2] and end == first)
            or (completions is not None and end >= completions)
        ):
            return None
        total, last = total + end - first + 1, end
    return total


def cron_job(problems: Problems, body: Body) -> None:
    """NAT204, NAT206 for a CronJob, and what holds for its jobs."""
    spec = mapping(body.get("spec"))
    schedule = spec.get("schedule")
    if isinstance(schedule, str) and (problem := schedule_problem(schedule)):
        problems.add("NAT206", "spec.schedule", f"schedule {schedule!r}: {problem}")
    problems.at_least(
        "NAT204", "spec", spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
    )
    zone = spec.get("timeZone")
    if isinstance(zone, str):
        fix = "write one such as Europe/Berlin"
        if not _named_like_zone(zone):
            problems.add("NAT206", "spec.timeZone", f"{zone!r} is no name of a time zone", fix)
        elif not _known_zone(zone):
            problems.add("NAT206", "spec.timeZone", f"no time zone is called {zone!r}", fix, Confidence.LIKELY)
    if spec.get("concurrencyPolicy"):
        problems.choice("NAT206", "spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    inner = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    job_spec(problems, "spec.jobTemplate.spec", inner)
    if inner.get("selector") is not None or inner.get("manualSelector") is True:
        problems.add("NAT205", "spec.jobTemplate.spec.selector", "the server makes the selector of a job", "remove it")


def _known_zone(zone: str) -> bool:
    """Whether this machine knows a time zone, or none at all; the server has a table of its own."""
    try:
        return bool(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return not available_timezones()


def _named_like_zone(zone: str) -> bool:
    """Whether a time zone's name is well formed."""
    parts = zone.split("/")
    return zone.lower() != "local" and all(_ZONE.fullmatch(part) and part not in (".", "..") for part in parts)
