"""The rules behind the codes of findings: name, reason, fix and how sure we are."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml_rs

from blueprint.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: `summary` says what is wrong, `why` what comes of it, `fix` what to do.

    `bad`, `good` and `near` are objects in YAML: the first gives the finding, the second is its repaired form, and the
    third only looks like it: it is right, and the rule stays silent; `spared` says why. `sources` say where the rule
    comes from. Where the examples are no plain objects, `form` says what they are: one of `FORMS`.
    """

    code: str
    name: str
    summary: str
    why: str
    fix: str
    confidence: str
    bad: str = ""
    good: str = ""
    near: str = ""
    spared: str = ""
    sources: tuple[str, ...] = ()
    form: str = "objects"


_SESSION = "Lines after `$` are typed, the others are answers; `[1]` is the exit code of what was typed."

FORMS = {
    "objects": ("yaml", ""),
    "files": (
        "yaml",
        "A line such as `# file: settings.yaml` begins a file; behind the name may stand its encoding, its size, how "
        "many files there are (`%` is the number of each), or where a link leads.",
    ),
    "plan": (
        "yaml",
        "What is rendered, before it is put in order: a line such as `# file: queues/shared.yaml` names the "
        "Application and the file, and `# needs:` what an object needs beside what its fields name.",
    ),
    "explain": ("yaml", "The first line says which object `blueprint explain` is asked about."),
    "specs": (
        "yaml",
        "A line such as `# apps/sft.yaml` names the file. The others are those of `tests/bad/platform/` in the "
        "repository: clusters prod and stage, with pools h100, a100, slices, claims and system, and the team search.",
    ),
    "templates": ("yaml", "The file lies in `templates/` of a platform, and replaces ours of that name."),
    "cluster": (
        "yaml",
        "What `blueprint credential issue` sees of the cluster and of the store of its backups, on 2026-12-01 at "
        "12:00 UTC: `# objects` stand in the place of those of their name, `# store` lists the files in the bucket, "
        "`# volumes` is what Velero wrote of volumes, `# audit.log` what the API server wrote down. All else is sound.",
    ),
    "platform": ("console", f"In the folder of a platform. {_SESSION}"),
    "tree": ("console", f"In the folder of a platform that was rendered. {_SESSION}"),
    "signed": (
        "console",
        "In the folder of a platform that was rendered and signed. `$WHO` is short for `--identity`, `--issuer` and "
        "`--trusted-root` of the pipeline that may sign, `$RENDERER` for the first two, `$WITH` for `--trust-config` "
        "and `--identity-token`, by which it signs. `../found/` holds bundles that somebody else could put there, "
        "`../cluster/` and `../store/` what a sound cluster and the store of its backups give, `serving/` a gate of "
        f"images and a pod. {_SESSION}",
    ),
    "evidence": (
        "console",
        f"Beside `good/` and `red/`, the folders that two runs of `blueprint conform --out` left. {_SESSION}",
    ),
    "shell": ("console", _SESSION),
}
"""What examples may be: how Markdown marks them, and what a reader should know of them."""


_OWNED = "path: shown/queues"


def notice(rule: Rule) -> str:
    """What a reader should know of the examples of a rule."""
    if rule.form == "objects" and _OWNED in rule.bad:
        return "The file stands in `shown/queues`, the folder that the Application reads."
    return FORMS[rule.form][1]


@cache
def rules() -> dict[str, Rule]:
    """All rules by code, sorted."""
    folder = resources.files("blueprint.catalog").joinpath("data/rules")
    found: dict[str, Rule] = {}
    for file in folder.iterdir():
        if file.name.endswith(".yaml"):
            rows = yaml_rs.loads(file.read_text("utf-8"), parse_datetime=False)
            for row in rows if isinstance(rows, list) else ():
                found[row["code"]] = _rule(row)
    return dict(sorted(found.items()))


def _rule(row: dict[str, Any]) -> Rule:
    """A row; its `good` and its `near` are texts, or what to put in the place of parts of `bad`."""
    shown = {name: _changed(row["bad"], row[name]) for name in ("good", "near") if name in row}
    return Rule(**row | shown | {"sources": tuple(row.get("sources", ()))})


def _changed(text: str, change: str | dict[str, str]) -> str:
    if isinstance(change, str):
        return change
    for old, new in change.items():
        text = text.replace(old, new)
    return text


def overview() -> str:
    """One line for each rule."""
    return "".join(f"{rule.code}  {rule.confidence:<7}  {rule.name:<36}  {rule.summary}\n" for rule in rules().values())


def find(code: str) -> Rule:
    """The rule of a code, in capitals or not, or of a name. Raises UsageError for one that does not exist."""
    known = rules()
    rule = known.get(code.upper()) or next((rule for rule in known.values() if rule.name == code), None)
    if rule is None:
        close = difflib.get_close_matches(code.upper(), known, 1)
        hint = f"did you mean {close[0]}?" if close else "`blueprint rules` lists them all"
        raise UsageError(f"no rule has the code {code}" if code else "an empty code", hint=hint)
    return rule


def describe(code: str) -> str:
    """A page about one rule. Raises UsageError for a code that does not exist."""
    rule = find(code)
    words = [f"{rule.code} {rule.name} ({rule.confidence})", rule.summary, rule.why]
    parts = [textwrap.fill(part, 100) for part in words]
    if rule.bad and notice(rule):
        parts.append(textwrap.fill(notice(rule), 100))
    for title, example in (("bad:", rule.bad), ("good:", rule.good), (f"near miss: {rule.spared}", rule.near)):
        if example:
            head = textwrap.fill(title, 100)
            parts.append(f"{head}\n{textwrap.indent(example.rstrip(), '    ')}")
    parts.append(textwrap.fill(f"fix: {rule.fix}", 100))
    if rule.sources:
        parts.append("sources:\n" + textwrap.indent("\n".join(rule.sources), "    "))
    return "\n\n".join(parts) + "\n"
