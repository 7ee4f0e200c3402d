"""How the programs that run inside a cluster read their configuration: closed, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml_rs
from pydantic import ValidationError

from blueprint.attest.refusal import said
from blueprint.errors import UsageError
from blueprint.spec.base import Model

M = TypeVar("M", bound=Model)


def load(model: type[M], file: Path) -> M:
    """Read a configuration in YAML or JSON. Raises UsageError that names the field."""
    try:
        document = yaml_rs.loads(file.read_text("utf-8"), parse_datetime=False)
        return model.model_validate(document, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where or 'the configuration'}: {first['msg']}", where=str(file)) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"the configuration cannot be read: {said(error)}", where=str(file)) from None
