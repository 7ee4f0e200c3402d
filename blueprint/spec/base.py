"""What all specs share: the base model and the small types with units."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from blueprint import plaintext
from blueprint.spec.images import Collected, locked

API_VERSION: Final = "platform.blueprint/v1alpha1"


def _say_meanings(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Put the text below each field of a model into its schema.

    Pydantic can do so itself (`use_attribute_docstrings`), but reads every module's source again at each start.
    """
    import ast
    from inspect import cleandoc, getsource
    from textwrap import dedent

    (body,) = (node.body for node in ast.parse(dedent(getsource(model))).body if isinstance(node, ast.ClassDef))
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                schema["properties"][model.model_fields[name].alias]["description"] = cleandoc(text)


class Model(BaseModel):
    """Frozen and closed; keys are camelCase as in Kubernetes, attributes snake_case.

    The text below a field is its description in the schemas for editors.
    """

    model_config = ConfigDict(
        json_schema_extra=_say_meanings,
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: re.sub(r"_(\w)", lambda m: m[1].upper(), name),
        populate_by_name=True,
        validate_default=True,
        strict=True,
    )


def fault(field: str, message: str) -> PydanticCustomError:
    """The error of a model validator that blames one field (written in camelCase) of the model."""
    return PydanticCustomError("contradiction", "{message}", {"field": field, "message": message})


def shown(value: object) -> str:
    """A value for a message: as JSON, which is how people wrote it, cut after 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


# Twelve digits are more than any machine has; a bound keeps arithmetic and messages small.
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_DURATION = re.compile(rf"({_NUMBER})(ms|s|m|h|d)")
_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
_LONGEST = 100 * 365 * 86400


def _duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f"a duration needs its unit, such as 30s, 10m or 2h; got {shown(value)}")
    parts = _DURATION.findall(value)
    if not parts or "".join(n + u for n, u in parts) != value:
        raise ValueError(f"not a duration: {shown(value)}; write a number and ms, s, m, h or d, such as 800ms or 1h30m")
    seconds = sum(Decimal(n) * _SECONDS[u] for n, u in parts)
    if seconds > _LONGEST:
        raise ValueError(f"a duration of more than 100 years: {shown(value)}")
    return timedelta(seconds=float(seconds))


def _percent(value: object) -> object:
    if isinstance(value, Decimal):
        return value
    match = re.fullmatch(rf"({_NUMBER})\s?%", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"not a percentage: {shown(value)}; write it with its sign, such as 5% or 0.5%")
    share = Decimal(match[1]) / 100
    if share > 1:
        raise ValueError(f"more than 100%: {shown(value)}")
    return share


def _rate(value: object) -> object:
    if isinstance(value, Decimal):
        return value
    match = re.fullmatch(rf"({_NUMBER})\s?/\s?s", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"not a rate: {shown(value)}; write it per second, such as 120/s")
    return Decimal(match[1])


_QUANTITY = re.compile(rf"{_NUMBER}(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_SIZE = re.compile(rf"{_NUMBER}(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")


def _size(value: object) -> object:
    if not isinstance(value, str) or not _SIZE.fullmatch(value):
        alike = re.fullmatch(rf"({_NUMBER})\s*([kmgtp])i?b?", value, re.IGNORECASE) if isinstance(value, str) else None
        meant = f"write {alike[1]}{alike[2].upper()}i" if alike else "write a number with Mi, Gi or Ti, such as 64Gi"
        raise ValueError(f"not a size: {shown(value)}; {meant}")
    return _some(value)


def _quantity(value: object) -> object:
    text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    if not _QUANTITY.fullmatch(text):
        raise ValueError(f"not a quantity: {shown(value)}; write cores as 8 or 500m")
    return _some(text)


def _some(amount: str) -> str:
    """Nothing runs on nothing, and a claim or a quota of nothing holds everything back."""
    if not re.search("[1-9]", amount):
        raise ValueError(f"nothing at all: {shown(amount)}; write an amount above zero")
    return amount


_REPOSITORY = r"[a-z0-9.\-]+(:[0-9]+)?(/[a-z0-9._\-]+)+"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}"
_DIGEST = r"@sha256:[0-9a-f]{64}"
_IMAGE = rf"{_REPOSITORY}(:[A-Za-z0-9_.\-]+)?{_DIGEST}"
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
# git-fetch(1), GIT URLS: with a scheme, as host:path of ssh, or a path of this machine.
_REMOTE = r"((https?|ssh|git|file)://[^\s/]*/\S+|([\w.\-]+@)?[\w.\-]+:/?[^\s/]\S*|/\S+)"
_VERSION = r"[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}"
# kubernetes v1.35.4 apimachinery util/validation IsRelaxedEnvVarName.
_ENV_NAME = r"[ -<>-~]+"
_HOST = rf"{_NAME}(\.{_NAME})*"
_DOMAIN = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


def _image(value: str, info: ValidationInfo) -> str:
    if re.fullmatch(_REPOSITORY + _TAG, value):
        return locked(value, info.context)
    if not re.fullmatch(_IMAGE, value):
        wanted = "write registry/name@sha256:<64 hex digits>, or registry/name:tag that images.lock knows"
        raise ValueError(f"not an image by digest: {shown(value)}; {wanted}")
    if isinstance(info.context, Collected):
        info.context.met(value)
    return value


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value) or len(value) > 63:
        raise ValueError(
            f"not a name: {shown(value)}; use at most 63 lower-case letters, digits and '-', "
            "a letter or digit at both ends"
        )
    return value


def _label_key(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    good = re.fullmatch(_QUALIFIED, name) and len(name) <= 63
    if slash:
        good = good and re.fullmatch(_DOMAIN, prefix) and len(prefix) <= 253
    if not good:
        raise ValueError(f"not a label key: {shown(value)}; write name or example.com/name")
    return value


def _label_value(value: str) -> str:
    if not re.fullmatch(rf"({_QUALIFIED})?", value) or len(value) > 63:
        raise ValueError(f"not a label value: {shown(value)}; at most 63 letters, digits, '-', '_' and '.'")
    return value


def _absolute_path(value: str) -> str:
    if not value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError(f"not a path: {shown(value)}; write an absolute path without '..', such as /data")
    return value


def _relative_path(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._\-]+(/[A-Za-z0-9._\-]+)*", value) or {".", ".."} & set(value.split("/")):
        raise ValueError(f"not a path below the root: {shown(value)}; write folder/folder, without '.' and '..'")
    return value


def _without_password(value: str) -> str:
    """Refuse an address with a password in it before any other message repeats it."""
    if plaintext.by_form(value):
        raise ValueError("a password stands in this address for everybody to read; keep it in a Secret, and write none")
    return value


def _remote(value: str) -> str:
    _without_password(value)
    if not re.fullmatch(_REMOTE, value):
        raise ValueError(f"no address of a Git repository: {shown(value)}; write https://host/path.git")
    return value


def _url(value: str) -> str:
    _without_password(value)
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise ValueError(f"not a web address: {shown(value)}; write https://host or https://host/path")
    return value


def _host(value: str) -> str:
    if not re.fullmatch(_HOST, value) or len(value) > 253:
        raise ValueError(f"not a host name: {shown(value)}; write it such as models.example.com")
    return value


def _env_name(value: str) -> str:
    if not re.fullmatch(_ENV_NAME, value):
        raise ValueError(f"not the name of a variable: {shown(value)}; write printable ASCII without '='")
    return value


def _version(value: object) -> object:
    plain = value.removeprefix("v") if isinstance(value, str) else ""
    if not re.fullmatch(_VERSION, plain):
        raise ValueError(f"not a version: {shown(value)}; write three numbers, such as 1.35.4")
    if plain != value:
        raise ValueError(f"not a version: {shown(value)}; write {plain}")
    return value


def _text(pattern: str, description: str, *examples: str, longest: int | None = None) -> WithJsonSchema:
    """What an editor is told of a type that a function validates."""
    schema = {"type": "string", "pattern": f"^{pattern}$", "description": description, "examples": list(examples)}
    return WithJsonSchema(schema | ({} if longest is None else {"maxLength": longest}), mode="validation")


#: A DNS label of at most 63 characters.
Name = Annotated[
    str,
    AfterValidator(_name),
    _text(_NAME, "At most 63 lower-case letters, digits and '-'.", "llama3-8b-sft", longest=63),
]
#: A span of time; JSON and YAML write it as "800ms", "10m", "1h30m".
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration, json_schema_input_type=str),
    _text(rf"({_NUMBER}(ms|s|m|h|d))+", "A span of time with its unit.", "800ms", "10m", "1h30m"),
]
#: A share between 0 and 1, written as "5%".
Percent = Annotated[
    Decimal,
    BeforeValidator(_percent, json_schema_input_type=str),
    _text(rf"{_NUMBER}\s?%", "A share, at most 100%.", "5%", "0.5%"),
]
#: Events per second, written as "120/s".
Rate = Annotated[
    Decimal,
    BeforeValidator(_rate, json_schema_input_type=str),
    _text(rf"{_NUMBER}\s?/\s?s", "Events per second.", "120/s"),
]
#: Bytes, written with a binary or decimal suffix, such as "64Gi".
Size = Annotated[
    str,
    BeforeValidator(_size, json_schema_input_type=str),
    _text(_SIZE.pattern, "Bytes with a suffix.", "64Gi", "2Ti"),
]
#: A Kubernetes quantity without unit, such as 8 or "500m".
Cores = Annotated[
    str,
    BeforeValidator(_quantity, json_schema_input_type=str | int),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{_QUANTITY.pattern}$"}],
            "description": "Cores, whole or in thousandths.",
            "examples": [8, "500m"],
        },
        mode="validation",
    ),
]
#: An image reference that carries its digest, or gets it from images.lock.
Image = Annotated[
    str,
    AfterValidator(_image),
    _text(
        rf"{_REPOSITORY}({_TAG}|(:[A-Za-z0-9_.\-]+)?{_DIGEST})",
        "An image by its digest, or by a tag that images.lock resolves.",
        f"registry.example.com/ai/train@sha256:{'0' * 64}",
        "registry.example.com/ai/train:2.9.1",
    ),
]
#: A label key, with or without prefix.
LabelKey = Annotated[
    str,
    AfterValidator(_label_key),
    _text(rf"({_DOMAIN}/)?{_QUALIFIED}", "A label key.", "example.com/zone", longest=317),
]
#: A label value.
LabelValue = Annotated[
    str, AfterValidator(_label_value), _text(rf"({_QUALIFIED})?", "A label value.", "gold", longest=63)
]
#: An absolute path inside a container, without "..".
AbsolutePath = Annotated[str, AfterValidator(_absolute_path), _text(r"/.*", "A path inside a container.", "/data")]
#: A path below the root of a repository or a volume, without "." and "..".
RelativePath = Annotated[
    str,
    AfterValidator(_relative_path),
    _text(r"[A-Za-z0-9._\-]+(/[A-Za-z0-9._\-]+)*", "A path below the root.", "rendered"),
]
#: The name of an environment variable.
EnvName = Annotated[str, AfterValidator(_env_name), _text(_ENV_NAME, "The name of a variable.", "HF_HUB_OFFLINE")]
#: A DNS name.
Host = Annotated[str, AfterValidator(_host), _text(_HOST, "A DNS name.", "models.example.com", longest=253)]
#: A web address.
Url = Annotated[str, AfterValidator(_url), _text(r"https?://[^\s/]+(/\S*)?", "A web address.", "https://host/path")]
#: Where a Git repository is.
Remote = Annotated[
    str, AfterValidator(_remote), _text(_REMOTE, "A Git repository.", "https://git.example.com/platform/gitops.git")
]
#: A version of three numbers.
Version = Annotated[
    str,
    BeforeValidator(_version, json_schema_input_type=str),
    _text(_VERSION, "A version of three numbers.", "1.35.4"),
]


class Metadata(Model):
    """The name of a spec."""

    name: Name
    """Unique among the specs of its kind."""
