"""A review as entries that every format shows: one class, one subject, one sentence, one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from blueprint.finding import Ref, Source
from blueprint.report.totals import counted
from blueprint.review.model import Meaning, Review, Risk, Row, Statement, of_any, rows

_QUOTA = re.compile(r"(?P<what>nominal|borrowing limit|lending limit) of (?P<where>\S+ on \S+) (?P<values>.+ → .+)")
_PLURAL = {"moves": "move", "gets": "get", "loses": "lose", "gains": "gain", "prunes": "prune", "reads": "read"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a review. `where` names clusters, `place` a file of the tree; "" and None where there is none.

    `told` is what is said, the first of those that say the same.
    """

    risk: Risk
    words: str
    where: str = ""
    place: Source | None = None
    told: Statement | Meaning | None = None


def entries(review: Review) -> list[Entry]:
    """What a change does, the highest class first; of a class, what it means to people before what it is."""
    found = [*_meanings(review.meanings), *(_row(row, review) for row in _quotas(rows(review.statements)))]
    return sorted(found, key=lambda entry: -entry.risk.rank)


def _meanings(meanings: tuple[Meaning, ...]) -> Iterator[Entry]:
    folded: dict[tuple[Risk, str], list[Meaning]] = {}
    for each in meanings:
        folded.setdefault((each.risk, each.words), []).append(each)
    for (risk, words), same in folded.items():
        yield Entry(risk, words, _clusters(tuple(dict.fromkeys(each.cluster for each in same))), told=same[0])


def waves(review: Review) -> list[str]:
    """What happens to the order of Argo CD, said once for all clusters in which it is the same."""
    folded: dict[str, list[Meaning]] = {}
    for each in review.waves:
        folded.setdefault(of_any(each.words, each.cluster), []).append(each)
    found = []
    for words, same in folded.items():
        where = _clusters(tuple(dict.fromkeys(each.cluster for each in same)))
        found.append((words if len(same) > 1 else same[0].words) + (f"  [{where}]" if where else ""))
    return found


def _quotas(found: Iterable[Row]) -> list[Row]:
    """Rows, those about the quota of one resource on one flavor as one: what is its own, borrowed and lent."""
    kept: list[Row] = []
    same: dict[tuple[object, ...], list[tuple[Row, re.Match[str]]]] = {}
    for row in found:
        match = _QUOTA.fullmatch(row.words) if row.statement.rule == "quota" else None
        if match is None:
            kept.append(row)
            continue
        group = same.setdefault((row.refs, row.clusters, match["where"]), [])
        group.append((row, match))
        if len(group) == 1:
            kept.append(row)  # where the first of them stands
    for group in same.values():
        if len(group) > 1:
            first = group[0][0]
            told = ", ".join(f"{match['what']} {match['values']}" for _, match in group)
            kept[kept.index(first)] = replace(first, words=f"{group[0][1]['where']}: {told}")
    return kept


def _row(row: Row, review: Review) -> Entry:
    first = row.statement
    subject = named(row.refs[0])
    if len(row.refs) > 1:
        names = ", ".join(short(ref) for ref in row.refs[:3])
        more = f" and {len(row.refs) - 3} more" if len(row.refs) > 3 else ""
        kind = row.refs[0].kind
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
        subject = f"{counted(len(row.refs), kind, plural)} ({names}{more})"
    words = row.words
    if len(row.refs) > 1:
        head, blank, rest = words.partition(" ")
        words = f"{_PLURAL.get(head, head)}{blank}{rest}"
    colon = "" if first.words.startswith(("removed", "renamed", "new", "moves", "gets ", "loses ")) else ":"
    where = _clusters(row.clusters) if len(review.clusters) > 1 else ""
    return Entry(first.risk, f"{subject}{colon} {words}", where, first.place, first)


def _clusters(names: tuple[str, ...]) -> str:
    known = [name for name in names if name]
    if len(known) > 3:
        return f"×{len(known)}"
    return ", ".join(known)


def named(ref: Ref) -> str:
    """`Kind namespace/name`; the group only tells programs apart."""
    return f"{ref.kind} {short(ref)}"


def short(ref: Ref) -> str:
    """`namespace/name`."""
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def verdict(review: Review) -> str:
    """The verdict in one sentence."""
    sentences = {
        Risk.DESTRUCTIVE: "applying this destroys something that a revert does not bring back",
        Risk.SECURITY: "applying this changes who may do what, or what a policy refuses",
        Risk.TRAFFIC: "applying this changes what users get: routes, canaries, probes or alerts",
        Risk.CAPACITY: "applying this changes who gets which accelerators, or where pods run",
        Risk.RESTART: _restarted(review),
        Risk.UNKNOWN: "nothing is known of what this does",
        Risk.NONE: "applying this changes nothing that runs",
    }
    return sentences[review.risk]


_OTHER = {
    "arguments": "other arguments",
    "command": "another command",
    "image-tag": "another image",
    "environment": "another environment",
    "configuration": "another configuration",
}
"""What pods start with, by the rule that says so."""


def _restarted(review: Review) -> str:
    """What pods come back with: the same only where an order, or notes of the template, are all that differs."""
    found = [each for each in review.statements if each.risk is Risk.RESTART]
    other = [words for rule, words in _OTHER.items() if any(each.rule == rule for each in found)]
    known = all(each.rule in _OTHER or each.rule == "order" or ".metadata." in each.path for each in found)
    if not known:
        return "applying this restarts pods, and changes what they start with"
    if not other:
        return "applying this restarts pods, and changes nothing else"
    if other == [_OTHER["configuration"]]:
        return "applying this gives pods another configuration, from their next start on"
    return f"applying this restarts pods with {' and '.join(filter(None, (', '.join(other[:-1]), other[-1])))}"


def totals(review: Review) -> str:
    """Objects by what happened to them."""
    counts = review.counts
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (counts.added, "added"),
            (counts.changed, "changed"),
            (counts.renamed, "renamed"),
            (counts.removed, "removed"),
            (counts.form, "written otherwise only"),
            (counts.moved, "in another file"),
            (counts.same, "the same"),
        )
        if number
    ]
    clusters = f" · {counted(len(review.clusters), 'cluster')}" if len(review.clusters) > 1 else ""
    return (", ".join(parts) or "no objects") + clusters


def findings(review: Review) -> str:
    """The findings in one line."""
    judged = review.findings
    failing = sum(finding.fails for finding in judged.new)
    errors = f" ({counted(failing, 'error')})" if failing else ""
    scope = "" if judged.whole else " · only the objects that changed were checked, each by itself"
    return f"{len(judged.new)} new{errors}, {len(judged.fixed)} fixed, {judged.old} as before{scope}"
