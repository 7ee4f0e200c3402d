"""Comments that silence findings: `# blueprint: ignore CODE [CODE …] reason`.

At the end of a line a comment is about that line, alone on a line about the next one; and in both cases about all that
lies below that line's field. On the first line of a document it is about the whole document. A code may be cut short:
`NAM` stands for all of its family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from blueprint.catalog.rules import rules
from blueprint.check.documents import documents, first_content
from blueprint.finding import Confidence, Finding, Severity, Source

_COMMENT = re.compile(r"#[ \t]*blueprint: ignore\b(.*)")
_CODE = re.compile(r"[A-Z]{2,3}\d{0,3}")
_INDENT = re.compile(r"[ ]*")


@dataclass(frozen=True, slots=True)
class Comment:
    """Codes that one comment silences, from line `first` to line `last` (from 1)."""

    line: int
    codes: tuple[str, ...]
    first: int
    last: int

    def silences(self, finding: Finding) -> bool:
        """Whether it is about this finding; what is said of a file as a whole stands on its first document."""
        line = finding.source.line if finding.source else 0
        return self.first <= max(line, 1) <= self.last and finding.code.startswith(self.codes)


def comments(text: str) -> Iterator[Comment]:
    """Every comment of a file with what it is about; without codes, where it names none."""
    lines = text.split("\n")
    starts = {
        start + content: start + chunk.rstrip().count("\n")
        for start, chunk, _ in documents(text)
        if (content := first_content(chunk)[0]) >= 0
    }
    first_start = min(starts, default=0)
    following = _following(lines)
    for number, line in enumerate(lines):
        match = _COMMENT.search(line)
        if match is None:
            continue
        codes = _codes(match[1])
        target = number if line[: match.start()].strip() else following[number]
        if target is None:
            continue
        last = starts[target] if target in starts else _end(lines, target)
        first = 0 if target == first_start else target
        yield Comment(number + 1, codes, first + 1, last + 1)


def silenced(
    findings: Iterable[Finding], files: Iterable[str], text: Callable[[str], str | None]
) -> tuple[list[Finding], int]:
    """The findings that no comment silences, with what is wrong with comments; and how many are silenced.

    `files` are those that may hold such comments, `text` gives what stands in one, None where it is gone.
    """
    about = {file: list(comments(written)) for file in files if (written := text(file)) is not None}
    kept = []
    count = 0
    for finding in findings:
        file = finding.source.file if finding.source else ""
        if any(comment.silences(finding) for comment in about.get(file, ())):
            count += 1
        else:
            kept.append(finding)
    kept += (problem for file, found in about.items() for comment in found for problem in _problems(file, comment))
    return kept, count


def _codes(rest: str) -> tuple[str, ...]:
    codes: list[str] = []
    for word in rest.replace(",", " ").split():
        # Behind a code a word in capitals that is no family is the reason: GPU, or NO.
        if not _CODE.fullmatch(word) or (codes and word.isalpha() and word not in _families()):
            break
        codes.append(word)
    return tuple(codes)


@cache
def _families() -> frozenset[str]:
    return frozenset(code.rstrip("0123456789") for code in rules())


def _begins_one(code: str) -> bool:
    return any(known.startswith(code) for known in rules())


def _following(lines: list[str]) -> list[int | None]:
    """For each line the next one with content; a separator is passed over only at the top of a file."""
    found: list[int | None] = [None] * len(lines)
    following: int | None = None
    for at in range(len(lines) - 1, -1, -1):
        found[at] = following
        line = lines[at].strip()
        if line and not line.startswith("#"):
            following = None if line.startswith("---") else at
    first = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if first is not None and lines[first].startswith("---"):
        found[:first] = [found[first]] * first
    return found


def _end(lines: list[str], start: int) -> int:
    """The last line of what lies below the field or item on a line."""
    indent = _INDENT.match(lines[start])
    depth = indent.end() if indent else 0
    item = lines[start][depth : depth + 2] in ("-", "- ")
    end = start
    for at in range(start + 1, len(lines)):
        line = lines[at]
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        own = len(line) - len(line.lstrip(" "))
        if own < depth or (own == depth and (item or not bare.startswith("- "))) or line.startswith("---"):
            break
        end = at
    return end


def _problems(file: str, comment: Comment) -> Iterator[Finding]:
    unknown = [code for code in comment.codes if not _begins_one(code)]
    if not comment.codes:
        message = "this comment silences nothing: it names no code"
    elif unknown:
        message = f"this comment names {', '.join(unknown)}, and no rule has such a code"
    else:
        return
    fix = "write `# blueprint: ignore CODE reason`; `blueprint rules` lists the codes"
    yield Finding("YML304", message, Source(file, comment.line), Severity.WARNING, Confidence.STYLE, fix=fix)
