"""Selectors of devices: what the API server's types refuse, and what no device can have."""

from __future__ import annotations

import pytest

from blueprint.check.native.selectors import refused, unmet


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("device.attribute['gpu.nvidia.com'].type == 'gpu'", "did you mean attributes?"),
        ("device.name == 'gpu-0'", "no field name, only driver"),
        ("device['driver'] == 'gpu.nvidia.com'", "no value that has a use by itself"),
        ("device.driver", "gives a text"),
        ("device.attributes['gpu.nvidia.com']", "gives all attributes of a domain"),
        ("device.attributes", "gives attributes by domain"),
        ("device.attributes.type == 'gpu'", "== is not for all attributes of a domain and a text"),
        ("device.driver == 3", "== is not for a text and a number"),
        ("device.capacity['gpu.nvidia.com'].memory >= 40", "a quantity and a number; write quantity"),
        ("device.capacity['gpu.nvidia.com'].memory + device.driver == 'a'", "a quantity and a text"),
    ],
)
def test_the_reason_is_told(text: str, words: str) -> None:
    assert words in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'",
        "device.attributes['gpu.nvidia.com'].shared",
        "has(device.driver) && has(device.attributes['gpu.nvidia.com'].profile)",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
        "cel.bind(gpu, device.attributes['gpu.nvidia.com'], gpu.type == 'gpu')",
        "['device'].exists(device, device == 'device')",
        "device.attributes['gpu.nvidia.com'].anything(3)",
        "device.?driver.orValue('') == 'a'",
        "device.driver ==",
    ],
)
def test_nothing_is_said_of_what_is_taken_or_not_known(text: str) -> None:
    assert refused(text) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("device.attributes['gpu nvidia'].type == 'gpu'", "of the domain 'gpu nvidia'"),
        ("device.attributes[''].type == 'gpu'", "it is empty"),
        (f"device.attributes['{'a' * 64}'].type == 'gpu'", "more than 63 characters"),
        ("device.capacity['gpu.nvidia.com/gpu'].memory == quantity('1')", "'gpu.nvidia.com/gpu'"),
        ('device.attributes["gpu.nvidia.com"]["product-name"] == "a"', "'product-name': a name is letters"),
    ],
)
def test_what_no_device_has(text: str, words: str) -> None:
    assert words in unmet(text)


@pytest.mark.parametrize(
    "text",
    [
        "device.attributes['GPU.nvidia.com']['productName'] == 'a'",
        "device.attributes[domain].a",
        "'a b' == device.driver",
    ],
)
def test_domains_of_the_right_form(text: str) -> None:
    assert unmet(text) == ""
