"""Templates: one Jinja2 file per kind of object, read from the user's folder first and then from ours.

A template is YAML with Jinja tags. Each `{{ expression }}` becomes JSON, which is a whole YAML value, so nothing needs
quoting or indenting and no value can leave its place. An entry of a map whose value is null is left out, which is how
a template says "only if". Filters, loops and sizes are bounded (`blueprint.render.sandbox`).
"""

from __future__ import annotations

import difflib
import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml_rs
from jinja2 import TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import SecurityError, UndefinedError

from blueprint.errors import UsageError
from blueprint.finding import Finding, Severity, Source
from blueprint.render.molds import Molds
from blueprint.render.sandbox import NotJSONError, RunawayError, Sandbox, places
from blueprint.render.shape import faults

SUFFIX = ".yaml.j2"
_MAX_FILE = 256 * 1024
_LIKE_TEMPLATES = (".yaml", ".yml", ".j2", ".jinja", ".jinja2")
_LINE = re.compile(r"\bline (\d+)")
# More levels than any object has (`emit` refuses 200). yaml_rs 0.1.6 bounds the depth of brackets, not that of indents.
_MAX_DEPTH = 150
_TOO_DEEP = re.compile(r"^[ ?-]{250}", re.MULTILINE)
# `kind: Thing` at the top, and below `metadata` what the caller gives: `name: {{ name }}`.
_IDENTITY = re.compile(
    r"^(?:(?=kind)|  (?=name))(kind|name|namespace): (\w+|\{\{ (?:name|namespace) \}\})$", re.MULTILINE
)
_UNDEFINED = re.compile(r"^'(\w+)' is undefined$")


class TemplateProblem(Exception):
    """A template cannot be rendered; `finding` says why, at the line of the template."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(frozen=True, slots=True)
class _File:
    """A template file: where it is and what it says, or why it cannot be read; ours come with the product."""

    path: str
    text: str
    fault: str = ""
    ours: bool = False


def shipped_folder() -> Path:
    """The folder of our own templates: inside the installed package, else at the top of the repository."""
    package = Path(__file__).parents[1]
    installed = package / "_data" / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


class Templates:
    """All templates by name; of two files of the same name the one in the earlier folder counts.

    `folders` are the user's, first things first; ours comes last unless `shipped` is another folder. A folder that is
    not there raises UsageError. Instances are not to be shared between threads.
    """

    def __init__(self, folders: Sequence[Path] = (), *, shipped: Path | None = None) -> None:
        ours = shipped or shipped_folder()
        self._files = {name: replace(file, ours=True) for name, file in _read_folder(ours)}
        self._identities = {name: dict(_IDENTITY.findall(file.text)) for name, file in self._files.items()}
        for folder in reversed(folders):
            self._files |= _read_folder(folder)
        self._astray = [path for folder in folders for path in _astray(folder)]
        self._sources = {name + SUFFIX: (file.text, file.path) for name, file in self._files.items()}
        self._sandbox = Sandbox(self._sources, self._refuse)
        self._molds = Molds()

    def names(self) -> list[str]:
        """The names that `render` knows, sorted."""
        return sorted(self._files)

    def override(self, kind: str) -> str:
        """The path of the user's template of that name, "" where ours counts."""
        file = self._files.get(kind)
        return "" if file is None or file.ours else file.path

    def digest(self) -> str:
        """SHA-256 over the names and texts of all templates that count; the same on every machine."""
        digest = hashlib.sha256()
        for name in self.names():
            text = self._files[name].text.encode()
            digest.update(f"{name}\0{len(text)}\0".encode() + text)
        return digest.hexdigest()

    def check(self, *, ours: bool = True) -> list[Finding]:
        """What is wrong with any template without rendering it: its file, its shape, its syntax.

        Our own are looked at unless `ours` is false: they are tested before they are shipped.
        """
        findings: list[Finding] = []
        for name in self.names():
            if self._files[name].ours and not ours:
                continue
            found = self._faults(name)
            if not found:
                try:
                    self._sandbox.get_template(name + SUFFIX)
                except (TemplateSyntaxError, TemplateProblem) as error:
                    found = [self._finding(name, error, None, {})]
            findings += found
        return findings

    def unused(self) -> list[Finding]:
        """Templates of the user's that replace none of ours and that no other one includes: written in vain."""
        texts = [file.text for file in self._files.values()]
        findings = []
        for path in self._astray:
            message = f"nothing is made from it: a template is called <Kind>{SUFFIX}, in the folder itself"
            fix = f"call it {path.name.partition('.')[0]}{SUFFIX}"
            findings.append(Finding("TPL116", message, Source(str(path)), Severity.WARNING, fix=fix))
        for name in self.names():
            file = self._files[name]
            if name not in self._identities and not any(f"{name}{SUFFIX}" in text for text in texts):
                close = difflib.get_close_matches(name.lower(), known := {k.lower(): k for k in self._identities}, 1)
                fix = f"did you mean {known[close[0]]}{SUFFIX}?" if close else "`templates/` of blueprint has the names"
                message = f"nothing is made from it: there is no {name}{SUFFIX} to replace"
                findings.append(Finding("TPL116", message, Source(file.path), Severity.WARNING, fix=fix))
        return findings

    def render(self, kind: str, /, *, source: Source | None = None, **values: object) -> dict[str, Any]:
        """Render the template named `kind` to plain data: a map with string keys, without null entries.

        `source` is the place in the spec that asks for the object; findings name it, the template does not see it.
        Raises TemplateProblem.
        """
        if kind not in self._files:
            close = difflib.get_close_matches(kind, self._files, 1)
            fix = f"did you mean {close[0]}?" if close else "templates are called <Kind>.yaml.j2"
            raise TemplateProblem(Finding("TPL101", f"there is no template for {kind}", source, fix=fix))
        try:
            marked = self._sandbox.marked(kind + SUFFIX, values)
            if marked is not None and (body := self._molds.cast(*marked)) is not None:
                return body
            text = self._sandbox.text(kind + SUFFIX, values)
        except Exception as error:
            raise TemplateProblem(self._finding(kind, error, source, values)) from None
        body = self._read(kind, text, source, values)
        self._same(kind, body, source, values)
        if marked is not None:
            self._molds.learn(*marked, body)
        return body

    def _read(self, kind: str, text: str, source: Source | None, values: Mapping[str, object]) -> dict[str, Any]:
        """Parse rendered text; `values` are there to find the line of the template again after a failure."""
        whole = Source(self._files[kind].path)
        too_deep = "the rendered text is nested too deeply"
        try:
            if deep := _TOO_DEEP.search(text):
                where = self._origin(kind, values, text.count("\n", 0, deep.start()) + 1)
                raise TemplateProblem(_problem("TPL107", too_deep, where, source))
            # With `parse_datetime` yaml_rs 0.1.6 makes dates of quoted strings, too.
            body = yaml_rs.loads(text, parse_datetime=False)
            if isinstance(body, dict) and body:
                return dict(_tidy(body))
        except yaml_rs.YAMLDecodeError as error:
            message, line = _said(str(error), text)
            raise TemplateProblem(_problem("TPL107", message, self._origin(kind, values, line), source)) from None
        except RecursionError:
            raise TemplateProblem(_problem("TPL107", too_deep, whole, source)) from None
        except TypeError:
            raise TemplateProblem(
                _problem("TPL108", "a key is a list of maps, no string", whole, source, "quote the key")
            ) from None
        except _NoKey as error:
            key = error.args[0]
            shown = "a map or a list" if isinstance(key, tuple | frozenset) else repr(key)
            message = f"the key {shown} under {_above(body, key)} is no string"
            raise TemplateProblem(_problem("TPL108", message, whole, source, "quote the key")) from None
        shapes = {dict: "an empty map", list: "a list or several documents", type(None): "nothing"}
        message = f"the template renders {shapes.get(type(body), 'a single value')}, not one map"
        raise TemplateProblem(_problem("TPL108", message, whole, source))

    def _same(self, kind: str, body: Mapping[str, Any], source: Source | None, values: Mapping[str, object]) -> None:
        """Refuse another object than ours: waves, queues, bindings and drift rules know it by kind and name."""
        ours = self._identities.get(kind, {})
        if self._files[kind].ours or "kind" not in ours:
            return  # parts of objects, such as a pod's template, have no kind of their own
        metadata = body.get("metadata")
        found = {**(metadata if isinstance(metadata, dict) else {}), "kind": body.get("kind")}
        for key, said in {**ours, "namespace": ours.get("namespace")}.items():
            asked = values.get(key) if said and said.startswith("{{") else said
            if found.get(key) != asked:
                message = (
                    f"the {key} is {found.get(key)!r}, and {'none' if asked is None else repr(asked)} is asked for"
                )
                fix = f"leave kind, name and namespace as in {kind}{SUFFIX} of blueprint"
                raise TemplateProblem(_problem("TPL115", message, Source(self._files[kind].path), source, fix))

    def _refuse(self, name: str) -> None:
        """Called before a template is compiled: a file that cannot be read or has a wrong shape is not."""
        name = name.removesuffix(SUFFIX)
        if not self._files[name].ours and (found := self._faults(name)):
            raise TemplateProblem(found[0])

    def _faults(self, name: str) -> list[Finding]:
        file = self._files[name]
        if file.fault:
            return [Finding("TPL113", f"the template cannot be used: {file.fault}", Source(file.path))]
        try:
            found = faults(self._sandbox.lex(file.text))
        except TemplateSyntaxError:
            return []  # compiling says it with the right line
        return [Finding(f.code, f.message, Source(file.path, f.line), fix=f.fix) for f in found]

    def _finding(self, kind: str, error: Exception, source: Source | None, values: Mapping[str, object]) -> Finding:
        """What a failure of Jinja means to a person, at the line of the template where it happened."""
        if isinstance(error, TemplateProblem):
            return _problem_of(error.finding, source)
        where = self._line_of(error) or Source(self._files[kind].path)
        fix = ""
        match error:
            case TemplateNotFound():
                code, message = "TPL101", f"the template includes {error.name!r}, which is not there"
            case TemplateSyntaxError():
                code, message = "TPL102", f"the template is no valid Jinja: {error.message}"
                where = Source(error.filename or where.file, error.lineno)
            case SecurityError():
                code, message = "TPL104", f"the template may not do that: {error}"
            case UndefinedError():
                code, message = "TPL103", f"the template uses something that is not there: {error}"
                fix = _missing(str(error), values)
            case NotJSONError():
                code, message = "TPL106", f"the expression cannot be written: {error}"
            case RunawayError() | OverflowError():
                code, message = "TPL105", f"the template does not come to an end: {error}"
            case RecursionError() | MemoryError():
                code, message = "TPL105", "the template does not come to an end: it calls or includes itself"
            case _:
                code, message = "TPL114", f"the template fails: {type(error).__name__}: {error}"
        return _problem(code, message, where, source, fix)

    def _line_of(self, error: Exception) -> Source | None:
        """The innermost template line of a traceback, which Jinja has rewritten to template files."""
        known = {path for _, path in self._sources.values()}
        found, trace = None, error.__traceback__
        while trace is not None:
            if (file := trace.tb_frame.f_code.co_filename) in known:
                found = Source(file, trace.tb_lineno)
            trace = trace.tb_next
        return found

    def _origin(self, kind: str, values: Mapping[str, object], line: int) -> Source:
        """The template line that wrote a line of the rendered text: rendered again, with marks."""
        whole = Source(self._files[kind].path)
        if not line:
            return whole
        try:
            marked = Sandbox(self._sources, marked=True).text(kind + SUFFIX, values)
        except TemplateSyntaxError:
            return whole  # an open tag at the very end, which Jinja forgives unless something follows
        mark = next(filter(None, places(marked)[line - 1 :]), "")
        name, _, number = mark.rpartition(":")
        return Source(self._sources[name][1], int(number)) if mark else whole


class _NoKey(Exception):
    """A key that is no string."""


def _tidy(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value in, the same kind of value out
    """Leave out map entries whose value is null, at every depth; refuse keys that are no strings."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        kept = {}
        for key, child in value.items():
            if type(key) is not str:
                raise _NoKey(key)
            if child is not None:
                kept[key] = _tidy(child, depth + 1) if isinstance(child, dict | list) else child
        return kept
    return [_tidy(item, depth + 1) if isinstance(item, dict | list) else item for item in value]


def _above(value: object, key: object, path: str = "") -> str:
    """The path of the first map that has the key, "" for none."""
    if isinstance(value, dict):
        if key in value:
            return path or "the top"
        return next(
            filter(None, (_above(child, key, f"{path}.{name}".lstrip(".")) for name, child in value.items())), ""
        )
    if isinstance(value, list):
        return next(filter(None, (_above(child, key, f"{path}[{i}]") for i, child in enumerate(value))), "")
    return ""


def _read_folder(folder: Path) -> Iterable[tuple[str, _File]]:
    if not folder.is_dir():
        raise UsageError("there is no such folder of templates", where=str(folder))
    inside = folder.resolve()
    seen: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(SUFFIX):
            continue
        name = path.name.removesuffix(SUFFIX)
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            yield name, _File(str(path), "", f"{twin}{SUFFIX} differs only in the case of letters")
        elif not path.resolve().is_relative_to(inside):
            yield name, _File(str(path), "", "it is a link that leads out of its folder")
        else:
            yield name, _read_file(path)


def _astray(folder: Path) -> Iterator[Path]:
    """What was probably meant for a template: other endings, and folders below."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        below = path.parent != folder and path.name.endswith(SUFFIX)
        other = path.suffix in _LIKE_TEMPLATES and not path.name.endswith(SUFFIX)
        if (below or other) and not hidden and path.is_file():
            yield path


def _read_file(path: Path) -> _File:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            return _File(str(path), "", "it is no regular file")  # opening a pipe would wait for whoever writes it
        if status.st_size > _MAX_FILE:
            return _File(str(path), "", f"it is larger than {_MAX_FILE // 1024} KiB")
        # `read_text` turns CRLF into LF, so that the digest does not depend on how Git checked the file out.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        return _File(str(path), "", f"byte {error.start} is not UTF-8")
    except OSError as error:
        return _File(str(path), "", error.strerror or "it cannot be read")
    fault = "it holds control characters" if re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f]", text) else ""
    return _File(str(path), "" if fault else text, fault)


def _problem(code: str, message: str, where: Source, source: Source | None, fix: str = "") -> Finding:
    return _problem_of(Finding(code, " ".join(message.split()), where, fix=fix), source)


def _problem_of(finding: Finding, source: Source | None) -> Finding:
    """The same finding, naming the place in the spec that asked for the object."""
    if source is None:
        return finding
    return Finding(finding.code, f"{finding.message} (rendering {source})", finding.source, fix=finding.fix)


def _missing(message: str, values: Mapping[str, object]) -> str:
    name = _UNDEFINED.match(message)
    close = difflib.get_close_matches(name[1], values, 1) if name else []
    return f"did you mean {close[0]}?" if close else ""


def _said(error: str, text: str) -> tuple[str, int]:
    """What the parser means, with the rendered line, and the number of that line (0 where it is not known)."""
    line = int(found[1]) if (found := _LINE.search(error)) else _repeated_key(text)
    message = f"the rendered text is no YAML: {error.strip().splitlines()[-1].strip()}"
    if not line:
        return message, 0
    lines = text.split("\n")
    return f"{message} (rendered line {line}: {lines[min(line, len(lines)) - 1].strip()[:80]!r})", line


def _repeated_key(text: str) -> int:
    """The line of the first key that is written twice in one map; 0 where there is none."""
    import yaml

    try:
        stack = [yaml.compose(text, yaml.CSafeLoader)]
    except yaml.YAMLError:
        return 0
    while stack:
        node = stack.pop()
        if isinstance(node, yaml.SequenceNode):
            stack += reversed(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen = set()
            for key, child in node.value:
                if key.value in seen:
                    return int(key.start_mark.line) + 1
                seen.add(key.value if isinstance(key.value, str) else id(key))
                stack.append(child)
    return 0
