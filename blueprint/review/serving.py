"""What a change of a model server's arguments means to those who ask it: rows of `serving` in review_risks.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from blueprint.catalog.crds import Json
from blueprint.catalog.facts import option_name
from blueprint.catalog.tables import table
from blueprint.catalog.vllm import VERSION_NOTE
from blueprint.check.engines import Engine, arguments_of, engines_of, name_and_tag
from blueprint.check.pods import pod_templates
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity
from blueprint.review.diff import Edit
from blueprint.review.model import Pair, Risk, Statement
from blueprint.review.risks import stated
from blueprint.review.words import shown

_ON = "on"
_MODEL = "--model"
_VERSION_SOURCE = "vllm-project/vllm docs, releases: defaults and answers differ between them"


@dataclass(frozen=True, slots=True)
class Server:
    """One container that serves a model: its options by name, and which release of which engine it is."""

    options: Mapping[str, str]
    variables: Mapping[str, str]
    version: str
    image: str


@dataclass(frozen=True, slots=True)
class Told:
    """What is said about the servers of an object, and the options that this is about."""

    statements: tuple[Statement, ...] = ()
    options: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()

    def hidden(self, edit: Edit) -> Edit:
        """The edit without what nobody may read in a comment."""
        if not self.secrets or not {"args", "command", "env"} & set(edit.path):
            return edit
        return replace(edit, before=_hidden(edit.before, self.secrets), after=_hidden(edit.after, self.secrets))

    def explains(self, edit: Edit) -> bool:
        """Whether an edit is of one argument that a statement is about, or of the note that names the release."""
        if VERSION_NOTE in edit.path:
            return any(each.rule == "engine-version" for each in self.statements)
        if edit.path[-2:] != ("args", "[]"):
            return False
        sides = (edit.before, edit.after)
        return all(isinstance(each, str) and option_name(each.partition("=")[0]) in self.options for each in sides)


def told(pair: Pair) -> Told:
    """What changes for those who ask the servers of an object that is on both sides."""
    batch = table("review_risks")["serving"]["batch"]
    if pair.old is None or pair.new is None or any(fnmatchcase(pair.ref.kind_name, each) for each in batch):
        return Told()
    old, new = _servers(pair.old), _servers(pair.new)
    found: list[tuple[Statement, str]] = []
    for name in old.keys() & new.keys():
        found += _between(pair, old[name], new[name])
    options = frozenset(option for _, option in found if option)
    return Told(tuple(each for each, _ in found), options, frozenset(_secrets((*old.values(), *new.values()))))


def _secrets(servers: Iterable[Server]) -> Iterator[str]:
    for row in table("review_risks")["serving"]["options"]:
        for option in (*row["options"], *row.get("env", ())) if row.get("secret") else ():
            yield from (value for server in servers if (value := _value(server, option)) and value != _ON)


def _hidden(value: Json, secrets: Iterable[str]) -> Json:
    if isinstance(value, dict):
        return {name: _hidden(child, secrets) for name, child in value.items()}
    if isinstance(value, list):
        return [_hidden(child, secrets) for child in value]
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = "…" if value == secret else value.replace(f"={secret}", "=…")
    return value


def _between(pair: Pair, old: Server, new: Server) -> Iterator[tuple[Statement, str]]:
    said: set[str] = set()
    for row in table("review_risks")["serving"]["options"]:
        for option in (*row["options"], *row.get("env", ())):
            before, after = (_value(each, option) for each in (old, new))
            if option in said or before == after or not _matters(row, before, after):
                continue
            said.add(option)
            words = row["say"].format(option=option, before=_words(before), after=_words(after))
            risk = Risk[row["class"].upper()]
            yield stated(pair, risk, row["id"], words, path=_path(pair), source=row["source"]), option
    if old.version and new.version and old.version != new.version:
        words = f"is served by release {new.version} of its engine instead of {old.version}"
        yield stated(pair, Risk.TRAFFIC, "engine-version", words, path=_path(pair), source=_VERSION_SOURCE), ""
    elif not (old.version and new.version) and _release(old.image) != _release(new.image):
        words = f"is served by another release of its engine: image {shown(old.image)} → {shown(new.image)}"
        yield stated(pair, Risk.TRAFFIC, "engine-version", words, path=_path(pair), source=_VERSION_SOURCE), ""


def _matters(row: Mapping[str, Any], before: str | None, after: str | None) -> bool:
    if row.get("gone"):
        return after is None
    if row.get("on"):
        return after is not None and after.lower() != "false"
    if not row.get("less") or before is None or after is None:
        return True
    try:
        return parse_quantity(after) < parse_quantity(before)
    except QuantityError:
        return True


def _words(value: str | None) -> str:
    return "what its engine takes by itself" if value is None else shown(value)


def _value(server: Server, option: str) -> str | None:
    return (server.options if option.startswith("-") else server.variables).get(option)


def _release(image: str) -> tuple[str, str]:
    """Name and tag; a digest alone is told as another image."""
    return name_and_tag(image)


def _path(pair: Pair) -> str:
    for pod in pod_templates(pair.there):
        return f"{pod.spec_path}.containers"
    return ""


def _servers(manifest: Manifest) -> dict[str, Server]:
    """The servers by the name of their container."""
    engines = {(engine.pod.path, text(engine.container.get("name"))): engine for engine in engines_of(manifest)}
    found: dict[str, Server] = {}
    for pod in pod_templates(manifest):
        for container in maps(pod.spec.get("containers")):
            name = text(container.get("name"))
            engine = engines.get((pod.path, name))
            if engine is not None or _serves(container):
                found[f"{pod.path} {name}"] = _server(container, engine)
    return found


def _serves(container: Body) -> bool:
    words = " ".join(str(container.get(part, "")) for part in ("image", "command", "args"))
    return any(each in words for each in table("review_risks")["serving"]["engines"])


def _server(container: Body, engine: Engine | None) -> Server:
    arguments = engine.arguments if engine else arguments_of(container)
    options = {option_name(each.option): _ON if each.value is None else each.value for each in arguments}
    if engine and engine.loose and _MODEL not in options:
        options[_MODEL] = engine.loose[0].text
    variables = {
        text(row.get("name")): str(row.get("value", mapping(row.get("valueFrom"))))
        for row in maps(container.get("env"))
    }
    version = engine.version if engine else ""
    return Server(options, variables, version, text(container.get("image")))
