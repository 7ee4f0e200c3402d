"""Globs as Argo CD and policy engines read them: `*`, `**`, `?`, `[abc]`, `[!a-z]` and `{one,two}`.

Source: github.com/gobwas/glob. Between separators `*` stops; with none it takes everything, as `**` does.
"""

from __future__ import annotations

import re
from functools import lru_cache


def glob(pattern: str, value: str, separators: str = "") -> bool:
    """Whether a pattern takes a value; a pattern that is no glob takes nothing."""
    compiled = _compiled(pattern, separators)
    return compiled is not None and compiled.fullmatch(value) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str, separators: str) -> re.Pattern[str] | None:
    one = f"[^{re.escape(separators)}]" if separators else "."
    parts: list[str] = []
    depth = at = 0
    while at < len(pattern):
        mark = pattern[at]
        at += 1
        if mark == "*":
            stars = len(pattern[at - 1 :]) - len(pattern[at - 1 :].lstrip("*"))
            at += stars - 1
            step = f"{one}*" if stars == 1 else ".*"
        elif mark == "?":
            step = one
        elif mark == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inside = pattern[at:end].replace("\\", "\\\\").replace("[", "\\[")
            negated = inside[0] in "!^"
            step = f"[{'^' if negated else ''}{inside[negated:]}]"
            at = end + 1
        elif mark == "{" and "}" in pattern[at:]:
            step, depth = "(?:", depth + 1
        elif mark == "," and depth:
            step = "|"
        elif mark == "}" and depth:
            step, depth = ")", depth - 1
        elif mark == "\\" and at < len(pattern):
            step, at = re.escape(pattern[at]), at + 1
        else:
            step = re.escape(mark)
        parts.append(step)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        return None
