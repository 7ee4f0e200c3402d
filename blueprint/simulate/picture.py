"""An outcome as one SVG file that stands by itself: use of each flavor over time, below it who waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from blueprint.admission.amounts import shown
from blueprint.simulate import Simulation
from blueprint.simulate.measure import Gauge, Steps
from blueprint.simulate.run import Outcome
from blueprint.simulate.summary import POINTS, series, share
from blueprint.simulate.text import span

_LEFT, _WIDTH, _HEIGHT, _GAP, _TOP = 150, 720, 90, 34, 46
_MOST_MARKS = 500
#: Colours that people who see few colours tell apart (Okabe and Ito).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#222}.h{font-size:15px;font-weight:600}.m{fill:#666}
.f{fill:#f4f4f4;stroke:#ccc}.u{fill:#0072b2;opacity:.75}.l{fill:#d55e00}.q{stroke:#222;stroke-dasharray:4 3}
.p{stroke:#d55e00;stroke-width:1}.w{fill:none;stroke-width:1.5}
@media (prefers-color-scheme:dark){text{fill:#ddd}.m{fill:#999}.f{fill:#1d1d1d;stroke:#444}.q{stroke:#ddd}}
"""


def svg(found: Simulation) -> str:
    """The picture. Raises ValueError where nothing was simulated."""
    if found.outcome is None:
        raise ValueError("nothing was simulated")
    outcome = found.outcome
    gauges = [gauge for gauge in outcome.measures.gauges.values() if gauge.peak]
    steps = outcome.measures.waiting_steps
    waiting = {team: steps[team] for team in sorted(steps) if any(number for _, number in steps[team])}
    panels = len(gauges) + bool(waiting)
    height = _TOP + panels * (_HEIGHT + _GAP) + 14 * max(0, (len(waiting) - 1) // 4) + 24
    title = f"On this inventory: {len(outcome.runs):,} workloads in {span(outcome.end)}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 30} {height}" role="img">',
            f"<title>Use of flavors and waiting workloads, simulated (Kueue {escape(found.kueue)})</title>",
            f"<style>{_STYLE}</style>",
            f'<text class="h" x="12" y="22">{title}</text>',
            *(line for index, gauge in enumerate(gauges) for line in _gauge(outcome, index, gauge)),
            *(_waiting(outcome, len(gauges), waiting) if waiting else ()),
            *_axis(outcome, height - 10),
            "</svg>",
            "",
        )
    )


def _panel(index: int, name: str, note: str) -> Iterator[str]:
    top = _TOP + index * (_HEIGHT + _GAP)
    yield f'<rect class="f" x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}"/>'
    for line, words in enumerate(name.split(" ", 1)):
        yield f'<text x="12" y="{top + 16 + 16 * line}">{escape(words)}</text>'
    yield f'<text class="m" x="{_LEFT + 4}" y="{top + _HEIGHT + 15}">{escape(note)}</text>'


def _gauge(outcome: Outcome, index: int, gauge: Gauge) -> Iterator[str]:
    name, bottom = gauge.key.resource, _TOP + index * (_HEIGHT + _GAP) + _HEIGHT
    used = share(gauge.used_seconds, gauge.most * outcome.end) or 0
    note = f"{used:.0%} of {shown(name, gauge.most)} used"
    if gauge.loose_seconds:
        note += f"; {gauge.loose_seconds / gauge.unit / 3600:,.1f} h idle, but in pieces (orange)"
    yield from _panel(index, f"{gauge.key.flavor} {name}", note)
    most = max(gauge.most, gauge.peak)
    use = series(gauge.used_steps, outcome.end)
    loose = series(gauge.loose_steps, outcome.end)
    yield f'<path class="u" d="{_area(use, [0.0] * POINTS, most, bottom)}"/>'
    if any(loose):
        yield f'<path class="l" d="{_area([a + b for a, b in zip(use, loose, strict=True)], use, most, bottom)}"/>'
    limit = bottom - _HEIGHT * gauge.most / most
    yield f'<path class="q" d="M{_LEFT} {limit:.1f}h{_WIDTH}"/>'
    marks = [each.at for each in outcome.preemptions if gauge.key in each.usage][:_MOST_MARKS]
    if marks:
        yield f'<path class="p" d="{"".join(f"M{_x(at / outcome.end):.1f} {bottom}v6" for at in marks)}"/>'


def _area(above: Sequence[float], below: Sequence[float], most: float, bottom: int) -> str:
    """A closed path between two rows of means."""
    width = _WIDTH / len(above)

    def edge(values: Sequence[float]) -> list[str]:
        ends = ((n, bottom - _HEIGHT * min(1.0, value / most)) for n, value in enumerate(values))
        return [f"{_LEFT + (n + side) * width:.1f} {y:.1f}" for n, y in ends for side in (0, 1)]

    return f"M{'L'.join((*edge(above), *reversed(edge(below))))}Z"


def _waiting(outcome: Outcome, index: int, waiting: Mapping[str, Steps]) -> Iterator[str]:
    bottom = _TOP + index * (_HEIGHT + _GAP) + _HEIGHT
    most = max(number for steps in waiting.values() for _, number in steps)
    yield from _panel(index, "waiting workloads", f"at most {most:,} of one team")
    width = _WIDTH / POINTS
    for number, (team, steps) in enumerate(waiting.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = (
            f"{_LEFT + (n + 0.5) * width:.1f} {bottom - _HEIGHT * value / most:.1f}"
            for n, value in enumerate(series(steps, outcome.end))
        )
        yield f'<path class="w" stroke="{colour}" d="M{"L".join(points)}"/>'
        x, y = _LEFT + 200 + 130 * (number % 4), bottom + 15 + 14 * (number // 4)
        yield f'<text x="{x}" y="{y}" style="fill:{colour}">{escape(team[:18])}</text>'


def _axis(outcome: Outcome, y: int) -> Iterator[str]:
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "start" if part == 0 else "end" if part == 1 else "middle"
        words = span(outcome.end * part) if part else "0"
        yield f'<text class="m" x="{_x(part):.0f}" y="{y}" text-anchor="{anchor}">{words}</text>'


def _x(part: float) -> float:
    return _LEFT + _WIDTH * part
