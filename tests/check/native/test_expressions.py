"""CEL in policies and selectors, as far as it can be read without the server's functions."""

from __future__ import annotations

import pytest

from blueprint.check.native.expressions import fault

NAMES = ("object", "oldObject")


@pytest.mark.parametrize("text", ["has(obj.spec.type)", "obj.spec.type", "object.spec.all(c, cc.y)"])
def test_a_variable_that_is_not_there_is_likely_a_mistake(text: str) -> None:
    found = fault(text, NAMES)
    assert found is not None
    assert "there is no variable" in found[0] and not found[1]


@pytest.mark.parametrize("text", ["has(object.spec.type)", "foo(object.x)", "object.spec.all(c, c.y)"])
def test_functions_and_what_is_there_are_left_to_the_server(text: str) -> None:
    assert fault(text, NAMES) is None


def test_what_does_not_parse_is_certain() -> None:
    found = fault("object.spec ==", NAMES)
    assert found is not None and found[1]
