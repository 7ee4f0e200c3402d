"""One request to a forge's REST interface: with the token, without redirects, waiting where it is asked to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blueprint.errors import EnvironmentLacks

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from blueprint.deliver.forge import Forge

_SECONDS = 30.0
_LONGEST = 120.0
"""Seconds that a run waits for a limit to pass; a longer one ends it."""
_TRIES = 4
_PAGES = 100
"""Pages that are looked through: ten thousand comments."""
_HEADERS = {
    "gitlab": ("PRIVATE-TOKEN", ""),
    "gitea": ("Authorization", "token "),
    "github": ("Authorization", "Bearer "),
}

Pause = Callable[[float], None]


class Answered(EnvironmentLacks):
    """A forge said no: `status` is that of HTTP."""

    def __init__(self, message: str, *, where: str, hint: str, status: int) -> None:
        super().__init__(message, where=where, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON of an answer, and whether the list in it goes on on another page."""

    value: Any
    more: bool = False


def pages(at: Forge, path: str, *, pause: Pause = time.sleep) -> list[Any]:
    """A list over all its pages; `path` has a query already.

    Raises EnvironmentLacks as `call` does, and for what is no list: a proxy, or another program at that address.
    """
    found: list[Any] = []
    for page in range(1, _PAGES + 1):
        answer = call(at, "GET", f"{path}&page={page}", pause=pause)
        if not isinstance(answer.value, list):
            raise EnvironmentLacks(f"{at.kind} answers with no list", where=at.api, hint="see --forge and --forge-api")
        found += answer.value
        if not answer.more:
            break
    return found


def call(
    at: Forge, method: str, path: str, document: Mapping[str, str] | None = None, *, pause: Pause = time.sleep
) -> Answer:
    """Ask a forge. A limit of requests is waited for as long as the forge says, up to two minutes.

    Raises EnvironmentLacks where it does not answer, and Answered where it says no: in its words, without the token.
    """
    for last in range(_TRIES):
        answer = _once(at, method, path, document)
        if answer.status < 300:
            return Answer(_json(at, answer), 'rel="next"' in answer.headers.get("Link", ""))
        wait = _wait(answer, last, safe=method == "GET")
        if wait is None or last == _TRIES - 1:
            raise _refused(at, method, path, answer)
        pause(wait)
    raise AssertionError  # the last try returns or raises


def _once(at: Forge, method: str, path: str, document: Mapping[str, str] | None) -> BaseHTTPResponse:
    import urllib3

    name, prefix = _HEADERS[at.kind]
    headers = {name: f"{prefix}{at.token}", "Accept": "application/json", "User-Agent": "blueprint"}
    try:
        # No redirects: a token goes to the host that it was meant for, and to no other.
        return urllib3.request(
            method, at.api + path, headers=headers, json=document, timeout=_SECONDS, retries=False, redirect=False
        )
    except urllib3.exceptions.HTTPError as error:
        raise EnvironmentLacks(f"{at.kind} does not answer: {_plain(at, str(error))}", where=at.api) from None


def _json(at: Forge, answer: BaseHTTPResponse) -> Any:  # noqa: ANN401 - JSON
    if not answer.data:
        return None
    try:
        return answer.json()
    except ValueError as error:
        raise EnvironmentLacks(f"{at.kind} does not answer in JSON: {_plain(at, str(error))}", where=at.api) from None


def _wait(answer: BaseHTTPResponse, tried: int, *, safe: bool) -> float | None:
    """Seconds until another try, None where it would be of no use.

    GitHub: 403 or 429 with `retry-after`, or with `x-ratelimit-remaining: 0` and `x-ratelimit-reset`, a time
    (docs.github.com, rate limits for the REST API). GitLab and Gitea: 429 with `Retry-After`.
    """
    if answer.status in (403, 429):
        if (said := answer.headers.get("Retry-After", "")).isdecimal():
            wait = float(said)
        elif answer.headers.get("X-RateLimit-Remaining") == "0":
            reset = answer.headers.get("X-RateLimit-Reset", "")
            wait = max(float(reset) - time.time(), 0.0) + 1 if reset.isdecimal() else 2.0**tried
        elif answer.status == 429:
            wait = 2.0**tried
        else:
            return None
        return wait if wait <= _LONGEST else None
    # What was only read can be read again; a comment that is written twice would be two.
    return 2.0**tried if safe and answer.status in (502, 503, 504) else None


def _refused(at: Forge, method: str, path: str, answer: BaseHTTPResponse) -> Answered:
    said = _plain(at, answer.data.decode("utf-8", "replace"))[:300]
    limited = answer.status == 429 or answer.headers.get("X-RateLimit-Remaining") == "0"
    hint = {401: "the token is wrong or has expired", 422: "the forge cannot take what was sent"}.get(answer.status, "")
    if limited:
        hint = "the limit of requests is reached: run again later"
    elif answer.status in (403, 404):
        hint = "the token may not do that, or it is not there"
    return Answered(
        f"{at.kind} answers {answer.status}: {said}",
        where=f"{method} {at.api}{path.partition('?')[0]}",
        hint=hint,
        status=answer.status,
    )


def _plain(at: Forge, words: str) -> str:
    return words.replace(at.token, "…")
