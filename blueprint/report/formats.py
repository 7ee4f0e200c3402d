"""The formats of reports by name; each is imported when it is asked for."""

from __future__ import annotations

from blueprint.finding import Report
from blueprint.report.totals import Rules, Totals

NAMES = ("markdown", "sarif", "junit", "github", "gitlab")
"""What `written` writes; `text` and `json` need to know more of a run."""


def written(name: str, report: Report, totals: Totals, rules: Rules, version: str) -> str:
    """A report in one of the formats `NAMES`, which ends with a newline; `version` is that of the product."""
    match name:
        case "markdown":
            from blueprint.report.markdown import markdown

            return markdown(report, totals)
        case "sarif":
            from blueprint.report import json, sarif

            return json.dump(sarif.document(report, rules, version))
        case "junit":
            from blueprint.report.junit import junit

            return junit(report, rules)
        case "github":
            from blueprint.report.github import commands

            return commands(report, totals, rules)
        case "gitlab":
            from blueprint.report import gitlab, json

            return json.dump(gitlab.document(report, rules))
        case _:
            raise ValueError(f"no format is called {name}")
