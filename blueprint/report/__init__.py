"""Findings and what a run did, for people and for programs."""

from blueprint.report.totals import Application, Changes, Rule, Rules, Totals

__all__ = ["Application", "Changes", "Rule", "Rules", "Totals"]
