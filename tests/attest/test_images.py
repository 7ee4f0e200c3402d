"""Images: whose signature counts, what a registry may answer, and the lock."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.bundle import MEDIA_TYPE
from blueprint.attest.conversation import LARGEST
from blueprint.attest.imagelock import Locked, check_images, dump_lock, gates, lock, read_lock, used
from blueprint.attest.images import verify_image
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Registry, named, reference
from blueprint.errors import UsageError
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.render.images import _rules
from tests.attest.oci import FakeRegistry, provenance, signature
from tests.attest.world import MALLORY, RENDERER, Office


@pytest.fixture(scope="module", params=[True, False], ids=["referrers", "tag"])
def registry(request: pytest.FixtureRequest) -> Iterator[FakeRegistry]:
    with FakeRegistry.running(modern=request.param) as running:
        yield running


@pytest.fixture
def client(registry: FakeRegistry) -> Registry:
    return Registry(plain=[registry.host], seconds=2)


def test_a_signed_image(registry: FakeRegistry, client: Registry, office: Office) -> None:
    image = registry.image("serving/vllm")
    registry.refer(image, signature(office, image))
    found = verify_image(image, client, office.prover())
    assert (found.identity, found.issuer) == (RENDERER, office.store.issuer)
    document = found.document()
    assert document["digest"] == image.partition("@")[2]
    assert document["logIndex"] > 0
    assert document["builtAt"] is None


Forge = Callable[[FakeRegistry, str, Office], object]
HOUR = timedelta(hours=1)
NOT_IN_TIME: dict[str, tuple[Callable[[Office, str], list[bytes]], str]] = {
    "nobody says when it was built": (lambda office, image: [], "SIG105"),
    "built too long ago": (lambda office, image: [provenance(office, image, 2 * HOUR)], "SIG106"),
    "built tomorrow": (lambda office, image: [provenance(office, image, -24 * HOUR)], "SIG106"),
    "somebody else says it": (lambda office, image: [provenance(office, image, identity=MALLORY)], "SIG105"),
    "of another image": (lambda office, image: [provenance(office, image[:-1] + "x")], "SIG105"),
    "the last one counts": (
        lambda office, image: [provenance(office, image), provenance(office, image, 2 * HOUR)],
        "SIG106",
    ),
    "no time": (lambda office, image: [provenance(office, image, finished="soon")], "SIG105"),
    "a day": (lambda office, image: [provenance(office, image, finished="2026-12-01")], "SIG105"),
    "before all time": (
        lambda office, image: [provenance(office, image, finished="0001-01-01T00:00:00+14:00")],
        "SIG105",
    ),
    "a number": (lambda office, image: [provenance(office, image, finished=7)], "SIG105"),
}


@pytest.mark.parametrize("name", NOT_IN_TIME)
def test_an_age_is_that_of_the_build(registry: FakeRegistry, client: Registry, office: Office, name: str) -> None:
    attached, code = NOT_IN_TIME[name]
    image = registry.image(f"aged/{name.replace(' ', '-').lower()}")
    registry.refer(image, signature(office, image))
    for bundle in attached(office, image):
        registry.refer(image, bundle)
    with pytest.raises(Refused) as caught:
        verify_image(image, client, office.prover(), max_age=HOUR)
    assert caught.value.code == code
    assert verify_image(image, client, office.prover()), "without a limit it is a signed image"
    registry.refer(image, provenance(office, image, HOUR / 2))
    assert verify_image(image, client, office.prover(), max_age=HOUR).built_at is not None


def test_provenance_is_no_signature(registry: FakeRegistry, client: Registry, office: Office) -> None:
    image = registry.image("aged/attested")
    registry.refer(image, provenance(office, image))
    with pytest.raises(Refused, match="no signature"):
        verify_image(image, client, office.prover(), max_age=HOUR)


HIDING: dict[str, Forge] = {
    "no bundle": lambda registry, image, office: registry.refer(image, b"{}"),
    "somebody else's": lambda registry, image, office: registry.refer(image, signature(office, image, MALLORY)),
    "too large": lambda registry, image, office: registry.refer(image, b" " * (LARGEST + 1)),
    "of another image": lambda registry, image, office: registry.refer(
        image, signature(office, image), subject="sha256:" + "0" * 64
    ),
    "gone": lambda registry, image, office: registry.blobs.pop(registry.refer(image, b"gone")),
    "changed": lambda registry, image, office: registry.blobs.update({registry.refer(image, b"so"): b"or so"}),
    "of no digest": lambda registry, image, office: _row(registry, image, {"digest": "../../../token"}),
    "of a number": lambda registry, image, office: _row(registry, image, {"digest": 5}),
    "with layers that are a number": lambda registry, image, office: _manifest(registry, image, {"layers": 5}),
    "with layers of numbers": lambda registry, image, office: _manifest(registry, image, {"layers": [5, None, []]}),
    "with a layer without digest": lambda registry, image, office: _manifest(
        registry, image, {"layers": [{"mediaType": MEDIA_TYPE}]}
    ),
    "a manifest that is a list": lambda registry, image, office: _row(
        registry, image, {"digest": registry.put(b"[]"), "artifactType": MEDIA_TYPE}
    ),
    "a manifest that is no JSON": lambda registry, image, office: _row(
        registry, image, {"digest": registry.put(b"\xff"), "artifactType": MEDIA_TYPE}
    ),
    "deep": lambda registry, image, office: _row(
        registry, image, {"digest": registry.put(b"[" * 100_000), "artifactType": MEDIA_TYPE}
    ),
}


def _row(registry: FakeRegistry, image: str, row: dict[str, object]) -> None:
    name, _, digest = image.removeprefix(f"{registry.host}/").partition("@")
    registry.referrers.setdefault((name, digest), []).append(row)


def _manifest(registry: FakeRegistry, image: str, more: dict[str, object]) -> None:
    manifest = {"subject": {"digest": image.partition("@")[2]}, "artifactType": MEDIA_TYPE} | more
    _row(registry, image, {"digest": registry.put(json.dumps(manifest).encode()), "artifactType": MEDIA_TYPE})


@pytest.mark.parametrize("name", HIDING)
def test_what_is_bad_hides_nothing_good(registry: FakeRegistry, client: Registry, office: Office, name: str) -> None:
    image = registry.image(f"hiding/{name.replace(' ', '-').replace(chr(39), '').lower()}")
    HIDING[name](registry, image, office)
    with pytest.raises(Refused):
        verify_image(image, client, office.prover())
    registry.refer(image, signature(office, image))
    HIDING[name](registry, image, office)
    assert verify_image(image, client, office.prover()).identity == RENDERER


def test_a_thousand_referrers_are_not_looked_at(registry: FakeRegistry, client: Registry, office: Office) -> None:
    image = registry.image("hiding/thousand")
    for number in range(1000):
        registry.refer(image, b"%d" % number)
    registry.requests.clear()
    with pytest.raises(Refused):
        verify_image(image, client, office.prover())
    assert len(registry.requests) <= 2 + 2 * 32
    other = registry.image("hiding/sboms")
    for number in range(1000):
        registry.refer(other, b"%d" % number, media_type="application/spdx+json")
    registry.refer(other, signature(office, other))
    registry.requests.clear()
    assert verify_image(other, client, office.prover()).identity == RENDERER
    assert len(registry.requests) <= 5, "what says that it is something else is passed over"


REFUSED: dict[str, tuple[Forge, str]] = {
    "nobody signed it": (lambda registry, image, office: None, "SIG403"),
    "another identity": (
        lambda registry, image, office: registry.refer(image, signature(office, image, MALLORY)),
        "SIG104",
    ),
    "the signature of another image": (
        lambda registry, image, office: registry.refer(image, signature(office, image, digests=("0" * 64,))),
        "SIG108",
    ),
    "two images in one signature": (
        lambda registry, image, office: registry.refer(
            image, signature(office, image, digests=(image.rpartition(":")[2], "0" * 64))
        ),
        "SIG108",
    ),
    "another predicate": (
        lambda registry, image, office: registry.refer(
            image, signature(office, image, predicate="https://spdx.dev/Document")
        ),
        "SIG108",
    ),
    "a manifest that refers to another image": (
        lambda registry, image, office: registry.refer(image, signature(office, image), subject="sha256:" + "0" * 64),
        "SIG403",
    ),
    "something that is no bundle": (
        lambda registry, image, office: registry.refer(image, b"{}"),
        "SIG102",
    ),
    "another kind of attachment": (
        lambda registry, image, office: registry.refer(image, b"{}", media_type="application/spdx+json"),
        "SIG403",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_images(registry: FakeRegistry, client: Registry, office: Office, name: str) -> None:
    forge, code = REFUSED[name]
    image = registry.image(f"serving/{name.replace(' ', '-')}")
    forge(registry, image, office)
    with pytest.raises(Refused) as caught:
        verify_image(image, client, office.prover())
    assert caught.value.code == code


def test_other_sigstores_and_old_builds(
    registry: FakeRegistry, client: Registry, office: Office, foreign: Office
) -> None:
    image = registry.image("serving/foreign")
    registry.refer(image, signature(foreign, image))
    with pytest.raises(Refused) as caught:
        verify_image(image, client, office.prover())
    assert caught.value.code in ("SIG103", "SIG105")
    registry.refer(image, signature(office, image))
    assert verify_image(image, client, office.prover()), "one good signature is enough"
    registry.refer(image, provenance(office, image))
    later = datetime.now(UTC) + timedelta(days=2)
    with pytest.raises(Refused) as caught:
        verify_image(image, client, office.prover(), max_age=timedelta(days=1), now=later)
    assert caught.value.code == "SIG106"


@pytest.mark.parametrize(
    "text",
    [
        "registry.example.com/app:1",
        "registry.example.com/app",
        "app@sha256:" + "0" * 64,
        "team/app@sha256:" + "0" * 64,
        "registry.example.com/app@sha512:" + "0" * 128,
        "registry.example.com/App@sha256:" + "0" * 64,
        "registry.example.com/../app@sha256:" + "0" * 64,
        "registry.example.com/app@sha256:" + "0" * 63,
        "registry.example.com/app@sha256:" + "A" * 64,
        "http://registry.example.com/app@sha256:" + "0" * 64,
        "",
    ],
)
def test_references_without_a_registry_or_a_digest(text: str) -> None:
    with pytest.raises(Refused) as caught:
        reference(text)
    assert caught.value.code == "SIG401"


def test_a_registry_that_lies_or_fails(registry: FakeRegistry, client: Registry, office: Office) -> None:
    image = registry.image("serving/liar")
    registry.refer(image, signature(office, image))
    rows = registry.referrers["serving/liar", image.partition("@")[2]]
    kept = registry.blobs[rows[0]["digest"]]
    registry.blobs[rows[0]["digest"]] = kept + b" "
    with pytest.raises(Refused, match="something else"):
        verify_image(image, client, office.prover())
    registry.blobs[rows[0]["digest"]] = kept
    registry.broken = True
    try:
        with pytest.raises(Refused, match="500"):
            verify_image(image, client, office.prover())
    finally:
        registry.broken = False
    with pytest.raises(Refused, match="cannot be asked"):
        verify_image(image.replace(registry.host, "127.0.0.1:9"), Registry(plain=["127.0.0.1:9"]), office.prover())
    with pytest.raises(Refused, match="cannot be asked"):
        verify_image(image, Registry(seconds=2), office.prover())


def test_a_registry_that_asks_for_a_token(
    registry: FakeRegistry, client: Registry, office: Office, tmp_path: Path
) -> None:
    image = registry.image("serving/private")
    registry.refer(image, signature(office, image))
    registry.token = "a-pull-token"
    try:
        config = tmp_path / "config.json"
        auth = base64.b64encode(b"robot:secret").decode()
        config.write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
        private = Registry(plain=[registry.host], credentials=config)
        assert verify_image(image, private, office.prover())
        config.write_text('{"auths": {"x": {"username": "robot"}}}')
        with pytest.raises(UsageError) as caught:
            Registry(credentials=config)
        assert "robot" not in caught.value.diagnostics()
    finally:
        registry.token = ""


def test_the_lock_resolves_and_remembers(
    registry: FakeRegistry, client: Registry, office: Office, tmp_path: Path
) -> None:
    image = registry.image("serving/locked", "1.2")
    registry.refer(image, signature(office, image))
    registry.refer(image, provenance(office, image))
    unsigned = registry.image("serving/unsigned", "1.0")
    names = [f"{registry.host}/serving/locked:1.2", f"{registry.host}/serving/unsigned:1.0", "nothing"]
    rows, findings = lock(names, client, office.prover())
    assert list(rows) == names[:1]
    assert sorted(finding.code for finding in findings) == ["SIG401", "SIG403"]
    file = tmp_path / "images.lock"
    file.write_text(dump_lock(rows))
    locked = read_lock(file)
    pod = _pod(image, unsigned, f"{registry.host}/serving/locked:1.2", "registry.elsewhere.example.com/x:1")
    signers = {(RENDERER, office.store.issuer)}
    prefixes = [f"{registry.host}/"]
    found = list(check_images([pod], locked, prefixes, signers))
    assert [(finding.code, finding.path) for finding in found] == [
        ("SIG403", "spec.initContainers[0].image"),
        ("SIG401", "spec.ephemeralContainers[0].image"),
    ]
    assert [f.code for f in check_images([_pod(image)], locked, prefixes, {("other", "x")})] == ["SIG104"]
    later = datetime.now(UTC) + timedelta(days=3)
    aged = check_images([_pod(image)], locked, prefixes, signers, max_age=timedelta(days=1), now=later)
    assert [finding.code for finding in aged] == ["SIG106"]
    assert not list(check_images([_pod(image)], locked, prefixes, signers, max_age=timedelta(days=1)))
    undated = {name: replace(row, built_at=None) for name, row in locked.items()}
    aged = check_images([_pod(image)], undated, prefixes, signers, max_age=timedelta(days=1))
    assert [finding.code for finding in aged] == ["SIG105"]
    file.write_text("{}")
    with pytest.raises(UsageError):
        read_lock(file)


def _pod(image: str, init: str = "", ephemeral: str = "", volume: str = "") -> Manifest:
    spec: dict[str, Any] = {"containers": [{"name": "a", "image": image}]}
    if init:
        spec["initContainers"] = [{"name": "b", "image": init}]
    if ephemeral:
        spec["ephemeralContainers"] = [{"name": "c", "image": ephemeral}]
    if volume:
        spec["volumes"] = [{"name": "v", "image": {"reference": volume}}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "t"}, "spec": spec}
    return Manifest(body, Source("p.yaml"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("registry.example.com/a/b@x", "registry.example.com/a/b@x"),
        ("Registry.EXAMPLE.com/a/b", "registry.example.com/a/b"),
        ("registry.example.com:443/a", "registry.example.com/a"),
        ("registry.example.com:00443/a", "registry.example.com/a"),
        ("registry.example.com:80/a", "registry.example.com/a"),
        ("registry.example.com:05000/a", "registry.example.com:5000/a"),
        ("registry.example.com:5000/A:443", "registry.example.com:5000/A:443"),
        ("localhost", "localhost"),
    ],
)
def test_a_registry_has_many_names_and_one_is_compared(text: str, name: str) -> None:
    assert named(text) == name


def test_another_name_of_the_registry_is_no_way_around(tmp_path: Path) -> None:
    digest = "@sha256:" + "0" * 64
    ways = [f"{host}/serving/x{digest}" for host in ("R.example.com", "r.example.com:443", "r.example.com:0443")]
    for text in [f"r.example.com/serving/x{digest}", *ways]:
        assert [finding.code for finding in check_images([_pod(text)], {}, ["r.example.com/serving/"], set())]
    assert not list(check_images([_pod(f"r.example.com/other/x{digest}")], {}, ["r.example.com/serving/"], set()))


def test_every_image_of_a_pod_counts() -> None:
    paths = [path for _, path, _ in used([_pod("a", "b", "c", "d")])]
    assert len(paths) == 4
    assert "spec.volumes[0].image.reference" in paths


CUSTOM: dict[str, tuple[str, str, Callable[[str], dict[str, Any]]]] = {
    "spec.trainer.image": ("trainer.kubeflow.org/v1alpha1", "TrainJob", lambda image: {"trainer": {"image": image}}),
    "spec.predictor.model.image": (
        "serving.kserve.io/v1beta1",
        "InferenceService",
        lambda image: {"predictor": {"model": {"image": image}}},
    ),
    "spec.predictor.containers[0].image": (
        "serving.kserve.io/v1beta1",
        "InferenceService",
        lambda image: {"predictor": {"containers": [{"image": image}]}},
    ),
    "spec.containers[0].image": (
        "serving.kserve.io/v1alpha1",
        "ClusterServingRuntime",
        lambda image: {"containers": [{"image": image}]},
    ),
    "spec.container.image": (
        "serving.kserve.io/v1alpha1",
        "ClusterStorageContainer",
        lambda image: {"container": {"image": image}},
    ),
    "spec.executor.image": (
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        lambda image: {"executor": {"image": image}},
    ),
}


@pytest.mark.parametrize("path", CUSTOM)
def test_images_of_custom_kinds_are_held_to_the_lock(path: str) -> None:
    version, kind, spec = CUSTOM[path]

    def codes(image: str, group: str = version) -> list[tuple[str, str]]:
        body = {"apiVersion": group, "kind": kind, "metadata": {"name": "x", "namespace": "t"}, "spec": spec(image)}
        found = check_images(
            [Manifest(body, Source("x.yaml"))], {"r.example.com/x:1": row}, ["r.example.com/"], {("s", "i")}
        )
        return [(finding.code, finding.path) for finding in found]

    row = Locked("sha256:" + "a" * 64, "s", "i", datetime.now(UTC))
    assert codes("r.example.com/x@sha256:" + "b" * 64) == [("SIG403", path)]
    assert codes("r.example.com/x:1") == [("SIG401", path)]
    assert codes("r.example.com/x@sha256:" + "a" * 64) == []
    assert codes("elsewhere.example.com/x:1") == []
    assert codes("r.example.com/x:1", "example.com/v1") == [], "the kind of another group"


def test_gates_are_read_from_what_is_rendered() -> None:
    signer = {"subject": "s", "issuer": "i"}
    constraint = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "BlueprintSignedImages",
        "metadata": {"name": "signed-images"},
        "spec": {"parameters": {"prefixes": ["r/"], "signers": [signer], "maxAgeSeconds": 60}},
    }
    policy = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": "signed-images"},
        "spec": {
            "matchImageReferences": [{"glob": "r/*"}],
            "validations": _rules(timedelta(seconds=60)),
            "attestors": [{"name": "signers", "cosign": {"keyless": {"identities": [signer]}}}],
        },
    }
    found = list(gates([Manifest(constraint, Source("c")), Manifest(policy, Source("p"))]))
    minute = timedelta(seconds=60)
    assert found == [(["r/"], {("s", "i")}, minute), (["r/"], {("s", "i")}, minute)]
    policy["spec"]["validations"] = _rules(None)  # type: ignore[index]
    assert list(gates([Manifest(policy, Source("p"))])) == [(["r/"], {("s", "i")}, None)]
