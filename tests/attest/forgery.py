"""The operations of tampering.yaml: each takes a signed tree on the disk and leaves it altered."""

from __future__ import annotations

import base64
import copy
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE
from blueprint.attest.statement import CREDENTIAL, statement
from blueprint.attest.verify import credential_bundle
from tests.attest.forgers import Forgers
from tests.attest.world import FILES, rendered, write_tree

SIGNATURES = ".attestations"


@dataclass
class Scene:
    """The tree, who could forge for it, and what the verifier asks for beyond the signature."""

    tree: Path
    forgers: Forgers
    demands: dict[str, Any] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        return self.tree / name

    def bundle(self, name: str = RENDER_BUNDLE) -> Path:
        return self.tree / SIGNATURES / name

    def run(self, operation: dict[str, Any]) -> None:
        ((name, value),) = operation.items()
        OPERATIONS[name](self, value)


def _flip(scene: Scene, name: str) -> None:
    data = bytearray(scene.path(name).read_bytes())
    data[len(data) // 2] ^= 1
    scene.path(name).write_bytes(bytes(data))


def _append(scene: Scene, value: list[str]) -> None:
    scene.path(value[0]).write_bytes(scene.path(value[0]).read_bytes() + value[1].encode())


def _prepend(scene: Scene, value: list[str]) -> None:
    scene.path(value[0]).write_bytes(value[1].encode() + scene.path(value[0]).read_bytes())


def _truncate(scene: Scene, name: str) -> None:
    data = scene.path(name).read_bytes()
    scene.path(name).write_bytes(data[: len(data) // 2])


def _crlf(scene: Scene, name: str) -> None:
    scene.path(name).write_bytes(scene.path(name).read_bytes().replace(b"\n", b"\r\n"))


def _write(scene: Scene, value: list[str]) -> None:
    scene.path(value[0]).parent.mkdir(parents=True, exist_ok=True)
    scene.path(value[0]).write_text(value[1])


def _write_pair(scene: Scene, names: list[str]) -> None:
    for name in names:
        _write(scene, [name, "kind: Pod\n"])


def _write_bytes(scene: Scene, name: str) -> None:
    Path(os.fsdecode(os.fsencode(scene.path(name)) + b"\xff.yaml")).write_text("kind: Pod\n")


def _delete(scene: Scene, name: str) -> None:
    path = scene.path(name)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _rename(scene: Scene, names: list[str]) -> None:
    scene.path(names[0]).rename(scene.path(names[1]))


def _exchange(scene: Scene, names: list[str]) -> None:
    first, second = (scene.path(name) for name in names)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def _copy(scene: Scene, names: list[str]) -> None:
    scene.path(names[1]).write_bytes(scene.path(names[0]).read_bytes())


def _chmod(scene: Scene, value: list[Any]) -> None:
    scene.path(value[0]).chmod(int(value[1]))


def _link(scene: Scene, value: list[str]) -> None:
    path = scene.path(value[0])
    if path.exists():
        _delete(scene, value[0])
    path.symlink_to(value[1])


def _pipe(scene: Scene, name: str) -> None:
    scene.path(name).unlink()
    os.mkfifo(scene.path(name))


def _folder(scene: Scene, name: str) -> None:
    scene.path(name).mkdir()


def _deep(scene: Scene, name: str) -> None:
    scene.path(name).write_text("[" * 100_000)


def _away(scene: Scene, name: str) -> None:
    """The same files, behind a link."""
    place = scene.tree.parent / "elsewhere"
    scene.path(name).rename(place)
    scene.path(name).symlink_to(place)


def _file_for(scene: Scene, name: str) -> None:
    _delete(scene, name)
    scene.path(name).write_text("kind: Pod\n")


def _recode(scene: Scene, name: str) -> None:
    scene.path(name).write_bytes(scene.path(name).read_text("utf-8").encode("utf-16"))


# --- parts of a bundle


def _edit(scene: Scene, change: Callable[[Any], None]) -> None:
    document = json.loads(scene.bundle().read_bytes())
    change(document)
    scene.bundle().write_text(json.dumps(document))


def _at(document: Any, path: str) -> tuple[Any, Any]:
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in steps:
        document = document[step]
    return document, last


def _set(scene: Scene, value: list[Any]) -> None:
    def change(document: Any) -> None:
        holder, key = _at(document, value[0])
        holder[key] = value[1]

    _edit(scene, change)


def _drop(scene: Scene, path: str) -> None:
    def change(document: Any) -> None:
        holder, key = _at(document, path)
        del holder[key]

    _edit(scene, change)


def _repeat(scene: Scene, path: str) -> None:
    def change(document: Any) -> None:
        holder, key = _at(document, path)
        holder[key] = [*holder[key], *copy.deepcopy(holder[key])]

    _edit(scene, change)


def _many(scene: Scene, path: str) -> None:
    def change(document: Any) -> None:
        holder, key = _at(document, path)
        holder[key] = holder[key] * 100

    _edit(scene, change)


def _corrupt(scene: Scene, path: str) -> None:
    """Flip a bit in the middle of something in base64."""

    def change(document: Any) -> None:
        holder, key = _at(document, path)
        data = bytearray(base64.b64decode(holder[key]))
        data[len(data) // 2] ^= 1
        holder[key] = base64.b64encode(bytes(data)).decode()

    _edit(scene, change)


def _replace(scene: Scene, value: list[str]) -> None:
    def change(document: Any) -> None:
        holder, key = _at(document, value[0])
        assert value[1] in holder[key]
        holder[key] = holder[key].replace(value[1], value[2])

    _edit(scene, change)


def _swap(scene: Scene, path: str) -> None:
    """Take one part of a bundle over an older tree, by the same signer."""
    other = json.loads(scene.forgers.older()[RENDER_BUNDLE])

    def change(document: Any) -> None:
        holder, key = _at(document, path)
        source, _ = _at(other, path)
        assert holder[key] != source[key]
        holder[key] = source[key]

    _edit(scene, change)


def _duplicate(scene: Scene, key: str) -> None:
    text = scene.bundle().read_text()
    value = json.loads(text)[key]
    scene.bundle().write_text(text.replace("{", f"{{{json.dumps(key)}: {json.dumps(value)}, ", 1))


def _duplicate_in(scene: Scene, path: list[str]) -> None:
    """The object at a path says its first key twice."""
    text, place = scene.bundle().read_text(), 0
    for step in path:
        place = text.index(f'"{step}"', place)
    begin = text.index("{", place) + 1
    key = text[begin : text.index(":", begin)]
    scene.bundle().write_text(f'{text[:begin]}{key}: "", {text[begin:]}')


# --- whole bundles, and trees, truly signed by somebody


def _bundle(scene: Scene, name: str) -> None:
    scene.bundle().write_bytes(scene.forgers.bundle(name))


def _bundles(scene: Scene, name: str) -> None:
    for file, data in scene.forgers.bundles(name).items():
        scene.bundle(file).write_bytes(data)


def _statement(scene: Scene, name: str) -> None:
    scene.bundle().write_bytes(scene.forgers.statement(name))


def _provenance(scene: Scene, name: str) -> None:
    scene.bundle(PROVENANCE_BUNDLE).write_bytes(scene.forgers.provenance(name))


def _credential(scene: Scene, cluster: str) -> None:
    """A credential's bundle, truly signed, beside the tree."""
    data = scene.forgers.office.sign(statement("0" * 64, CREDENTIAL, {}))
    scene.bundle(credential_bundle(cluster)).write_bytes(data)


def _part(scene: Scene, name: str) -> None:
    for file, data in scene.forgers.part(name).items():
        scene.bundle(file).write_bytes(data)


def _seen(scene: Scene, value: dict[str, int]) -> None:
    scene.demands["seen"] = {(cluster,): (number, "") for cluster, number in value.items()}


def _demand(scene: Scene, value: dict[str, Any]) -> None:
    days = value.pop("days", None)
    scene.demands.update(value, **({"now_plus": timedelta(days=days)} if days else {}))


def _older(scene: Scene, value: dict[str, Any]) -> None:
    shutil.rmtree(scene.tree)
    scene.tree.mkdir()
    write_tree(scene.tree, scene.forgers.older_files)
    _older_signatures(scene, {})
    scene.demands.update(value)


def _older_signatures(scene: Scene, _: object) -> None:
    scene.bundle().parent.mkdir(exist_ok=True)
    for file, data in scene.forgers.older().items():
        scene.bundle(file).write_bytes(data)


_READERS = {
    "attestations-as-path": "kind: Application\nspec: {source: {path: rendered/.attestations}}\n",
    "recursing-application": "kind: Application\nspec: {source: {path: rendered, directory: {recurse: true}}}\n",
    "application-set": (
        "kind: ApplicationSet\nspec: {template: {spec: {sources: [{path: ., directory: {recurse: true}}]}}}\n"
    ),
    "kustomization": "kind: Kustomization\nresources: [../../.attestations/x.sigstore.json]\n",
}


def _tree(scene: Scene, name: str) -> None:
    """The renderer itself is led to read the folder, and everything is signed as it should be."""
    file = "kustomization.yaml" if name == "kustomization" else "application-x.yaml"
    group = "kustomize.config.k8s.io/v1beta1" if name == "kustomization" else "argoproj.io/v1alpha1"
    body = f"apiVersion: {group}\n{_READERS[name]}".replace("spec:", "metadata: {name: x}\nspec:", 1)
    shutil.rmtree(scene.tree)
    scene.tree.mkdir()
    write_tree(scene.tree, {**FILES, f"prod-a/argocd/{file}": body})
    scene.bundle().parent.mkdir()
    for bundle, data in scene.forgers.office.both(rendered(scene.tree, sequence=7)).items():
        scene.bundle(bundle).write_bytes(data)


OPERATIONS: dict[str, Callable[[Scene, Any], None]] = {
    "append": _append,
    "away": _away,
    "bundle": _bundle,
    "bundles": _bundles,
    "chmod": _chmod,
    "copy": _copy,
    "corrupt": _corrupt,
    "credential": _credential,
    "crlf": _crlf,
    "delete": _delete,
    "demand": _demand,
    "drop": _drop,
    "duplicate": _duplicate,
    "duplicate_in": _duplicate_in,
    "exchange": _exchange,
    "file_for": _file_for,
    "flip": _flip,
    "folder": _folder,
    "link": _link,
    "many": _many,
    "older": _older,
    "older_signatures": _older_signatures,
    "overwrite": _write,
    "overwrite_deep": _deep,
    "part": _part,
    "pipe": _pipe,
    "prepend": _prepend,
    "provenance": _provenance,
    "recode": _recode,
    "rename": _rename,
    "repeat": _repeat,
    "replace": _replace,
    "seen": _seen,
    "set": _set,
    "statement": _statement,
    "swap": _swap,
    "tree": _tree,
    "truncate": _truncate,
    "write": _write,
    "write_bytes": _write_bytes,
    "write_pair": _write_pair,
}
