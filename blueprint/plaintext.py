"""Credentials that stand in plain text where everybody may read them: known by their form, or by the name they bear.

Forms: docs.github.com "About authentication to GitHub" (ghp_ and its like), docs.gitlab.com token overview (glpat-),
huggingface.co docs/hub/security-tokens (hf_), docs.aws.amazon.com IAM identifiers (AKIA, ASIA), docs.slack.dev token
types (xox.-), RFC 7468 (private keys). What a finding says of one never holds its text.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

_FORMS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"), "a token of Hugging Face"),
    (re.compile(r"(?<![A-Za-z0-9])(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"), "a token of GitHub"),
    (re.compile(r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_\-]{20,}"), "a token of GitLab"),
    (re.compile(r"(?<![A-Za-z0-9])(AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"), "an access key of AWS"),
    (re.compile(r"(?<![A-Za-z0-9])xox[abprs]-[A-Za-z0-9-]{20,}"), "a token of Slack"),
    (re.compile(r"-----BEGIN ([A-Z]+ )*PRIVATE KEY-----"), "a private key"),
)
_NAMES: Final = re.compile(r"(^|_)(TOKEN|SECRET|SECRET_KEY|SECRET_ACCESS_KEY|PASSWORD|PASSWD|API_KEY|APIKEY)$")
#: Words that say how something is done, and what a tool or a person puts in: none of them is a credential.
_PLAIN: Final = re.compile(
    r"(?i)true|false|yes|no|on|off|none|null|auto|required|optional|dummy|empty|token-abc123|\d{1,6}"
    r"|.*(\$[({A-Z_]|\{\{|<[^>]*>|change-?_?me|replace|placeholder|example|your[-_ ]|xxx|\*\*\*).*"
    r"|[./~].*|[a-z][a-z0-9+.\-]*:.*|\S*/\S*\.\S*"
)
_SHORTEST: Final = 6
_URL: Final = re.compile(r"[a-z][a-z0-9+.\-]*://[^\s/?#@]+@")


def by_form(text: str) -> str:
    """What kind of credential is in the text, "" if none that is known by its form."""
    return next((what for form, what in _FORMS if form.search(text)), "") or ("a password" if in_address(text) else "")


def by_name(name: str, value: str) -> bool:
    """Whether a variable is called like a credential and its value is no path, reference or word that is none."""
    if len(value) < _SHORTEST or re.search(r"\s", value):
        return False
    return bool(_NAMES.search(name.upper())) and not _PLAIN.fullmatch(value)


def in_address(text: str) -> bool:
    """Whether an address holds a password: `https://name:password@host`; one to be filled in is none."""
    match = _URL.search(text)
    if match is None:
        return False
    try:
        password = urlsplit(match[0]).password
    except ValueError:
        return False
    return bool(password) and not re.search(r"[$<{*]|^(?i:password|secret|token|changeme|x{3,})$", password or "")
