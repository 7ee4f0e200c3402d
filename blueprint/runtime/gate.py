"""The image gate's service: Gatekeeper asks by digest, and gets who signed the image and when, or why nobody did.

It reads registries and a trusted root, and nothing else: no Kubernetes API, no token, no disk. Every failure is an
error for its image; the rule in the cluster lets in only images with a value. So a gate that is down, slow or full
refuses, and lets nothing in.

    python -m blueprint.runtime.gate CONFIG

Source of the protocol: open-policy-agent/frameworks constraint/pkg/externaldata/{request,response}.go.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from blueprint.attest.bundle import ByIdentity
from blueprint.attest.images import Signature, recent, verify_image
from blueprint.attest.refusal import Refused, said
from blueprint.attest.registry import Registry, named, reference
from blueprint.attest.trust import Identity, trusted_root
from blueprint.errors import BlueprintError
from blueprint.runtime.configuration import load
from blueprint.runtime.gateconfig import GateConfig
from blueprint.runtime.service import Counters, Service

API_VERSION: Final = "externaldata.gatekeeper.sh/v1beta1"
_LOG: Final = logging.getLogger("image-gate")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an image: a signature, or the code and words of a refusal."""

    signature: Signature | None = None
    code: str = ""
    reason: str = ""


_LATE: Final = Answer(code="SIG402", reason="the gate had no time left for it")
_LONGEST: Final = 600
"""Characters of a reason."""


class Gate:
    """Answers for images, with a cache; safe to be asked by several threads."""

    def __init__(
        self, config: GateConfig, verify: Callable[[str], Signature], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config, self._verify, self._clock = config, verify, clock
        self._prefixes = tuple(map(named, config.prefixes))
        self._cache: OrderedDict[str, tuple[float, Answer]] = OrderedDict()
        self._lock = threading.Lock()
        self.counters = Counters()

    @classmethod
    def of(cls, config: GateConfig) -> Gate:
        """The gate of a configuration. Raises UsageError for a trusted root that is none."""
        identities = [Identity(signer.subject, signer.issuer) for signer in config.signers]
        prover = ByIdentity(trusted_root(Path(config.trusted_root)), identities)
        given = config.registries
        registry = Registry(
            plain=given.plain_http,
            authority=Path(given.authority) if given.authority else None,
            credentials=Path(given.credentials) if given.credentials else None,
            seconds=given.timeout.total_seconds(),
        )
        return cls(config, lambda text: verify_image(text, registry, prover, max_age=config.max_age))

    def answer(self, image: str) -> Answer:
        """What is known of one image. Never raises."""
        try:
            reference(image)  # what is none is neither kept nor repeated, however long it is
        except Refused as refused:
            return self._counted(Answer(code=refused.code, reason=refused.message[:_LONGEST]))
        if not named(image).startswith(self._prefixes):
            return self._counted(Answer(code="SIG404", reason=f"{image} is under no prefix that this gate looks at"))
        now = self._clock()
        with self._lock:
            ends, kept = self._cache.get(image, (0.0, Answer()))
        if now < ends and self._young(kept):
            self.counters.add("cache_hits_total")
            return self._counted(kept)
        found = self._asked(image)
        lifetime = self._config.cache.signed if found.signature else self._config.cache.refused
        with self._lock:
            self._cache[image] = (now + lifetime.total_seconds(), found)
            self._cache.move_to_end(image)
            while len(self._cache) > self._config.cache.entries:
                self._cache.popitem(last=False)
        return self._counted(found)

    def respond(self, body: bytes) -> dict[str, Any]:
        """The ProviderResponse to a ProviderRequest; what cannot be understood is a system error, which refuses."""
        try:
            keys = _keys(json.loads(body), self._config.limits.keys)
        except (ValueError, RecursionError) as error:
            self.counters.add("bad_requests_total")
            return _response([], f"the request cannot be understood: {said(error)}")
        ends = self._clock() + self._config.limits.answer.total_seconds()
        return _response([_item(key, self.answer(key) if self._clock() < ends else _LATE) for key in keys], "")

    def _asked(self, image: str) -> Answer:
        try:
            return Answer(self._verify(image))
        except Refused as refused:
            return Answer(code=refused.code, reason=refused.message)
        except Exception as error:
            # Whatever else goes wrong is a refusal, too; the words go to our log, without secrets.
            _LOG.warning("%s: %s", image, said(error))
            return Answer(code="SIG402", reason="the gate could not verify it")

    def _young(self, kept: Answer) -> bool:
        """Whether a kept image is still within the window: it ages while it is kept."""
        if kept.signature is None:
            return True
        try:
            recent("", kept.signature.built_at, self._config.max_age, datetime.now(UTC))
        except Refused:
            return False
        return True

    def _counted(self, answer: Answer) -> Answer:
        self.counters.add("answers_total", result="signed" if answer.signature else answer.code)
        return answer


def _keys(request: Any, most: int) -> list[str]:  # noqa: ANN401 - JSON
    if not isinstance(request, dict) or request.get("kind") != "ProviderRequest":
        raise ValueError("it is no ProviderRequest")
    asked = request.get("request")
    keys = asked.get("keys") if isinstance(asked, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError("it has no list of keys")
    if len(keys) > most:
        raise ValueError(f"it asks for more than {most} images")
    return keys


def _item(key: str, answer: Answer) -> dict[str, Any]:
    if answer.signature:
        return {"key": key, "value": answer.signature.document()}
    return {"key": key, "error": f"{answer.code}: {answer.reason}"}


def _response(items: Sequence[dict[str, Any]], problem: str) -> dict[str, Any]:
    response = {"idempotent": True, "items": list(items), "systemError": problem}
    return {"apiVersion": API_VERSION, "kind": "ProviderResponse", "response": response}


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM; 2 for a wrong configuration."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if len(arguments) != 1:
        print("usage: python -m blueprint.runtime.gate CONFIG", file=sys.stderr)  # noqa: T201
        return 2
    try:
        config = load(GateConfig, Path(arguments[0]))
        service = Service(config, Gate.of(config))
    except BlueprintError as error:
        print(f"image-gate: {error.diagnostics()}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    with service:
        _LOG.info("listening on %s, status on %s", service.port, service.status_port)
        ended.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
