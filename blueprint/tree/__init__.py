"""Rendered files and the folder that Git keeps: what is owned, what would change, and a switch in one step."""

from blueprint.tree.lock import Lock, Made, Part
from blueprint.tree.plan import Plan, plan, verify
from blueprint.tree.write import recover, tidy, write

__all__ = ["Lock", "Made", "Part", "Plan", "plan", "recover", "tidy", "verify", "write"]
