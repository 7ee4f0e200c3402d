"""Whatever is done to a bundle, it is refused in words or proves the very same; nothing else is ever raised."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blueprint.attest.bundle import ByIdentity, ByKey, Proof, Prover
from blueprint.attest.refusal import Refused
from blueprint.attest.sign import PROVENANCE_BUNDLE, RENDER_BUNDLE, WithKey
from blueprint.attest.statement import RENDER, statement
from tests.attest.sigstore.pki import new_key
from tests.attest.world import Office

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8) | st.just("MEUCIQ==") | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def bundle(signed_tree: Path) -> bytes:
    return (signed_tree / ".attestations" / PROVENANCE_BUNDLE).read_bytes()


@pytest.fixture(scope="module")
def prover(office: Office) -> ByIdentity:
    return office.prover()


@pytest.fixture(scope="module")
def by_key() -> tuple[bytes, ByKey]:
    key = new_key()
    return WithKey(key).sign(statement("0" * 64, RENDER, {})), ByKey([key.public_key()])


def _places(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [steps, *(place for key, inner in pairs for place in _places(inner, (*steps, key)))]


def _same_or_refused(prover: Prover, data: bytes, honest: Proof) -> None:
    try:
        proof = prover.prove(data)
    except Refused:
        return
    assert (proof.payload, proof.payload_type, proof.signer) == (honest.payload, honest.payload_type, honest.signer)
    assert (proof.issuer, proof.signed_at, proof.logged) == (honest.issuer, honest.signed_at, honest.logged)


def _altered(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(document)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    if value is Ellipsis:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return changed


@CALM
@given(st.data())
def test_any_value_in_any_place(bundle: bytes, prover: ByIdentity, data: st.DataObject) -> None:
    document = json.loads(bundle)
    place = data.draw(st.sampled_from(_places(document)))
    value = data.draw(JSON | st.just(...)) if place else data.draw(JSON)
    _same_or_refused(prover, json.dumps(_altered(document, place, value)).encode(), prover.prove(bundle))


@CALM
@given(st.data())
def test_any_byte(bundle: bytes, prover: ByIdentity, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(bundle) - 1))
    byte = data.draw(st.integers(0, 255))
    _same_or_refused(prover, bundle[:position] + bytes((byte,)) + bundle[position + 1 :], prover.prove(bundle))


@CALM
@given(st.data())
def test_bundles_by_key(by_key: tuple[bytes, ByKey], data: st.DataObject) -> None:
    bundle, prover = by_key
    document = json.loads(bundle)
    place = data.draw(st.sampled_from(_places(document)))
    value = data.draw(JSON | st.just(...)) if place else data.draw(JSON)
    _same_or_refused(prover, json.dumps(_altered(document, place, value)).encode(), prover.prove(bundle))


def test_a_part_of_each_bundle(signed_tree: Path, prover: ByIdentity) -> None:
    """Cut at a hundred places."""
    data = (signed_tree / ".attestations" / RENDER_BUNDLE).read_bytes()
    for end in range(0, len(data) - 1, max(1, len(data) // 100)):
        with pytest.raises(Refused):
            prover.prove(data[:end])
