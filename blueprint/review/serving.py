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
from blueprint.check.commands import commands
from blueprint.check.engines import Engine, arguments_of, engines_of, name_and_tag
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity
from blueprint.review.diff import Edit, keyed_path
from blueprint.review.images import build
from blueprint.review.model import Pair, Risk, Statement
from blueprint.review.risks import stated
from blueprint.review.words import shown
from blueprint.review.workloads import Inline, pods

_KSERVE = "serving.kserve.io"
_ON = "on"
_UNNAMED = "a model that its arguments do not name"
_MODEL = "--model"
_BUILD_SOURCE = "github.com/opencontainers/image-spec v1.1.1 descriptor.md Digests"
_VERSION_SOURCE = "vllm-project/vllm docs, releases: defaults and answers differ between them"


@dataclass(frozen=True, slots=True)
class Server:
    """One container that serves a model: its options by name, and which release of which engine it is."""

    options: Mapping[str, str]
    variables: Mapping[str, str]
    version: str
    image: str
    model: str = ""
    """What fields beside the arguments say of the model."""
    path: str = ""
    """Of the image."""


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
        if edit.path[-1:] == ("image",):
            return any(each.rule == "engine-build" and each.path == keyed_path(edit.steps) for each in self.statements)
        if edit.path[-2:] != ("args", "[]"):
            return False
        sides = (edit.before, edit.after)
        return all(isinstance(each, str) and option_name(each.partition("=")[0]) in self.options for each in sides)


def told(pair: Pair) -> Told:
    """What changes for those who ask the servers of an object that is on both sides."""
    if pair.old is None or pair.new is None or _batch(pair):
        return Told()
    old, new = _servers(pair.old), _servers(pair.new)
    found: list[tuple[Statement, str]] = []
    for name, other in _matched(old, new):
        found += _between(pair, old[name], new[other])
    met = {name for names in _matched(old, new) for name in names}
    found += [(each, "") for name in new if name not in met for each in _arrived(pair, new[name], Risk.TRAFFIC)]
    for server in (old[name] for name in old if name not in met):
        found.append((_stated(pair, Risk.TRAFFIC, "server-gone", f"serves {_model(server)} no more"), ""))
    options = frozenset(option for _, option in found if option)
    return Told(tuple(each for each, _ in found), options, frozenset(_secrets((*old.values(), *new.values()))))


def arrived(pair: Pair) -> Iterator[Statement]:
    """What a new object serves, and what its servers are told that others should know of."""
    if pair.new is not None and not _batch(pair):
        for server in _servers(pair.new).values():
            yield from _arrived(pair, server, Risk.CAPACITY)


def _batch(pair: Pair) -> bool:
    return any(fnmatchcase(pair.ref.kind_name, each) for each in table("review_risks")["serving"]["batch"])


def _matched(old: Mapping[str, Server], new: Mapping[str, Server]) -> list[tuple[str, str]]:
    """The servers of both sides by name; the one that is left on each side is the same one under another name."""
    gone, come = ([name for name in these if name not in those] for these, those in ((old, new), (new, old)))
    renamed = [(gone[0], come[0])] if len(gone) == len(come) == 1 else []
    return [*((name, name) for name in old if name in new), *renamed]


def _arrived(pair: Pair, server: Server, risk: Risk) -> Iterator[Statement]:
    head = "new: " if pair.old is None else ""
    when = "" if pair.old is None else " from now on"
    if (model := _model(server)) != _UNNAMED or pair.old is not None:
        yield _stated(pair, risk, "server-new", f"{head}serves {model}{when}")
    for row in table("review_risks")["serving"]["options"]:
        for option in row["options"] if row.get("on") else ():
            after = _value(server, option)
            if _matters(row, None, after):
                words = head + row["say"].format(option=option, before=_words(None), after=_words(after))
                yield _stated(pair, Risk[row["class"].upper()], row["id"], words)


def _stated(pair: Pair, risk: Risk, rule: str, words: str) -> Statement:
    return stated(pair, risk, rule, words, path=_path(pair), source="vllm-project/vllm vllm/engine/arg_utils.py")


def _model(server: Server) -> str:
    """The model of a server, and the name that clients use."""
    rows = table("review_risks")["serving"]["options"]
    model, name = (
        next(
            (value for row in rows if row["id"] == of for each in row["options"] if (value := _value(server, each))), ""
        )
        for of in ("served-model", "served-name")
    )
    model = model or server.model
    told = f"the model {shown(model)}" if model else _UNNAMED
    return f"{told} as {shown(name)}" if name and name != model else told


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
    elif _release(old.image) == _release(new.image) and all(digests := [_digest(each.image) for each in (old, new)]):
        if digests[0] != digests[1]:
            image = name_and_tag(new.image)[0].rpartition("/")[2]
            same = f"release {new.version}" if new.version else f"image {image}"
            words = f"is served by another build of the same {same}: {digests[0]} → {digests[1]}"
            yield stated(pair, Risk.RESTART, "engine-build", words, path=new.path, source=_BUILD_SOURCE), ""
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


def _digest(image: str) -> str:
    digest = image.partition("@")[2]
    return build(digest) if digest else ""


def _path(pair: Pair) -> str:
    for pod in pods(pair.there):
        return f"{pod.spec_path}.containers"
    return ""


def _servers(manifest: Manifest) -> dict[str, Server]:
    """The servers by the name of their container; KServe runs nothing else."""
    known = {(engine.pod.path, text(engine.container.get("name"))): engine for engine in engines_of(manifest)}
    always = manifest.ref.group == _KSERVE
    found: dict[str, Server] = {}
    for pod in pods(manifest):
        for container in maps(pod.spec.get("containers")):
            name = text(container.get("name"))
            engine = known.get((pod.path, name))
            if engine is None and isinstance(pod, Inline) and pod.path != "spec.transformer":
                engine = next((Engine(manifest, pod, container, "", each) for each in commands(container)), None)
            if engine is not None or _serves(container) or (always and pod.path == "spec.predictor"):
                found[f"{pod.path} {name}"] = replace(
                    _server(container, engine), path=f"{pod.spec_path}.containers[{name}].image"
                )
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
    model = text(container.get("storageUri")) or text(mapping(container.get("storage")).get("path"))
    return Server(options, variables, version, text(container.get("image")), model)
