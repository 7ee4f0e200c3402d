"""Why something is not believed: one exception inside this room, a finding outside of it."""

from __future__ import annotations

import re
from typing import Final

from blueprint.finding import Finding, Source

_SECRETS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{4,}(?:\.[\w-]+)*"  # JSON web tokens, whole or cut
    r"|input_value=.*?(?=, input_type)"  # pydantic repeats what it could not read
    r"|(?i:\bbearer\s+)\S+",
    re.DOTALL,
)
_LONGEST: Final = 400


class Refused(Exception):
    """A proof that does not hold; `code` is that of its rule."""

    def __init__(self, code: str, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.fix = code, message, fix

    def finding(self, file: str, path: str = "") -> Finding:
        """The same as a value."""
        return Finding(self.code, self.message, Source(file), path=path, fix=self.fix)


def said(error: BaseException) -> str:
    """What a library says of a failure, in one line, cut, and without keys and tokens that it may repeat."""
    text = " ".join(_SECRETS.sub("(secret left out)", str(error)).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
