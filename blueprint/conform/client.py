"""A small typed client of an API server: keep-alive, strict field validation, the answer as it came.

Kinds are found by the server's own discovery, so it works for every kind that is served and asks no table of ours.
Safe to use from several threads.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import urllib3

from blueprint.errors import EnvironmentLacks

JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
_SECONDS = 60.0


class Answer(NamedTuple):
    """What the server said. `body` is a Status object on failure, {} where the answer was not a JSON object."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the request was accepted."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The server's words on a failure, "" where it has none."""
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> list[dict[str, str]]:
        """`{reason, message, field}` of each single mistake, where the server lists them."""
        details = self.body.get("details")
        return list(details.get("causes") or ()) if isinstance(details, dict) else []


@dataclass(frozen=True, slots=True)
class Target:
    """Which object a request is about; the namespace of a cluster-scoped kind is not looked at."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Target:
        """The target that an object names itself; the namespace is `default` where it names none."""
        metadata = body.get("metadata")
        meta = metadata if isinstance(metadata, dict) else {}
        return cls(
            str(body.get("apiVersion", "")),
            str(body.get("kind", "")),
            str(meta.get("namespace") or "default"),
            str(meta.get("name") or ""),
        )


class NotAnswered(EnvironmentLacks):
    """The server did not say, or did not do in time, what was waited for; the message says what."""


class _Resource(NamedTuple):
    plural: str
    namespaced: bool


class Client:
    """Requests to one API server as one user.

    `ca` is a PEM file that its certificate is verified with (the system's authorities without it), `certificate` a
    pair of PEM files that says who we are where no token does. Every write asks for strict field validation.
    Where a kind is not served, the answer is a 404 that says so, as kubectl does, without a request.
    Raises urllib3.exceptions.HTTPError when the server cannot be reached.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        ca: Path | None,
        connections: int = 4,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Accept": JSON} | ({"Authorization": f"Bearer {token}"} if token else {})
        own = tuple(str(file) for file in certificate) if certificate else (None, None)
        self._pool = urllib3.PoolManager(
            maxsize=connections,
            block=True,
            ca_certs=str(ca) if ca else None,
            cert_reqs="CERT_REQUIRED",
            retries=False,
            timeout=_SECONDS,
            cert_file=own[0],
            key_file=own[1],
        )
        self._served: dict[str, dict[str, _Resource]] = {}

    def acting_as(self, user: str, group: str = "system:masters") -> Client:
        """The same connections as somebody else; the group decides what they may do (`system:masters`: everything).

        Needs the right to impersonate.
        """
        other = copy.copy(self)
        other._headers = self._headers | {"Impersonate-User": user, "Impersonate-Group": group}
        return other

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request as it is; `path` begins with a slash."""
        url = f"{self.url}{path}?{urlencode(query)}" if query else f"{self.url}{path}"
        headers = self._headers if body is None else self._headers | {"Content-Type": content_type}
        response = self._pool.request(method, url, body=body, headers=headers)
        try:
            parsed = json.loads(response.data)
        except ValueError:
            parsed = {}
        warnings = tuple(response.headers.getlist("Warning"))
        return Answer(response.status, parsed if isinstance(parsed, dict) else {}, warnings)

    def create(self, body: Mapping[str, Any], *, at: Target | None = None, dry_run: bool = False) -> Answer:
        """POST an object; `at` is where to, if not where the object itself says."""
        return self._write("POST", body, at or Target.of(body), named=False, dry_run=dry_run)

    def replace(self, body: Mapping[str, Any], *, at: Target | None = None, dry_run: bool = False) -> Answer:
        """PUT an object over the one that is there."""
        return self._write("PUT", body, at or Target.of(body), named=True, dry_run=dry_run)

    def apply(
        self, body: Mapping[str, Any], *, at: Target | None = None, manager: str = "blueprint", dry_run: bool = False
    ) -> Answer:
        """Server-side apply, taking over fields that others own."""
        query = {"fieldManager": manager, "force": "true"}
        return self._write("PATCH", body, at or Target.of(body), named=True, dry_run=dry_run, query=query)

    def get(self, target: Target) -> Answer:
        """Read an object, or a list of them where the target has no name."""
        path = self._path(target, named=bool(target.name))
        return path if isinstance(path, Answer) else self.request("GET", path)

    def delete(self, target: Target) -> Answer:
        """Delete an object at once, without waiting for those that it owns."""
        path = self._path(target, named=True)
        if isinstance(path, Answer):
            return path
        return self.request("DELETE", path, query={"propagationPolicy": "Background", "gracePeriodSeconds": "0"})

    def every(self, api_version: str, kind: str, namespace: str = "", *, labels: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, in one namespace or in all; none where the kind is not served.

        Raises NotAnswered where the server refuses.
        """
        answer = self._listed(Target(api_version, kind, namespace), {"labelSelector": labels} if labels else {})
        if not answer.ok and answer.status != 404:
            raise NotAnswered(f"{kind}: {answer.message}")
        items = answer.body.get("items") or []
        return [{**item, "apiVersion": api_version, "kind": kind} for item in items]

    def until(
        self, target: Target, holds: Callable[[dict[str, Any]], bool], seconds: float, what: str
    ) -> dict[str, Any]:
        """Watch one object until `holds(body)`, where {} is an object that is not there; returns that body.

        Without a name, any object of the kind and namespace will do, and absence is not asked about.
        Raises NotAnswered when the seconds are over, saying `what` was waited for and what was there last.
        """
        deadline = time.monotonic() + seconds
        body: dict[str, Any] = {}
        while (left := deadline - time.monotonic()) > 0:
            listed = self._listed(target, _selected(target))
            if not listed.ok:
                raise NotAnswered(f"{what}: {listed.message}")
            # Items of a list do not say their own kind.
            found = [{**item, **_typed(target)} for item in listed.body.get("items") or ()]
            for body in found or ([] if not target.name else [{}]):
                if holds(body):
                    return body
            version = str(listed.body["metadata"]["resourceVersion"])
            for event in self._events(target, version, left):
                body = {} if event["type"] == "DELETED" else event["object"]
                if event["type"] == "ERROR":
                    break  # the version is too old: look again
                if holds(body):
                    return body
        raise NotAnswered(f"waited {seconds:g} s for {what}; {target.kind} {target.name} is {_shown(body)}")

    def patch(self, target: Target, change: Mapping[str, Any], *, part: str = "") -> Answer:
        """Merge a change into an object, or into its subresource `part` such as `status`."""
        path = self._path(target, named=True)
        if isinstance(path, Answer):
            return path
        path = f"{path}/{part}" if part else path
        return self.request("PATCH", path, json.dumps(change).encode(), content_type="application/merge-patch+json")

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether the kind can be asked for now."""
        return self._resource(api_version, kind) is not None

    def _listed(self, target: Target, query: Mapping[str, str]) -> Answer:
        path = self._path(target, named=False, everywhere=not target.namespace)
        return path if isinstance(path, Answer) else self.request("GET", path, query=query)

    def _events(self, target: Target, version: str, seconds: float) -> Iterator[dict[str, Any]]:
        """What happens to an object after a version of it, for at most `seconds`."""
        path = self._path(target, named=False, everywhere=not target.namespace)
        if isinstance(path, Answer):
            return
        query = {
            "watch": "true",
            **_selected(target),
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, math.ceil(seconds))),
        }
        response = self._pool.request(
            "GET",
            f"{self.url}{path}?{urlencode(query)}",
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=_SECONDS, read=seconds + 2),
        )
        try:
            rest = b""
            for chunk in response.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        except urllib3.exceptions.HTTPError:
            return  # the server went away, or said nothing for too long: the caller looks again
        finally:
            response.close()

    def _write(
        self,
        method: str,
        body: Mapping[str, Any],
        target: Target,
        *,
        named: bool,
        dry_run: bool,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        path = self._path(target, named=named)
        if isinstance(path, Answer):
            return path
        options = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {}), **(query or {})}
        content_type = APPLY if method == "PATCH" else JSON
        return self.request(method, path, json.dumps(body).encode("ascii"), content_type=content_type, query=options)

    def _path(self, target: Target, *, named: bool, everywhere: bool = False) -> str | Answer:
        resource = self._resource(target.api_version, target.kind)
        if resource is None:
            message = f'no matches for kind "{target.kind}" in version "{target.api_version}"'
            return Answer(404, {"kind": "Status", "reason": "NotFound", "message": message})
        parts = [_root(target.api_version)]
        if resource.namespaced and not everywhere:
            parts.append(f"namespaces/{quote(target.namespace, safe='')}")
        parts.append(resource.plural)
        if named:
            parts.append(quote(target.name, safe=""))
        return "/".join(parts)

    def _resource(self, api_version: str, kind: str) -> _Resource | None:
        """Discovery, remembered for what is served; what is not is asked again, since CRDs arrive late."""
        known = self._served.get(api_version, {})
        if kind not in known and api_version:
            listed = self.request("GET", _root(api_version)).body.get("resources") or []
            known = {r["kind"]: _Resource(r["name"], r["namespaced"]) for r in listed if "/" not in r["name"]}
            self._served[api_version] = known
        return known.get(kind)


def _selected(target: Target) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name={target.name}"} if target.name else {}


def _typed(target: Target) -> dict[str, Any]:
    return {"apiVersion": target.api_version, "kind": target.kind}


def _shown(body: Mapping[str, Any]) -> str:
    """What is there, short: conditions or the whole status."""
    if not body:
        return "not there"
    status = body.get("status") or {}
    conditions = [
        f"{c.get('type')}={c.get('status')} {c.get('reason', '')}: {c.get('message', '')}"
        for c in status.get("conditions") or ()
    ]
    return ("; ".join(conditions) or json.dumps(status))[:600]


def _root(api_version: str) -> str:
    return f"/apis/{quote(api_version)}" if "/" in api_version else f"/api/{quote(api_version)}"
