"""What all specs share: the base model and the small types with units."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints

API_VERSION: Final = "platform.blueprint/v1alpha1"


class Model(BaseModel):
    """Frozen and closed; keys are camelCase as in Kubernetes, attributes snake_case."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: re.sub(r"_(\w)", lambda m: m[1].upper(), name),
        populate_by_name=True,
        validate_default=True,
        strict=True,
    )


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}


def _duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"a duration needs its unit, such as 30s, 10m or 2h; got {value!r}")
    parts = _DURATION.findall(value)
    if not parts or "".join(n + u for n, u in parts) != value:
        raise ValueError(f"not a duration: {value!r}; write a number and ms, s, m, h or d, such as 800ms or 1h30m")
    return timedelta(seconds=float(sum(Decimal(n) * _SECONDS[u] for n, u in parts)))


def _percent(value: object) -> object:
    if isinstance(value, Decimal):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s?%", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"not a percentage: {value!r}; write it with its sign, such as 5% or 0.5%")
    share = Decimal(match[1]) / 100
    if share > 1:
        raise ValueError(f"more than 100%: {value!r}")
    return share


def _rate(value: object) -> object:
    if isinstance(value, Decimal):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s?/\s?s", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"not a rate: {value!r}; write it per second, such as 120/s")
    return Decimal(match[1])


_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_SIZE = re.compile(r"\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")


def _size(value: object) -> object:
    if not isinstance(value, str) or not _SIZE.fullmatch(value):
        raise ValueError(f"not a size: {value!r}; write a number with Mi, Gi or Ti, such as 64Gi")
    return value


def _quantity(value: object) -> object:
    text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    if not _QUANTITY.fullmatch(text):
        raise ValueError(f"not a quantity: {value!r}; write cores as 8 or 500m")
    return text


def _image(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9.\-]+(:\d+)?(/[a-z0-9._\-]+)+(:[\w.\-]+)?@sha256:[0-9a-f]{64}", value):
        raise ValueError(f"not an image by digest: {value!r}; write registry/name@sha256:<64 hex digits>")
    return value


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", value) or len(value) > 63:
        raise ValueError(
            f"not a name: {value!r}; use at most 63 lower-case letters, digits and '-', a letter or digit at both ends"
        )
    return value


def _label_key(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    good = re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", name) and len(name) <= 63
    if slash:
        good = good and re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", prefix) and len(prefix) <= 253
    if not good:
        raise ValueError(f"not a label key: {value!r}; write name or example.com/name")
    return value


def _label_value(value: str) -> str:
    if not re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", value) or len(value) > 63:
        raise ValueError(f"not a label value: {value!r}; at most 63 letters, digits, '-', '_' and '.'")
    return value


#: A DNS label of at most 63 characters.
Name = Annotated[str, AfterValidator(_name)]
#: A span of time; JSON and YAML write it as "800ms", "10m", "1h30m".
Duration = Annotated[timedelta, BeforeValidator(_duration, json_schema_input_type=str)]
#: A share between 0 and 1, written as "5%".
Percent = Annotated[Decimal, BeforeValidator(_percent, json_schema_input_type=str)]
#: Events per second, written as "120/s".
Rate = Annotated[Decimal, BeforeValidator(_rate, json_schema_input_type=str)]
#: Bytes, written with a binary or decimal suffix, such as "64Gi".
Size = Annotated[str, BeforeValidator(_size, json_schema_input_type=str)]
#: A Kubernetes quantity without unit, such as 8 or "500m".
Cores = Annotated[str, BeforeValidator(_quantity, json_schema_input_type=str | int)]
#: An image reference that carries its digest.
Image = Annotated[str, AfterValidator(_image)]
#: A label key, with or without prefix.
LabelKey = Annotated[str, AfterValidator(_label_key)]
#: A label value.
LabelValue = Annotated[str, AfterValidator(_label_value)]
#: An absolute path inside a container.
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00]*$")]
#: A web address.
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
#: A version of three numbers.
Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class Metadata(Model):
    """The name of a spec."""

    name: Name
