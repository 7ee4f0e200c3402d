"""Which fields each kind of spec has, and where: read off the models."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Union, get_args, get_origin

from blueprint.spec.base import Model
from blueprint.spec.positions import Segment


def fields_at(model: type[Model], path: tuple[Segment, ...]) -> list[str]:
    """The fields of the mapping at a path of a document of that kind, as people write them."""
    options: list[object] = [model]
    for segment in path:
        options = [inner for option in options for inner in _step(option, segment)]
    models = [inner for option in options for inner in _models(option)]
    return [field.alias or name for inner in models for name, field in inner.model_fields.items()]


def _step(annotation: object, segment: Segment) -> Iterator[object]:
    """The types below a type, for one segment of a path."""
    for option in _alternatives(annotation):
        if isinstance(option, type) and issubclass(option, Model):
            for name, field in option.model_fields.items():
                if segment in (name, field.alias):
                    yield field.annotation
        elif get_origin(option) is tuple:
            yield get_args(option)[0]
        elif get_origin(option) is dict:
            yield get_args(option)[1]


def _alternatives(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for option in get_args(annotation):
            yield from _alternatives(option)
    else:
        yield annotation


def _models(annotation: object) -> Iterator[type[Model]]:
    for option in _alternatives(annotation):
        if isinstance(option, type) and issubclass(option, Model):
            yield option


@cache
def homes(model: type[Model]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each field anywhere below a model, with the path of the mapping that holds it."""

    def walk(annotation: object, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        for option in _alternatives(annotation):
            if isinstance(option, type) and issubclass(option, Model):
                for name, field in option.model_fields.items():
                    alias = field.alias or name
                    yield alias, path
                    yield from walk(field.annotation, (*path, alias))
            elif get_origin(option) is tuple:
                yield from walk(get_args(option)[0], path)

    return tuple(walk(model, ()))
