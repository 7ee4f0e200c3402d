"""The file with arrivals: which jobs come, how many of them, when, and for how long they run.

A list in YAML or JSON (or a mapping with the list as `arrivals`), or CSV with a header of the same names:

    - job: TrainJob/pretrain     # KIND/NAME among the objects, or `object:` with a job written here
      namespace: research
      at: 0s                     # after the start: 90s, 1h30m or a number of seconds; or 2026-11-30T08:00:00Z
      count: 20
      every: 10m                 # between two of them; without it all come at once
      duration: 4h               # of one run; without it what the label max-exec-time-seconds allows, else no end
      checkpoint: 30m            # where a preempted run goes on; without it from the beginning
      priority: high             # a WorkloadPriorityClass or a number
      queue: training            # another LocalQueue than the job names
    - {queue: training, namespace: research, pods: 4, requests: {cpu: 16, nvidia.com/gpu: 8}, at: 1h, duration: 2h}

In CSV a column `requests.<resource>` holds one of the requests of a pod.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from blueprint.admission.amounts import quantity
from blueprint.errors import UsageError
from blueprint.finding import Finding, Source
from blueprint.spec import fields
from blueprint.spec.base import Duration, Model, fault
from blueprint.spec.positions import Place, Segment
from blueprint.spec.reader import Text, read

MOST = 200_000
"""More workloads than this are not simulated."""

_MOST_BYTES = 64 << 20
_NUMBERS = ("count", "pods")
_SECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]{1,3})?")


def _span(value: object) -> object:
    """A number is seconds, as in most traces."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value}s" if value >= 0 else value
    return f"{value}s" if isinstance(value, str) and _SECONDS.fullmatch(value) else value


def _moment(value: object) -> object:
    """A time of day with its date and zone, or what is left to `_span`."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        found = datetime.fromisoformat(value)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return value


Span = Annotated[Duration, BeforeValidator(_span)]


class Arrival(Model):
    """One row: `count` workloads of one shape."""

    job: str | None = None
    """KIND/NAME of a job among the objects."""
    object: dict[str, Any] | None = None
    """A job, written here."""
    pods: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Pods of a job that is only given by what it asks for."""
    requests: dict[str, str | int | float] | None = None
    """What one of these pods asks for."""
    namespace: str = ""
    queue: str = ""
    at: Annotated[datetime | timedelta, BeforeValidator(_moment)] | Span = timedelta()
    count: Annotated[int, Field(ge=1, le=MOST)] = 1
    every: Span | None = None
    duration: Span | None = None
    checkpoint: Span | None = None
    priority: int | str | None = None

    @model_validator(mode="after")
    def _names_one_job(self) -> Arrival:
        given = [name for name in ("job", "object", "pods") if getattr(self, name) is not None]
        if len(given) != 1:
            what = f"{' and '.join(given)} exclude each other" if given else "no job is given"
            raise fault(given[-1] if given else "job", f"{what}: write job, object, or pods with requests")
        if (self.requests is None) != (self.pods is None):
            raise fault("requests", "pods and requests belong together")
        for name, value in (self.requests or {}).items():
            if (amount := quantity(value)) is None or amount < 0:
                raise fault("requests", f"{value} of {name} is no quantity such as 8, 500m or 64Gi")
        if self.pods is not None and not self.queue:
            raise fault("queue", "pods without a job need the queue that they wait in")
        return self


class Arrivals(Model):
    """All rows."""

    arrivals: tuple[Arrival, ...]


def load(path: Path) -> tuple[list[tuple[Arrival, Source]], list[Finding]]:
    """The rows with their places, and what is wrong with the file. Raises UsageError where it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"the arrivals cannot be read: {error.strerror or error}", where=str(path)) from error
    if len(content) > _MOST_BYTES:
        raise UsageError("the arrivals are larger than 64 MiB", where=str(path))
    if path.suffix.lower() == ".csv":
        texts, found = _csv(content, str(path))
    else:
        reading = read(content, str(path))
        texts, found = reading.texts, [reading.finding] if reading.finding else []
    rows: list[tuple[Arrival, Source]] = []
    for text in texts:
        rows += _rows(text, found)
    if not rows and not found:
        found.append(Finding("SIM101", "there are no arrivals in the file", Source(str(path), 1)))
    if not found:
        found += _together(rows)
    return rows, found


def _rows(text: Text, found: list[Finding]) -> list[tuple[Arrival, Source]]:
    """The rows of one document; a list stands for a mapping with the list as `arrivals`."""
    if isinstance(text.data, list):
        top = replace(text.place, children={"arrivals": text.place})
        text = replace(text, data={"arrivals": text.data}, place=top)
    found += text.findings
    try:
        parsed = Arrivals.model_validate_json(orjson.dumps(text.data), by_alias=True, by_name=False)
    except ValidationError as error:
        found += fields.findings(error, Arrivals, text)
        return []
    places = (text.place.child("arrivals") or text.place).children or {}
    return [
        (row, Source(text.file, place.key_line if (place := places.get(number)) else text.place.line))
        for number, row in enumerate(parsed.arrivals)
    ]


def _together(rows: list[tuple[Arrival, Source]]) -> list[Finding]:
    """What is wrong with the rows as a whole."""
    (first, _), *rest = rows
    for row, source in rest:
        if isinstance(row.at, datetime) is not isinstance(first.at, datetime):
            message = "one row gives a time of day, another one a time after the start: nothing says which is first"
            return [Finding("SIM102", message, source, path="at", fix="write both in one form")]
    total = 0
    for row, source in rows:
        total += row.count
        if total > MOST:
            return [Finding("SIM103", f"more than {MOST:,} workloads are not simulated", source, path="count")]
    return []


def _csv(content: bytes, file: str) -> tuple[list[Text], list[Finding]]:
    """Rows of a table as a document; a cell without text is left out."""
    try:
        table = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = [name.strip() for name in next(table, [])]
        data: list[dict[str, Any]] = []
        wrong: list[Finding] = []
        places: dict[Segment, Place] = {}
        for cells in table:
            if not any(cells):
                continue
            line = table.line_num
            if len(cells) > len(header):
                message = f"{len(cells)} cells in a row, but {len(header)} columns in the header"
                wrong.append(Finding("SIM101", message, Source(file, line)))
                continue
            row: dict[str, Any] = {}
            below: dict[Segment, Place] = {}
            for name, cell in zip(header, cells, strict=False):
                if cell.strip():
                    _cell(row, name, cell.strip())
                    below[name.partition(".")[0]] = Place(line, 1, line, 1, text=cell)
            places[len(data)] = Place(line, 1, line, 1, children=below)
            data.append(row)
    except (UnicodeDecodeError, csv.Error) as error:
        line = table.line_num if isinstance(error, csv.Error) else 1
        return [], [Finding("SIM101", f"no table of comma-separated values: {error}", Source(file, line))]
    texts = [Text(file, Place(1, 1, 1, 1, children=places), data)] if data or not wrong else []
    return texts, wrong


def _cell(row: dict[str, Any], name: str, cell: str) -> None:
    if name.startswith("requests."):
        row.setdefault("requests", {})[name.removeprefix("requests.")] = cell
    elif name in _NUMBERS or name == "priority":
        row[name] = int(cell) if re.fullmatch(r"-?[0-9]{1,12}", cell) else cell
    else:
        row[name] = cell


def seconds(written: str) -> float:
    """The seconds of a span such as 7d, as rows write it. Raises UsageError for what is none."""
    try:
        found: timedelta = TypeAdapter(Span).validate_python(written)
    except ValidationError as error:
        raise UsageError(f"{written} is no span of time", hint="write 90s, 10m, 1h30m or 7d") from error
    return found.total_seconds()
