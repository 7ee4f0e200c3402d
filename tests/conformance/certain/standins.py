"""Stand-ins for the libraries that vLLM imports and this machine does not have, torch above all.

What is judged is vLLM's own code: options, configurations, dispatch, arithmetic. It imports gigabytes of libraries on
its way there, and calls nothing of them. So each name of such a library is here a class that takes anything and does
nothing. A library that is installed is the real one: pydantic, which refuses values, is.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import operator
import re
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

#: Not libraries of vLLM: what other libraries look for and do without, and the platforms that vLLM would take this for.
_ABSENT = frozenset(sys.stdlib_module_names) | {
    *("vllm", "_winapi", "org", "java", "simplejson", "socks", "chardet", "backports", "brotli", "brotlicffi"),
    *("amdsmi", "libtpu", "tpu_commons", "tpu_inference", "vllm_xpu_kernels"),
}
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "pow", "or_", "and_")


class _Kind(type):
    """The classes among stand-ins: an attribute of one is another."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: object) -> _Kind:
        return super().__new__(cls, name, bases, body)

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **_: object) -> None:
        super().__init__(name, bases, body)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, made := stand_in(name))
        return made

    def __call__(cls, *_: object, **__: object) -> Any:
        return super().__call__()

    def __getitem__(cls, _: object) -> Any:
        return cls

    def __setitem__(cls, _: object, __: object) -> None: ...

    def __iter__(cls) -> Any:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __bool__(cls) -> bool:
        return True

    def __int__(cls) -> int:
        return 0

    def __neg__(cls) -> Any:
        return cls


class StandIn(metaclass=_Kind):
    """A value among stand-ins; as a decorator it leaves the function as it is."""

    def __init_subclass__(cls, **_: object) -> None: ...

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        object.__setattr__(self, name, made := stand_in(name))
        return made

    def __call__(self, *given: Any, **more: object) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not more else StandIn()

    def __eq__(self, other: object) -> bool:
        return type(self).__name__ == type(other).__name__

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def __getitem__(self, _: object) -> Any:
        return StandIn()

    def __setitem__(self, _: object, __: object) -> None: ...

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 0

    def __neg__(self) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> bool:
        return False


def _arithmetic() -> None:
    """Constants of modules are computed from stand-ins: the other operand comes out, nothing is ever less."""
    for name in _BINARY:
        plain = name.strip("_")
        for owner in (_Kind, StandIn):
            if owner is _Kind and plain in ("or", "and"):
                continue  # an annotation such as `torch.dtype | None` is a union of types
            setattr(owner, f"__{plain}__", lambda self, other: other if isinstance(other, str) else self)
            setattr(owner, f"__r{plain}__", lambda _, other: other)
    for name in ("lt", "gt", "le", "ge", "contains"):
        for owner in (_Kind, StandIn):
            setattr(owner, f"__{name}__", lambda *_: False)


_arithmetic()


def stand_in(name: str) -> Any:
    """A class of this name that takes anything."""
    return _Kind(name, (StandIn,), {})


class _Library(types.ModuleType):
    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "2.9.0"
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, made := stand_in(name))
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: what nobody else finds is a library of stand-ins."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        top, _, rest = name.partition(".")
        compiled = top == "vllm" and re.fullmatch(r"_\w+", rest)  # extension modules, which a source tree has not
        if top in _ABSENT and not compiled:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Library(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def _infer_schema(function: Callable[..., object], *_: object, **__: object) -> str:
    """The form of torch's schemas of operators, which vLLM compares and takes apart while it registers its own."""
    signature = inspect.signature(function)
    number = max(1, str(signature.return_annotation).count("Tensor"))
    given = ", ".join(f"Tensor {name}" for name in signature.parameters)
    return f"({given}) -> " + ("Tensor" if number == 1 else f"({', '.join(['Tensor'] * number)})")


class _Empty:
    """`torch.tensor([], dtype=…)`, of which vLLM asks the size of an element."""

    def __init__(self, _: object, dtype: Any) -> None:
        self._dtype = dtype

    def element_size(self) -> int:
        return operator.index(self._dtype.itemsize)


def install() -> None:
    """Let everything that is missing be imported."""
    sys.modules["regex"] = re  # the same patterns, read by the standard library
    sys.meta_path.append(_Finder())
    torch = importlib.import_module("torch")
    for name, parts in {
        "library": {"infer_schema": _infer_schema},
        "cuda": {"get_device_capability": lambda *_: (9, 0)},
    }.items():
        module = importlib.import_module(f"torch.{name}")
        vars(module).update(parts)
        setattr(torch, name, module)
    torch.tensor = _Empty  # type: ignore[attr-defined]
