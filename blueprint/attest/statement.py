"""What is signed: in-toto statements about a tree, and how strictly they are read back.

Sources: in-toto/attestation spec/v1/statement.md; slsa.dev/spec/v1.0/provenance. Two statements have one subject, the
digest of the tree's list: the render predicate carries the list itself, the provenance tells any reader of SLSA where
it came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from blueprint.attest.filelist import EXECUTABLE, PLAIN, Row, as_dicts, canonical, digest
from blueprint.attest.refusal import Refused
from blueprint.tree.lock import Made

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
STATEMENTS: Final = (STATEMENT, "https://in-toto.io/Statement/v0.1")
"""cosign 3 still writes v0.1, which has the same shape."""
RENDER: Final = "https://platform.blueprint/attestation/render/v1"
PROVENANCE: Final = "https://slsa.dev/provenance/v1"
CREDENTIAL: Final = "https://platform.blueprint/attestation/deployment-credential/v1"
BUILD_TYPE: Final = "https://platform.blueprint/build/render/v1"
SUBJECT: Final = "rendered-tree"
SCHEMA: Final = 1
HIGHEST: Final = 2**53 - 1
"""The highest sequence: every reader of JSON has whole numbers up to there."""

_HEX: Final = re.compile(r"[0-9a-f]{64}")
_COLUMNS: Final = frozenset(Row._fields)
_MADE: Final = ("blueprint", "inputs", "schemas", "templates")


@dataclass(frozen=True)
class Rendered:
    """The render predicate: what lies in the tree, and what made it.

    `made` is cluster → versions and digests from the lock. `sequence` counts up with every signature of a tree, so that
    an older tree, though validly signed, is known as such; `previous` is the digest of the tree before, or "".
    """

    files: tuple[Row, ...]
    made: Mapping[str, Made]
    sequence: int
    previous: str = ""

    @cached_property
    def digest(self) -> str:
        """The digest of the list: the subject of both statements."""
        return digest(self.files)


def render_statement(rendered: Rendered) -> bytes:
    """The statement with the list of files; the same tree and sequence give the same bytes."""
    predicate = {
        "schema": SCHEMA,
        "sequence": rendered.sequence,
        "previous": rendered.previous,
        "clusters": {name: _fields(made) for name, made in rendered.made.items()},
        "files": as_dicts(rendered.files),
    }
    return statement(rendered.digest, RENDER, predicate)


def provenance_statement(rendered: Rendered, builder: str) -> bytes:
    """SLSA v1: what was built from what, by the identity (or key) that signs. Times are the signature's business."""
    return statement(rendered.digest, PROVENANCE, _provenance(rendered, builder))


def _provenance(rendered: Rendered, builder: str) -> dict[str, Any]:
    materials = {
        (kind, getattr(made, kind)) for made in rendered.made.values() for kind in ("inputs", "schemas", "templates")
    }
    versions = sorted({made.blueprint for made in rendered.made.values()})
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"clusters": sorted(rendered.made)},
            "internalParameters": {"sequence": rendered.sequence},
            "resolvedDependencies": [
                {"uri": f"blueprint:{kind}", "digest": {"sha256": value.removeprefix("sha256:")}}
                for kind, value in sorted(materials)
            ],
        },
        "runDetails": {"builder": {"id": builder, "version": {"blueprint": ", ".join(versions)}}},
    }


def statement(sha256: str, predicate_type: str, predicate: Mapping[str, Any], name: str = SUBJECT) -> bytes:
    """A statement v1 about one subject."""
    return canonical(
        {
            "_type": STATEMENT,
            "subject": [{"name": name, "digest": {"sha256": sha256}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def read_statement(payload: bytes, payload_type: str, predicate_type: str, name: str = SUBJECT) -> tuple[str, Any]:
    """The subject's digest and the predicate of a statement that must be of one type and about one thing.

    Raises Refused (SIG108) for anything else; only what a signature holds for is read here.
    """
    if payload_type != PAYLOAD_TYPE:
        raise Refused("SIG108", f"the signed payload is of type {payload_type!r}, not {PAYLOAD_TYPE}")
    try:
        document: Any = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise Refused("SIG108", f"the signed payload is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("_type") not in STATEMENTS:
        raise Refused("SIG108", "the signed payload is no in-toto statement")
    if document.get("predicateType") != predicate_type:
        raise Refused("SIG108", f"the statement is a {document.get('predicateType')!r}, not {predicate_type}")
    match document.get("subject"):
        case [{"name": str(said), "digest": {"sha256": str(sha256), **others}}] if not others and _HEX.fullmatch(
            sha256
        ):
            if said != name:
                raise Refused("SIG108", f"the statement is about {said!r}, not {name}")
            return sha256, document.get("predicate")
        case [_, _, *_]:
            raise Refused("SIG108", "the statement is about several subjects, and only one can be this")
    raise Refused("SIG108", "the statement names no subject by a SHA-256")


def read_rendered(payload: bytes, payload_type: str) -> Rendered:
    """The render predicate of a verified payload. Raises Refused: SIG108 for its shape, SIG109 for another list."""
    subject, predicate = read_statement(payload, payload_type, RENDER)
    match predicate:
        case {
            "schema": int(schema),
            "sequence": int(sequence),
            "previous": str(previous),
            "clusters": dict(clusters),
            "files": list(files),
        } if type(schema) is type(sequence) is int and schema == SCHEMA and 1 <= sequence <= HIGHEST:
            rendered = Rendered(_rows(files), _made(clusters), sequence, previous)
        case {"schema": schema} if schema != SCHEMA:
            raise Refused("SIG108", f"the list has schema {schema!r}; this blueprint knows {SCHEMA}")
        case _:
            raise Refused("SIG108", "the predicate does not have the shape of a render")
    if rendered.digest != subject:
        raise Refused("SIG109", "the list of files is not the one whose digest was signed")
    names = [row.path for row in rendered.files]
    if len(set(names)) != len(names):
        raise Refused("SIG109", "the signed list names a file twice")
    return rendered


def read_provenance(payload: bytes, payload_type: str, rendered: Rendered, builder: str) -> None:
    """Hold the provenance to the render it must agree with. Raises Refused (SIG108)."""
    subject, predicate = read_statement(payload, payload_type, PROVENANCE)
    if subject != rendered.digest:
        raise Refused("SIG108", "the provenance is about another tree than the list of files")
    if predicate != _provenance(rendered, builder):
        raise Refused("SIG108", "the provenance and the list of files tell of different inputs, signers or sequences")


def _fields(made: Made) -> dict[str, str]:
    return {key: getattr(made, key) for key in _MADE}


def _rows(files: list[Any]) -> tuple[Row, ...]:
    """The rows, each exactly as `Row` has them. Plain code: there are 10,000."""
    rows = []
    for row in files:
        if type(row) is not dict or row.keys() != _COLUMNS:
            raise Refused("SIG108", "the signed list has a row that is no file")
        path, sha256, size, mode = row["path"], row["sha256"], row["size"], row["mode"]
        if not (type(path) is type(sha256) is str and type(size) is int and size >= 0 and mode in (PLAIN, EXECUTABLE)):
            raise Refused("SIG108", f"the signed list says of {path!r} what no file has")
        if not _HEX.fullmatch(sha256):
            raise Refused("SIG108", f"the signed list has no SHA-256 for {path!r}")
        rows.append(Row(path, sha256, size, mode))
    return tuple(rows)


def _made(clusters: Mapping[str, object]) -> dict[str, Made]:
    found = {}
    for name, made in clusters.items():
        if (
            not isinstance(made, dict)
            or made.keys() != set(_MADE)
            or not all(isinstance(v, str) for v in made.values())
        ):
            raise Refused("SIG108", f"the predicate does not say what made cluster {name!r}")
        found[name] = Made(**made)
    return found
