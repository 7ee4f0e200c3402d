"""One mistake, one finding: what many specs say of the same wrong name is told once, where it was most likely made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from blueprint.finding import Finding, Source
from blueprint.spec.nearest import nearest

_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference to a name that nothing bears: `what` is in front of the name, `among` what there is instead."""

    name: str
    what: str
    among: tuple[str, ...]
    finding: Finding


@dataclass(frozen=True, slots=True)
class Declaration:
    """A name that something bears, where it is written, and its path there."""

    place: Source
    path: str


def missing(found: Iterable[Missing], unused: dict[tuple[str, str], Declaration]) -> Iterator[Finding]:
    """One finding for each name that is missing.

    Where several places name it, and a similar name is borne by something that no place names (`unused`, by `what` and
    name), the slip is in that name. Else it is told where it is written first.
    """
    groups: dict[tuple[str, str], list[Missing]] = {}
    for each in found:
        groups.setdefault((each.what, each.name), []).append(each)
    for (what, name), group in groups.items():
        near = nearest(name, group[0].among)
        declared = unused.get((what, near)) if near and len(group) > 1 else None
        if declared is None:
            yield told_once([each.finding for each in group])
            continue
        message = f"nothing names {near} ({what}), and {len(group)} places name {name}, which is not there"
        places = _also([each.finding for each in group])
        yield Finding(
            group[0].finding.code,
            f"{message}{places}; did you mean {name}?",
            declared.place,
            path=declared.path,
            fix=f"write {name}",
        )


def told_once(found: list[Finding]) -> Finding:
    """The first of several findings about one mistake, with the places of the others."""
    return replace(found[0], message=found[0].message + _also(found[1:])) if len(found) > 1 else found[0]


def _also(found: list[Finding]) -> str:
    places = list(dict.fromkeys(str(each.source) for each in found if each.source))
    more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    return f" (also in {', '.join(places[:_PLACES])}{more})" if places else ""
