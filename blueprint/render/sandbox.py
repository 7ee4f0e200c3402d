"""The Jinja environment of templates: every expression is written as JSON, and what a template can do is bounded.

Templates hold shape. The bounds catch mistakes (a loop without end, a template that includes itself, a text that
doubles in each round) and the plain attacks of a template in a pull request; they are no jail for a determined author.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, Undefined, nodes, pass_context
from jinja2.environment import Environment, Template
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from blueprint.render.emit import flow
from blueprint.render.molds import MARKS

MAX_STEPS = 100_000  # rounds of loops, calls and includes of one object
MAX_TEXT = 1_500_000  # characters of one object; etcd takes no request above 1.5 MiB

_MAX_FACTOR = 2**64

# Filters whose result depends on the input alone. Not among them: `random`, `pprint`, `tojson` (values are JSON
# already), `safe`, `format` and those that pad.
_FILTERS = (
    *("abs", "attr", "batch", "count", "d", "default", "dictsort", "first", "float", "groupby", "int", "items", "join"),
    *("last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round"),
    *("select", "selectattr", "slice", "sort", "string", "sum", "trim", "unique", "upper"),
)
_GLOBALS = ("dict", "namespace", "range")
# What writes a part of a template into a text that the template can look at.
_CAPTURES = (
    nodes.Macro,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.AssignBlock,
    nodes.Block,
    nodes.Import,
    nodes.FromImport,
)
_PADDING = frozenset({"center", "encode", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill"})
_MARK = re.compile("\0([^\0]*)\0")


class NotJSONError(ValueError):
    """An expression whose value JSON does not know."""


class RunawayError(RuntimeError):
    """A template that would take too many steps or write too much."""


def _write(value: object) -> str:
    """The value as JSON, with everything escaped that some YAML reader takes for something else."""
    if isinstance(value, Undefined):
        # What is missing, and an inline `if` without `else`, for which Jinja would write nothing even in strict mode.
        value._fail_with_undefined_error()
    try:
        return flow(value)
    except RecursionError:
        raise NotJSONError("the value is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise NotJSONError("it is a function, not a value" if callable(value) else str(error)) from None


class _Sources(BaseLoader):
    """Templates from memory; each is bounded (and marked, if `marked`) before it is compiled."""

    def __init__(self, sources: Mapping[str, tuple[str, str]], ready: Callable[[str], None], marked: bool) -> None:
        self.sources = sources
        self.ready = ready
        self.marked = marked
        #: Whether any template so far captures what it writes.
        self.captures = False

    def load(self, environment: Environment, name: str, globals: Any = None) -> Template:  # noqa: ANN401
        """Compile a template by name: the way of BaseLoader, with a look at the tree between parsing and compiling."""
        if name not in self.sources:
            raise TemplateNotFound(name)
        text, filename = self.sources[name]
        self.ready(name)
        if self.marked:
            text = text.rstrip("\n") + "\n\n"  # the last line is marked, too: Jinja drops only one line feed
        tree = environment.parse(text, name, filename)
        self.captures = self.captures or _captures(tree)
        _bound(tree)
        if self.marked:
            _mark(tree, name)
        with cast(Sandbox, environment).writing():  # constants are written when they are compiled
            code = environment.compile(tree, name, filename)
        return environment.template_class.from_code(environment, code, globals or {}, None)


def _captures(tree: nodes.Template) -> bool:
    loops = tree.find_all(nodes.For)
    return any(True for _ in tree.find_all(_CAPTURES)) or any(loop.recursive for loop in loops)


def _bound(tree: nodes.Template) -> None:
    """Count each round of each loop, and join texts (`~`) by our own rule."""
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, "_counted", [], [], None, None, lineno=loop.lineno)
    for node in list(tree.find_all((nodes.Node,))):
        for field, value in node.iter_fields():
            if isinstance(value, nodes.Concat):
                setattr(node, field, _joined(value))
            elif isinstance(value, list):
                value[:] = [_joined(item) if isinstance(item, nodes.Concat) else item for item in value]


def _joined(node: nodes.Concat) -> nodes.Filter:
    parts = nodes.List(node.nodes, lineno=node.lineno)
    return nodes.Filter(parts, "_joined", [], [], None, None, lineno=node.lineno)


def _mark(tree: nodes.Template, name: str) -> None:
    """End each line of the template's own text with a mark that says where it stands."""
    for data in tree.find_all(nodes.TemplateData):
        first, *rest = data.data.split("\n")
        marks = [f"\0{name}:{data.lineno + index}\0\n" for index in range(len(rest))]
        data.data = first + "".join(mark + line for mark, line in zip(marks, rest, strict=True))


class Sandbox(ImmutableSandboxedEnvironment):
    """One environment; it renders one template at a time.

    `sources` gives for each template name its text and the file it came from; `ready` is called with the name before
    a template is compiled and may raise to refuse it. `marked` templates write where each line came from.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(
        self,
        sources: Mapping[str, tuple[str, str]],
        ready: Callable[[str], None] = lambda name: None,
        *,
        marked: bool = False,
    ) -> None:
        self._sources = _Sources(sources, ready, marked)
        super().__init__(
            loader=self._sources,
            undefined=StrictUndefined,
            finalize=self._expression,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=-1,
        )
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters |= {"_counted": self._counted, "_joined": self._joined}
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self._steps = 0
        self._values: list[object] | None = None

    def text(self, name: str, values: Mapping[str, object]) -> str:
        """Render a template. Raises what Jinja raises, NotJSONError and RunawayError."""
        self._steps = 0
        chunks: list[str] = []
        size = 0
        for chunk in self.get_template(name).generate(values):
            size += len(chunk)
            if size > MAX_TEXT:
                raise RunawayError(f"it writes more than {MAX_TEXT:,} characters")
            chunks.append(chunk)
        return "".join(chunks)

    def marked(self, name: str, values: Mapping[str, object]) -> tuple[str, list[object]] | None:
        """Render a template with a mark for each expression, and collect their values; None where that cannot be.

        Raises as `text`, but not for what cannot be written as JSON.
        """
        found: list[object] = []
        if self._sources.captures:
            return None
        self._values = found
        try:
            text = self.text(name, values)
        except NotJSONError:
            return None  # more values than marks, or a constant that cannot be written
        finally:
            self._values = None
        return None if self._sources.captures else (text, found)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write expressions inside, even while marks are set outside."""
        values, self._values = self._values, None
        try:
            yield
        finally:
            self._values = values

    def _expression(self, value: object) -> str:
        """Jinja's `finalize`: what stands for the value of an expression."""
        values = self._values
        if values is None:
            return _write(value)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        position = len(values)
        if position == len(MARKS):
            raise NotJSONError("more values than there are marks")
        values.append(value)
        return MARKS[position]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise RunawayError(f"it takes more than {MAX_STEPS:,} steps (rounds of loops, calls, includes)")

    @pass_context  # keeps the compiler from doing it in advance
    def _counted(self, _context: Context, values: Iterable[object]) -> Iterator[object]:
        for value in values:
            self._step()
            yield value

    @pass_context
    def _joined(self, _context: Context, parts: list[object]) -> str:
        """`~` joins texts and numbers; Jinja would write `None` and `True` into names."""
        for part in parts:
            if isinstance(part, Undefined):
                part._fail_with_undefined_error()
            if isinstance(part, bool) or not isinstance(part, str | int | float):
                raise NotJSONError(f"{part!r} cannot be part of a text")
        text = "".join(map(str, parts))
        if len(text) > MAX_TEXT:
            raise RunawayError(f"it makes a text of more than {MAX_TEXT:,} characters")
        return text

    def join_path(self, template: str, parent: str) -> str:
        """The name an include means; names know no folders, so it is taken as it is."""
        self._step()
        return template

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call something from a template, which is a step. (Names are mangled as in the base class.)"""
        __self._step()
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Numbers may be multiplied; texts and lists may only be joined, up to a size."""
        if operator == "**":
            raise SecurityError("templates know no powers: compute the value in Python")
        if operator == "+":
            if hasattr(left, "__len__") and hasattr(right, "__len__") and len(left) + len(right) > MAX_TEXT:
                raise RunawayError(f"it makes a value of more than {MAX_TEXT:,} parts")
        elif not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"templates use {operator} on numbers only")
        elif abs(left) > _MAX_FACTOR or abs(right) > _MAX_FACTOR:
            raise RunawayError("it computes a number that no object holds")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401
        """`spec.items` means the key `items` of a map before it means the method.

        Keys of maps and fields of dataclasses, which is nearly all, take no look at what is safe: they are data.
        """
        kind = type(obj)
        if kind is dict:
            if attribute in obj:
                return obj[attribute]
        elif attribute in getattr(kind, "__dataclass_fields__", ()) and not attribute.startswith("_"):
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ANN401
        """Leave `format` to `is_safe_attribute`, which refuses it."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ANN401
        """Refuse what the sandbox refuses, and the text methods that pad to any width."""
        return super().is_safe_attribute(obj, attr, value) and not (isinstance(obj, str) and attr in _PADDING)


def places(marked: str) -> list[str]:
    """For each line that a marked sandbox wrote, `name:line` of the template text that ended it ("" where unknown)."""
    found = []
    for line in marked.split("\n"):
        marks = _MARK.findall(line)
        found.append(marks[-1] if marks else "")
    return found
