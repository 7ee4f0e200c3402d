"""The same objects in the hands of other tools: a Helm chart, kubeconform with our schemas, a kustomization."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.process import Failed
from blueprint.catalog.schemas import SchemaPack
from blueprint.check.read import Reading, read, read_bytes
from blueprint.objects import Manifest
from blueprint.render.emit import emit

#: Texts of the objects that the chart takes from its values, as a chart of a real platform would.
VALUES = {"registry": "registry.example.com", "manager": "blueprint", "server": "git.example.com"}


@dataclass(frozen=True, slots=True)
class Peers:
    """The programs, built by `scripts/tools.py build --group bench`."""

    helm: str
    kubeconform: str
    kustomize: str

    @classmethod
    def of(cls, tools: Path) -> Peers:
        """Take the programs from a folder. Raises Failed where one is missing."""
        programs = {name: tools / "bin" / name for name in cls.__slots__}
        if missing := [name for name, path in programs.items() if not path.exists()]:
            raise Failed(f"{', '.join(missing)} not found in {tools / 'bin'}: make tools-bench")
        return cls(**{name: str(path.resolve()) for name, path in programs.items()})

    def versions(self) -> dict[str, str]:
        """Name → the version in the name of the built file (`helm@v4.3.2-<key>`)."""
        files = (Path(getattr(self, name)).name for name in self.__slots__)
        return {name: rest.rpartition("-")[0] for name, _, rest in (file.partition("@") for file in files)}

    def template(self, chart: Path) -> list[str]:
        """The call that renders the chart."""
        return [self.helm, "template", "platform", str(chart)]

    def conform(self, schemas: Path, *paths: Path) -> list[str]:
        """The call that validates files, or the standard input, against the exported schemas."""
        location = f"{schemas}/{{{{.Group}}}}_{{{{.ResourceAPIVersion}}}}_{{{{.ResourceKind}}}}.json"
        options = ["-strict", "-summary", "-schema-location", location]
        return [self.kubeconform, *options, *map(str, paths or ("-",))]

    def build(self, folder: Path) -> list[str]:
        """The call that builds a kustomization."""
        return [self.kustomize, "build", str(folder)]


def objects(tree: Path) -> list[Manifest]:
    """The objects of a rendered tree, each in a file of its own; files that are no objects are left out."""
    return read([tree]).manifests


def write_schemas(manifests: Iterable[Manifest], folder: Path) -> None:
    """Write the schema of each kind that occurs, as kubeconform looks for it."""
    pack = SchemaPack.shipped()
    folder.mkdir(parents=True)
    for api_version, name in {(manifest.api_version, manifest.kind) for manifest in manifests}:
        kind = pack.kind(api_version, name)
        if kind is None:
            raise Failed(f"no schema for {api_version} {name}")
        # kubeconform takes the part before the slash for the group, so that of `v1` is `v1`.
        group = api_version.partition("/")[0]
        (folder / f"{group}_{kind.version}_{name.lower()}.json").write_bytes(orjson.dumps(kind.schema))


def write_chart(manifests: Iterable[Manifest], chart: Path) -> None:
    """Write a chart with one template for each object, some texts of which come from values."""
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: platform\nversion: 1.0.0\n", encoding="utf-8")
    (chart / "values.yaml").write_text(emit(VALUES), encoding="utf-8")
    for number, manifest in enumerate(manifests):
        text = Path(manifest.source.file).read_text(encoding="utf-8").replace("{{", '{{ "{{" }}')
        for name, value in VALUES.items():
            text = text.replace(value, f"{{{{ .Values.{name} }}}}")
        (chart / "templates" / f"{number:05}.yaml").write_text(text, encoding="utf-8")


def write_kustomization(manifests: Iterable[Manifest], folder: Path) -> None:
    """Write a kustomization over copies of the objects; kustomize wants its files below itself, and each name once."""
    folder.mkdir(parents=True)
    names = []
    for number, manifest in enumerate(manifests):
        names.append(f"{number:05}.yaml")
        shutil.copyfile(manifest.source.file, folder / names[-1])
    (folder / "kustomization.yaml").write_text(emit({"resources": names}), encoding="utf-8")


def check_same(manifests: Iterable[Manifest], command: list[str]) -> None:
    """Raise Failed unless a peer's output holds these very objects."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Failed(f"{command[0]}: {result.stderr[:2000]}")
    theirs = Reading()
    read_bytes(result.stdout.encode(), command[0], theirs)
    if sorted(map(_canonical, theirs.manifests)) != sorted(map(_canonical, manifests)):
        raise Failed(f"{' '.join(command[:2])}: the output differs from the tree")


def _canonical(manifest: Manifest) -> bytes:
    return orjson.dumps(manifest.body, option=orjson.OPT_SORT_KEYS)
