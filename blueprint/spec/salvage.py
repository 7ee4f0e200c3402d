"""What can still be read of a spec with mistakes, so that what is wrong with its names is told in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from blueprint.spec.base import Model
from blueprint.spec.positions import Segment

M = TypeVar("M", bound=Model)
Path = tuple[Segment, ...]

_EMPTY: Final[dict[object, object]] = {tuple: (), dict: {}}


def salvage(model: type[M], data: Mapping[str, Any], mistakes: frozenset[Path]) -> M:
    """The document as far as it can be taken, not validated.

    A field with a mistake holds its default, or None where it has none (lists and mappings: an empty one). All others
    hold what is written: numbers, text and lists, but no durations or shares.
    """
    return _part(model, data, (), mistakes)


def _part(model: type[M], data: Mapping[str, Any], path: Path, mistakes: frozenset[Path]) -> M:
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        here = (*path, key)
        if key in data and here not in mistakes:
            values[name] = _value(field.annotation, data[key], here, mistakes)
        else:
            values[name] = _nothing(field.annotation) if field.is_required() else field.get_default()
    return model.model_construct(**values)


def _value(annotation: object, value: Any, path: Path, mistakes: frozenset[Path]) -> object:  # noqa: ANN401
    kind = _plain(annotation)
    if isinstance(kind, type) and issubclass(kind, Model) and isinstance(value, dict):
        return _part(kind, value, path, mistakes)
    inner = get_args(kind)
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_item(inner[0], item, (*path, index), mistakes) for index, item in enumerate(value))
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: _item(inner[1], item, (*path, key), mistakes) for key, item in value.items()}
    return value


def _item(annotation: object, value: object, path: Path, mistakes: frozenset[Path]) -> object:
    return _nothing(annotation) if path in mistakes else _value(annotation, value, path, mistakes)


def _nothing(annotation: object) -> object:
    kind = _plain(annotation)
    if isinstance(kind, type) and issubclass(kind, Model):
        return _part(kind, {}, (), frozenset())
    return _EMPTY.get(get_origin(kind))


def _plain(annotation: object) -> object:
    """The type without its marks: of `Annotated[X, ...]` and `X | None` that is X."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        choices = [choice for choice in get_args(annotation) if choice is not NoneType]
        if get_origin(annotation) is not Annotated and len(choices) > 1:
            return None
        annotation = choices[0]
    return annotation
