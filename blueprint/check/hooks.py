"""What hooks of containers do, as far as their commands tell."""

from __future__ import annotations

import re

from blueprint.check.shapes import Body, mapping, number, texts

_SLEEP = re.compile(r"(?<![\w./-])(?:/usr)?(?:/bin/)?sleep\s+(\d+)([smh]?)(?![\w.])")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def sleeps(hook: Body) -> int | None:
    """For how many seconds a hook sleeps at least, None where it does not say so."""
    written = number(mapping(hook.get("sleep")).get("seconds"))
    if written is not None:
        return written
    words = " ".join(texts(mapping(hook.get("exec")).get("command")))
    if "||" in words or re.search(r"\b(?:if|while|until|for|case)\b", words):
        return None  # what happens then is not known
    found = [int(amount) * _UNITS[unit] for amount, unit in _SLEEP.findall(words)]
    return sum(found) if found else None
