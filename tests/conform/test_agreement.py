import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.conform.agreement import Case, Layer, agreement, layer
from blueprint.conform.client import Answer
from blueprint.conform.mutate import Label, Mutation
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.objects import Manifest

CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "serving"},
    "value": 1000,
    "preemptionPolicy": "Never",
}
YES, NO = Answer(201, {}), Answer(422, {"message": "value: Invalid value"})
ERROR = Finding("SCH104", "wrong")
GUESS = Finding("SCH999", "perhaps wrong", confidence=Confidence.LIKELY)
NOTE = Finding("SCH998", "by the way", severity=Severity.NOTE)


@pytest.fixture(scope="module")
def pack():
    return SchemaPack.shipped()


def case(answer, *findings):
    return Case(None, Mutation(Label.TYPE, ("value",), "x", {}), findings, answer, Layer.NATIVE)


@pytest.mark.parametrize(
    ("answer", "findings", "lax", "strict"),
    [
        (YES, (), False, False),
        (NO, (ERROR,), False, False),
        (NO, (), True, False),
        (NO, (NOTE,), True, False),
        (NO, (GUESS,), False, False),
        (YES, (ERROR,), False, True),
        (YES, (GUESS, NOTE), False, False),
    ],
)
def test_only_certain_errors_and_silence_can_disagree(answer, findings, lax, strict):
    judged = case(answer, *findings)
    assert (judged.lax, judged.strict) == (lax, strict)


def cause(field, message, reason="FieldValueInvalid"):
    return Answer(
        422, {"message": message, "details": {"causes": [{"field": field, "message": message, "reason": reason}]}}
    )


@pytest.mark.parametrize(
    ("answer", "core", "crd"),
    [
        (YES, Layer.ACCEPTED, Layer.ACCEPTED),
        (Answer(400, {"message": "strict decoding error"}), Layer.DECODE, Layer.DECODE),
        (Answer(404, {"message": 'no matches for kind "X"'}), Layer.VERSION, Layer.VERSION),
        (Answer(400, {"message": "the namespace of the provided object does not match"}), Layer.SCOPE, Layer.SCOPE),
        (Answer(403, {"message": "forbidden"}), Layer.ADMISSION, Layer.ADMISSION),
        (cause("metadata.name", "Invalid value"), Layer.NAME, Layer.NAME),
        (cause("spec.x[1]", "Duplicate value", "FieldValueDuplicate"), Layer.LIST, Layer.LIST),
        (cause("spec", "Invalid value: failed rule: has(self.x)"), Layer.NATIVE, Layer.CEL),
        (cause("spec", "Invalid value: borrowingLimit must be nil when cohort is empty"), Layer.NATIVE, Layer.CEL),
        (cause("spec.x", "Required value", "FieldValueRequired"), Layer.NATIVE, Layer.SCHEMA),
    ],
)
def test_layers_are_told_by_the_words_of_the_server(pack, answer, core, crd):
    assert layer(answer, pack.kind("scheduling.k8s.io/v1", "PriorityClass")) is core
    assert layer(answer, pack.kind("kueue.x-k8s.io/v1beta2", "ClusterQueue")) is crd


class Server:
    """Accepts what has an integer `value` of at most 1000000 and changes nothing but it."""

    def __init__(self):
        self.stored = None
        self.deleted = 0

    def judge(self, body):
        return YES if type(body.get("value")) is int and body["value"] < 10**9 else NO

    def create(self, body, *, at=None, dry_run=False):
        assert dry_run
        return self.judge(body)

    def apply(self, body, *, at=None, dry_run=False):
        if self.stored is None:
            self.stored = body
            return YES
        assert dry_run
        return YES if body.get("value") == self.stored["value"] else NO

    def delete(self, _target):
        self.stored, self.deleted = None, self.deleted + 1


class Ours:
    def __init__(self, blind=False):
        self.blind = blind

    def create(self, manifest):
        return [] if self.blind or type(manifest.body.get("value")) is int else [ERROR]

    def update(self, new, old):
        return [] if new.body.get("value") == old.body["value"] else [ERROR]


def test_verdicts_are_compared_and_sorted(pack):
    server = Server()
    objects = [(Manifest(CLASS, Source("x")), pack.kind("scheduling.k8s.io/v1", "PriorityClass"))]
    found = agreement(objects, Ours(), server, seed=1, each=100)
    assert found.spoilt == ()
    assert server.deleted == 1
    assert {c.mutation.value for c in found.disagreements} == {2**31, 10**12, 2**63}
    assert found.classes() == {("lax", Layer.NATIVE, Label.NUMBER, "PriorityClass"): 3}
    assert sum(found.verdicts().values()) == len(found.cases)
    assert "server refuses (native)" in str(found.disagreements[0])
    blind = agreement(objects, Ours(blind=True), Server(), seed=1, each=100)
    assert ("lax", Layer.NATIVE, Label.MISSING, "PriorityClass") not in found.classes()
    assert len(blind.disagreements) > len(found.disagreements)


def test_an_object_that_one_side_refuses_whole_is_named_and_not_mutated(pack):
    broken = {**CLASS, "value": "x"}
    objects = [(Manifest(broken, Source("x")), pack.kind("scheduling.k8s.io/v1", "PriorityClass"))]
    found = agreement(objects, Ours(), Server(), seed=1, each=5)
    assert found.cases == ()
    assert "PriorityClass.scheduling.k8s.io serving: the server refuses it whole" in found.spoilt[0]
