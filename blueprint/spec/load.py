"""Reading all specs of a platform in one pass, with everything that is wrong with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

import orjson
from pydantic import ValidationError

from blueprint.errors import UsageError
from blueprint.finding import Confidence, Finding, Report, Severity, Source
from blueprint.spec import fields, images, references
from blueprint.spec.base import API_VERSION, Model, shown
from blueprint.spec.cluster import Cluster
from blueprint.spec.delivery import Delivery
from blueprint.spec.files import FOLDERS, IMAGES_LOCK, MAX_BYTES, contents
from blueprint.spec.inference import InferenceService
from blueprint.spec.nearest import nearest
from blueprint.spec.platform import Document, Platform
from blueprint.spec.policy import Policy
from blueprint.spec.positions import Locator, Segment
from blueprint.spec.reader import Text, read
from blueprint.spec.salvage import salvage
from blueprint.spec.team import Team
from blueprint.spec.training import TrainingJob

KINDS: Final[dict[str, type[Model]]] = {
    "Cluster": Cluster,
    "Delivery": Delivery,
    "InferenceService": InferenceService,
    "Policy": Policy,
    "Team": Team,
    "TrainingJob": TrainingJob,
}
# A person reads a few findings; a hostile file can hold a quarter of a million.
_MAX_FINDINGS: Final = 100

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read.

    `platform` holds the specs without mistakes of their own; `findings` are in order of file and line; `documents`
    counts the specs, good and bad; `digest` is the SHA-256 (hex) of the names and bytes of all files that were read.
    """

    platform: Platform
    findings: list[Finding]
    documents: int
    digest: str


def load(root: Path, tags: images.Tags | None = None) -> Loaded:
    """Read the specs in `clusters/ apps/ policies/ argocd/` below a platform's root, and `images.lock` beside them.

    Mistakes in the files are findings, whose file names are relative to the root, with "/" on every system. `tags`
    resolves images in the place of the lock.

    Raises:
        UsageError: the root is no folder, or has none of the four folders.
    """
    if not _is_folder(root):
        raise UsageError("there is no such folder", where=str(root))
    if not any(_is_folder(root / folder) for folder in FOLDERS):
        raise UsageError(
            f"no platform: none of {', '.join(f'{folder}/' for folder in FOLDERS)} is here",
            where=str(root),
            hint=f"name the folder above, {root.parent}" if root.name in FOLDERS else "start one with `blueprint new`",
        )
    locked, data, finding = images.read(root)
    collected = _Collected(tags or locked)
    if finding is not None and tags is None:
        collected.findings.append(finding)
    if data:
        collected.count(IMAGES_LOCK, data)
    for name, content in contents(root):
        collected.take(name, content)
    return collected.close()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


@dataclass(slots=True)
class _Collected:
    """The state of one reading."""

    tags: images.Tags
    findings: list[Finding] = field(default_factory=list)
    documents: int = 0
    #: Documents that can be rendered; `spoilt` are those with mistakes, as far as they can be taken.
    models: dict[tuple[str, str], Document[Model]] = field(default_factory=dict)
    declared: dict[tuple[str, str], Source] = field(default_factory=dict)
    spoilt: dict[tuple[str, str], Document[Model]] = field(default_factory=dict)
    #: Files with a document that is not known by kind and name: see `references.Declared`.
    unread: list[bytes | None] = field(default_factory=list)
    misnamed: set[str] = field(default_factory=set)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def take(self, name: str, content: bytes | Finding) -> None:
        """Read one file, or note why it cannot be read."""
        if isinstance(content, Finding):
            self.findings.append(content)
            self.unread += [None] * content.fails
            return
        self.count(name, content)
        reading = read(content, name)
        if reading.finding is not None:
            self.findings.append(reading.finding)
        elif not reading.texts:
            self.findings.append(_empty(name, content))
        known = [self._document(text) for text in reading.texts]
        if reading.finding is not None or not all(known):
            self.unread.append(content if _is_text(content) else None)

    def count(self, name: str, content: bytes) -> None:
        """Take a file into the digest of all."""
        encoded = name.encode()
        self.digest.update(b"%d %s %d\n" % (len(encoded), encoded, len(content)))
        self.digest.update(content)

    def _document(self, text: Text) -> bool:
        """Take one document; returns whether its kind and name are known, or it is no spec."""
        model, finding = _kind(text)
        if model is None:
            if finding is not None:
                self.findings.append(finding)
            return finding is None or finding.severity is not Severity.ERROR
        self.documents += 1
        found = [*text.findings, *([finding] if finding else [])]
        mistakes = frozenset(text.tainted)
        parsed: Model | None = None
        try:
            data = orjson.dumps(text.data)
            parsed = model.model_validate_json(data, by_alias=True, by_name=False, context=self.tags)
        except ValidationError as error:
            twice = {finding.path for finding in text.findings if finding.code == "SPC108"}
            # That nothing stands behind a key is no second mistake where the key comes again with what was meant.
            found += [
                finding
                for finding in fields.findings(error, model, text)
                if finding.path not in twice or not finding.message.startswith("nothing is given")
            ]
            mistakes |= fields.mistakes(error, text)
        if any(each.code == "SPC131" and each.message.endswith("did you mean apiVersion?") for each in found):
            found = [each for each in found if each is not finding]  # the version is there, under a misspelt key
        known = self._declare(model, text, parsed if not found else None, mistakes)
        self.findings += _few(found, Source(text.file, text.place.line), "this document")
        return known

    def _declare(
        self, model: type[Model], text: Text, parsed: Model | None, mistakes: frozenset[tuple[Segment, ...]]
    ) -> bool:
        """Register a name; the second spec of a kind and name is not taken. Returns whether there is a name."""
        kind = model.__name__
        metadata = text.data.get("metadata") if isinstance(text.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(text.data, dict) or not isinstance(name, str):
            self.misnamed.add(kind)
            return False
        locate = Locator(text.file, text.place)
        key, here = (kind, name), locate("metadata.name")
        if ("metadata", "name") in mistakes:
            self.misnamed.add(kind)
        first = self.declared.setdefault(key, here)
        if first != here:
            message = f"a second {kind} {shown(name)}: the first is in {first}"
            self.findings.append(Finding("SPC201", message, here, path="metadata.name", fix="rename or delete one"))
            return True
        start = Source(text.file, text.place.line, text.place.column)
        if parsed is not None:
            self.models[key] = Document(parsed, start, locate)
        elif len(mistakes) <= _MAX_FINDINGS:
            partly = salvage(model, text.data, mistakes - {("metadata", "name")})
            self.spoilt[key] = Document(partly, start, locate, mistakes)
        return True

    def close(self) -> Loaded:
        """Judge what the documents say of each other."""
        if not self.documents and not self.unread:
            message = f"no spec in {', '.join(f'{folder}/' for folder in FOLDERS)}"
            self.findings.append(Finding("SPC120", message, Source("."), fix="start a platform with `blueprint new`"))
        elif self.documents:
            declared = references.Declared(self.declared, tuple(self.unread), frozenset(self.misnamed))
            found = Report.of(references.check(_platform(self.models | self.spoilt), declared)).findings
            for file, group in groupby(found, key=lambda finding: finding.source and finding.source.file):
                self.findings += _few(list(group), Source(file or ".", 1), "this file")
        findings = Report.of(self.findings).findings
        return Loaded(_platform(self.models), findings, self.documents, self.digest.hexdigest())


def _platform(documents: Mapping[tuple[str, str], Document[Model]]) -> Platform:
    def of(kind: type[M]) -> tuple[Document[M], ...]:
        return tuple(
            Document(document.model, document.source, document.locate, document.mistakes)
            for _, document in sorted(documents.items(), key=lambda entry: entry[0])
            if isinstance(document.model, kind)
        )

    return Platform(of(Cluster), of(Team), of(TrainingJob), of(InferenceService), of(Policy), of(Delivery))


def _is_text(content: bytes) -> bool:
    """Whether all names of a file can be looked for: it is UTF-8, and was read to its end."""
    try:
        return "\0" not in content.decode() and len(content) <= MAX_BYTES
    except UnicodeDecodeError:
        return False


def _kind(text: Text) -> tuple[type[Model] | None, Finding | None]:
    """The model of a document, and what is wrong with its kind or version; a note for what is no spec at all."""
    locate = Locator(text.file, text.place)
    data = text.data
    if not isinstance(data, dict):
        what = "a list" if isinstance(data, list) else f"the text or number {shown(data)}"
        fix = f"a spec is a mapping with apiVersion: {API_VERSION} and kind"
        return None, Finding("SPC121", f"this document is {what}, not a spec", locate(""), fix=fix)
    version, kind = data.get("apiVersion"), data.get("kind")
    ours = version == API_VERSION
    if ours and isinstance(kind, str) and kind in KINDS:
        return KINDS[kind], None
    if ours:
        return None, _wrong_kind(locate, kind)
    if version is None and kind in KINDS:
        message, fix = "apiVersion is missing", f"add apiVersion: {API_VERSION}"
        data["apiVersion"] = API_VERSION
        return KINDS[str(kind)], Finding("SPC122", message, locate(""), path="apiVersion", fix=fix)
    if isinstance(version, str) and nearest(version.partition("/")[0], [API_VERSION.partition("/")[0]]):
        message, fix = f"there is no apiVersion {shown(version)}", f"write {API_VERSION}"
        finding = Finding("SPC122", message, locate("apiVersion"), path="apiVersion", fix=fix)
        # The rest of the document is read as if the version were right.
        data["apiVersion"] = API_VERSION
        return (KINDS[kind], finding) if isinstance(kind, str) and kind in KINDS else (None, finding)
    if version is None and kind is None and "spec" in data:
        message, fix = "neither apiVersion nor kind", f"add apiVersion: {API_VERSION} and kind"
        return None, Finding("SPC121", message, locate(""), fix=fix)
    if not isinstance(version, str) or not isinstance(kind, str):
        lacks = " nor ".join(
            key for key, value in (("apiVersion", version), ("kind", kind)) if not isinstance(value, str)
        )
        message = f"no spec, and not rendered: it has {'neither ' if ' nor ' in lacks else 'no '}{lacks}"
        fix = f"add apiVersion: {API_VERSION} and kind, or move the file out of the folders of specs"
        return None, Finding("SPC124", message, locate(""), Severity.WARNING, Confidence.LIKELY, fix=fix)
    return None, _note(locate, f"not a spec, and not rendered: {kind} of {version}"[:200])


def _empty(name: str, content: bytes) -> Finding:
    """A file without a document. Who wrote comments knew what they did; who saved nothing may not."""
    at, fix = Source(name, 1), "write a spec, or delete the file"
    if content.strip(b" \t\r\n-\xef\xbb\xbf"):
        return Finding(
            "SPC124", "no document, only comments or null: nothing is rendered", at, Severity.NOTE, Confidence.STYLE
        )
    return Finding("SPC124", "the file is empty: nothing is rendered", at, Severity.WARNING, Confidence.LIKELY, fix=fix)


def _wrong_kind(locate: Locator, kind: object) -> Finding:
    if kind is None:
        message, near = "kind is missing", None
    else:
        message = f"there is no kind {shown(kind)}"
        near = nearest(kind, KINDS) if isinstance(kind, str) else None
    fix = f"write kind: {near}" if near else f"the kinds are {', '.join(KINDS)}"
    message += f"; did you mean {near}?" if near else ""
    return Finding("SPC121", message, locate("kind"), path="kind", fix=fix)


def _note(locate: Locator, message: str) -> Finding:
    return Finding("SPC123", message, locate(""), severity=Severity.NOTE, confidence=Confidence.STYLE)


def _few(found: list[Finding], at: Source, where: str) -> Iterator[Finding]:
    """At most a hundred findings of one document or file."""
    yield from found[:_MAX_FINDINGS]
    if rest := found[_MAX_FINDINGS:]:
        worst = Severity.ERROR if any(finding.fails for finding in rest) else Severity.WARNING
        yield Finding("SPC113", f"{len(rest)} more mistakes in {where}", at, worst, fix="correct the first ones")
