"""Servers of vLLM wherever they run: the version, the arguments, the GPUs and the model of each.

Whatever is filled in later, read from a file or hidden in an image stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from blueprint.catalog.facts import Model, model, option_name
from blueprint.catalog.vllm import ENGINE_NOTE, MODEL_NOTE, VERSION_NOTE, flag, known_flag, newest
from blueprint.check.commands import Command, Word, commands, environment
from blueprint.check.graph import Graph, labels_of
from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.shapes import Body, items, mapping, maps, placeholder, text
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity

_IMAGE = re.compile(r"(?:.*/)?vllm(?:-(?:openai|cpu|gpu|cuda|rocm|tpu|gaudi|serve|server|engine|inference))*")
_TAG = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?:[-_+].*)?")
_GPU = re.compile(r"[a-z0-9.-]+/(?:gpu(?:\.shared)?|mig-.+|tpu|gaudi|npu|xpu|i915)")
_VERSION_LABEL = "app.kubernetes.io/version"


@dataclass(frozen=True, slots=True)
class Argument:
    """One option as it is written; `value` is None where it has none, `at` the path below the container."""

    option: str
    value: str | None
    at: str

    @property
    def known(self) -> str:
        """The value where it is known, else ""."""
        return "" if self.value is None or not Word(self.value, "").known else self.value


class Engine:
    """One server. `at` is the path of its container in the object."""

    def __init__(self, manifest: Manifest, pod: PodTemplate, container: Body, at: str, command: Command) -> None:
        self.manifest, self.pod, self.container, self.at, self.command = manifest, pod, container, at, command
        self.image = text(container.get("image"))

    @cached_property
    def version(self) -> str:
        """The version of vLLM, "" where nothing says it.

        An image of vLLM's own name says it by its tag, else the annotations or a label of the pod or of what makes it.
        """
        name, tag = name_and_tag(self.image)
        own = bool(_IMAGE.fullmatch(name))
        if own and (match := _TAG.fullmatch(tag)):
            return match[1]
        for metadata in (self.pod.metadata, self.manifest.body.get("metadata")):
            notes, labels = (mapping(mapping(metadata).get(key)) for key in ("annotations", "labels"))
            said = text(notes.get(VERSION_NOTE)) if notes.get(ENGINE_NOTE) == "vllm" else ""
            if match := _TAG.fullmatch(said or text(labels.get(_VERSION_LABEL)) * (own and not tag)):
                return match[1]
        return ""

    @cached_property
    def _parsed(self) -> tuple[tuple[Argument, ...], tuple[Word, ...], bool]:
        return _arguments(_own_words(self.command))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The options, in order."""
        return self._parsed[0]

    @property
    def loose(self) -> tuple[Word, ...]:
        """Words that belong to no option; the first of them is the model."""
        return self._parsed[1]

    @property
    def open(self) -> bool:
        """Whether there may be options that are not seen here: from a file, or filled in later."""
        return self._parsed[2] or self.option("--config") is not None

    def option(self, name: str) -> Argument | None:
        """The last option that sets a flag, by whatever alias; the negative form of a boolean is found, too."""
        return self._by_flag.get(name)

    @cached_property
    def _by_flag(self) -> Mapping[str, Argument]:
        found: dict[str, Argument] = {}
        for argument in self.arguments:
            known = flag(argument.option, self.version or newest()).flag or known_flag(argument.option)
            name = known.name if known else option_name(argument.option)
            found[name] = argument
        return found

    def switched_on(self, name: str) -> bool:
        """Whether a switch or boolean is on."""
        argument = self.option(name)
        if argument is None:
            return False
        return not flag(argument.option, self.version or newest()).negated and argument.value not in {"false", "False"}

    def size(self, name: str, default: int = 1) -> int | None:
        """A whole number; None where it is not known."""
        argument = self.option(name)
        if argument is None:
            return None if self.open else default
        return int(argument.known) if argument.known.isdigit() else None

    @property
    def tensor(self) -> int | None:
        """The tensor parallelism."""
        return self.size("--tensor-parallel-size")

    @property
    def pipeline(self) -> int | None:
        """The pipeline parallelism."""
        return self.size("--pipeline-parallel-size")

    @property
    def nodes(self) -> int | None:
        """The number of pods that make up one server with `--nnodes`."""
        return self.size("--nnodes")

    @property
    def world(self) -> int | None:
        """GPUs of a server over all its pods: TP x PP x DP x prefill context parallelism."""
        sizes = [
            self.tensor,
            self.pipeline,
            self.size("--data-parallel-size"),
            self.size("--prefill-context-parallel-size"),
        ]
        total = 1
        for size in sizes:
            if size is None:
                return None
            total *= size
        return total

    @property
    def headless(self) -> bool:
        """Whether it serves nothing itself."""
        return self.switched_on("--headless")

    @property
    def model_name(self) -> str:
        """The model as it is written, "" where it is not known."""
        argument = self.option("--model")
        if argument is not None:
            return argument.known
        return self.loose[0].text if self.loose and self.loose[0].known else ""

    @property
    def model(self) -> Model | None:
        """The shape of the model, where the catalog has it and no option changes it."""
        changed = (
            self.option("--hf-overrides") or self.option("--hf-config-path") or self.option("--speculative-config")
        )
        return None if changed else model(self.model_name) or model(self.noted_model)

    @property
    def noted_model(self) -> str:
        """What the pod says that the files of a folder are, "" where the model is named by itself."""
        notes = mapping(mapping(self.pod.metadata).get("annotations"))
        return text(notes.get(MODEL_NOTE)) if self.model_name.startswith("/") else ""

    @property
    def served_names(self) -> tuple[str, ...]:
        """The names that clients use, the first of which is the label `model_name`; () where they are not known."""
        argument = self.option("--served-model-name")
        if argument is not None:
            return tuple(argument.known.split())
        return (self.model_name,) if self.model_name and not self.open else ()

    @property
    def port(self) -> int | None:
        """The port of the HTTP server."""
        return self.size("--port", 8000)

    @cached_property
    def variables(self) -> Mapping[str, str | None]:
        """The variables that the container sets; None for a value that comes from elsewhere."""
        return environment(self.container)

    @cached_property
    def gpu_resources(self) -> Mapping[str, int]:
        """How many of each kind of accelerator the container asks for as an extended resource."""
        resources = mapping(self.container.get("resources"))
        asked = {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}
        found: dict[str, int] = {}
        for key, value in asked.items():
            if _GPU.fullmatch(str(key)):
                try:
                    found[str(key)] = int(parse_quantity(value))
                except QuantityError:
                    continue
        return found

    @property
    def claims(self) -> bool:
        """Whether the container has devices by dynamic resource allocation."""
        return bool(items(mapping(self.container.get("resources")).get("claims")))

    @property
    def gpus(self) -> int | None:
        """GPUs of the container; None where claims give them, or quantities are not known."""
        if self.claims:
            return None
        resources = mapping(self.container.get("resources"))
        written = [value for part in ("requests", "limits") for value in mapping(resources.get(part)).values()]
        if any(placeholder(value) for value in written):
            return None
        return sum(self.gpu_resources.values())

    def probe(self, name: str) -> Body:
        """A probe of the container, empty where it has none."""
        return mapping(self.container.get(name))


def name_and_tag(image: str) -> tuple[str, str]:
    """The name of an image and its tag, "" where it has none; a colon before a slash is that of a port."""
    name, colon, tag = image.partition("@")[0].rpartition(":")
    return (name, tag) if colon and "/" not in tag else (image.partition("@")[0], "")


def engines(graph: Graph) -> Sequence[Engine]:
    """Every vLLM server of a tree, read once for each graph."""
    return graph.derived(_engines)


def _engines(graph: Graph) -> list[Engine]:
    return [engine for manifest, pod in graph.pods for engine in _in_pod(manifest, pod)]


def engines_of(manifest: Manifest) -> list[Engine]:
    """The vLLM servers of one object."""
    return [engine for pod in pod_templates(manifest) for engine in _in_pod(manifest, pod)]


def arguments_of(container: Body) -> tuple[Argument, ...]:
    """The options of whatever a container runs, read without knowing which of them take a value."""
    return tuple(each for command in commands(container) for each in _arguments(command.words)[0])


def _in_pod(manifest: Manifest, pod: PodTemplate) -> Iterator[Engine]:
    for index, container in enumerate(maps(pod.spec.get("containers"))):
        image = text(container.get("image"))
        if "vllm" not in image and "vllm" not in str(container.get("command")) + str(container.get("args")):
            continue
        for command in commands(container):
            if _serves(command, image):
                yield Engine(manifest, pod, container, f"{pod.spec_path}.containers[{index}]", command)
                break


def _serves(command: Command, image: str) -> bool:
    texts = [word.text for word in command.words]
    if any(name.rpartition("/")[2] == "vllm" and following == "serve" for name, following in pairwise(texts)):
        return True
    if any("vllm.entrypoints.openai.api_server" in each for each in texts):
        return True
    named = _IMAGE.fullmatch(name_and_tag(image)[0])
    # The image starts the server by itself, and is given only what follows.
    return bool(named) and not any(word.at.startswith("command") for word in command.words) and not command.by_shell


def _own_words(command: Command) -> tuple[Word, ...]:
    """The words after `vllm serve` or the module."""
    texts = [word.text for word in command.words]
    for index, each in enumerate(texts):
        if each == "serve" and index and texts[index - 1].rpartition("/")[2] == "vllm":
            return command.words[index + 1 :]
        if "vllm.entrypoints.openai.api_server" in each:
            return command.words[index + 1 :]
    return command.words


def _arguments(words: Sequence[Word]) -> tuple[tuple[Argument, ...], tuple[Word, ...], bool]:
    """Options, words that belong to none, and whether some words are not known."""
    found: list[Argument] = []
    loose: list[Word] = []
    unknown = False
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.text.startswith("-") or len(word.text) < 2:
            unknown = unknown or not word.known
            if word.text:
                loose.append(word)
            continue
        option, equals, value = word.text.partition("=")
        if equals:
            found.append(Argument(option, value, word.at))
            continue
        taken: list[str] = []
        most = _most(option)
        while position < len(words) and len(taken) < most and not _is_option(words[position].text):
            taken.append(words[position].text)
            position += 1
        found.append(Argument(option, " ".join(taken) if taken else None, word.at))
    return tuple(found), tuple(loose), unknown


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not re.fullmatch(r"-[\d.]+", word)


def _most(option: str) -> int:
    """How many words an option takes at most; the newest version that knows it decides."""
    found = known_flag(option)
    return 1 if found is None else {"switch": 0, "boolean": 0, "values": 1000}.get(found.takes, 1)


def pod_labels(engine: Engine) -> Mapping[str, str]:
    """The labels of the pods of a server."""
    return labels_of({"metadata": engine.pod.metadata})
