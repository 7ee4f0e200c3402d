"""Run commands in fresh processes and measure them: wall time, CPU time of the process, its peak memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = str(Path(__file__).with_name("launch.py"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: seconds on the clock, seconds of CPU (user and system), and MiB at the peak; of a pipe, the sum."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True, slots=True)
class Series:
    """Several runs of the same thing."""

    samples: tuple[Sample, ...]

    @property
    def wall(self) -> float:
        """Median seconds on the clock."""
        return statistics.median(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> float:
        """Median seconds of CPU."""
        return statistics.median(sample.cpu for sample in self.samples)

    @property
    def peak(self) -> float:
        """Largest peak, in MiB."""
        return max(sample.peak for sample in self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        """The shortest and the longest seconds on the clock."""
        walls = [sample.wall for sample in self.samples]
        return min(walls), max(walls)


class Failed(Exception):
    """A measured command ended with an error or took too long; the message says which and how."""


def measure(
    *commands: Sequence[str],
    cwd: Path,
    runs: int,
    before: Callable[[int], None] = lambda run: None,
    limit: int = 600,
    warm: bool = True,
) -> Series:
    """Run a command, or a pipe of several, `runs` times; `before` prepares each run and is not measured.

    There is one run more, the first, that does not count: it fills caches of the system and of Python. Without `warm`
    there is none.

    Raises Failed when a command exits with another code than 0, or one run after `limit` seconds.
    """
    samples = []
    for run in range(runs + warm):
        before(run)
        samples.append(_run(commands, cwd, limit))
    return Series(tuple(samples[warm:]))


def _environment(cwd: Path) -> dict[str, str]:
    """Our own, with a place where Python keeps compiled modules, as it does after an installation."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(cwd / "compiled")}


def _run(commands: Sequence[Sequence[str]], cwd: Path, limit: int) -> Sample:
    out, err = cwd / "bench.out", cwd / "bench.err"
    launch = [sys.executable, "-I", "-S", _LAUNCHER, str(limit), str(out), str(err), json.dumps(commands)]
    measured = subprocess.run(
        launch, cwd=cwd, env=_environment(cwd), capture_output=True, text=True, check=True, timeout=2 * limit
    )
    wall, ended = json.loads(measured.stdout)
    for (code, _, _), command in zip(ended, commands, strict=True):
        if code:
            message = (err.read_bytes() or out.read_bytes())[:2000].decode(errors="replace").strip()
            raise Failed(f"{' '.join(command[:3])} … ended with {code}: {message}")
    return Sample(wall, sum(cpu for _, cpu, _ in ended), sum(peak for _, _, peak in ended))
