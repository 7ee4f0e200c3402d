"""Argo CD's own loop: sort key, moves, phases and what each wave waits for."""

from __future__ import annotations

import random

import pytest

from blueprint.catalog.gating import Gates, stalls
from blueprint.objects import Manifest
from blueprint.render.health import gates
from blueprint.sync import HOOK, WAVE, Verdict, floor_seconds, parse_wave, simulate, wave
from tests.render.plans import obj

GATES = gates()


def at(number: int | str, kind: str, name: str, namespace: str = "", **fields: object) -> Manifest:
    return obj(kind, name, namespace, annotations={WAVE: str(number)}, **fields)


def names(manifests: tuple[Manifest, ...]) -> list[str]:
    return [f"{m.kind}/{m.ref.name}" for m in manifests]


class TestWave:
    @pytest.mark.parametrize(("text", "number"), [("0", 0), ("5", 5), ("-3", -3), ("+2", 2), ("007", 7)])
    def test_numbers_that_go_reads(self, text: str, number: int) -> None:
        assert parse_wave(text) == number

    @pytest.mark.parametrize(
        "text", ["", " 2", "2 ", "1.5", "1_0", "0x1", "١", "9223372036854775808", "one", 5, None, True]
    )
    def test_others_are_silently_something_else(self, text: object) -> None:
        assert parse_wave(text) is None

    def test_a_bad_wave_falls_back_to_helms_weight_and_then_to_0(self) -> None:
        assert wave(obj("Secret", "a", annotations={WAVE: "x", "helm.sh/hook-weight": "4"}).body) == 4
        assert wave(obj("Secret", "a", annotations={WAVE: "1.5"}).body) == 0
        assert wave({}) == 0


class TestOrder:
    def test_wave_then_kind_then_name(self) -> None:
        manifests = [
            at(1, "ConfigMap", "z"),
            obj("ClusterQueue", "b"),
            obj("ResourceFlavor", "a"),
            obj("Deployment", "d", "n"),
            obj("Secret", "s", "n"),
            obj("Namespace", "n"),
        ]
        random.Random(1).shuffle(manifests)
        first, second = simulate(manifests, GATES)
        assert names(first.objects) == [
            "Namespace/n",
            "Secret/s",
            "Deployment/d",
            "ResourceFlavor/a",
            "ClusterQueue/b",
        ]
        assert (first.wave, second.wave, names(second.objects)) == (0, 1, ["ConfigMap/z"])

    def test_a_namespace_takes_the_wave_of_its_first_user(self) -> None:
        steps = simulate(
            [at(-1, "Secret", "s", "team"), obj("Namespace", "team"), at(3, "ConfigMap", "c", "team")], GATES
        )
        assert [(s.wave, names(s.objects)) for s in steps] == [
            (-1, ["Namespace/team", "Secret/s"]),
            (3, ["ConfigMap/c"]),
        ]

    def test_the_destination_counts_for_objects_without_a_namespace(self) -> None:
        manifests = [at(-1, "ResourceFlavor", "f"), obj("Namespace", "team")]
        assert len(simulate(manifests, GATES)) == 2
        assert len(simulate(manifests, GATES, namespace="team")) == 1

    def test_a_crd_takes_the_wave_of_its_first_user(self) -> None:
        crd = obj(
            "CustomResourceDefinition",
            "widgets.example.com",
            spec={"group": "example.com", "names": {"kind": "Widget"}},
        )
        other = obj(
            "CustomResourceDefinition", "gears.example.com", spec={"group": "example.com", "names": {"kind": "Gear"}}
        )
        steps = simulate([at(-2, "Widget", "w"), crd, other], GATES)
        assert [names(s.objects) for s in steps] == [
            ["CustomResourceDefinition/widgets.example.com", "Widget/w"],
            ["CustomResourceDefinition/gears.example.com"],
        ]

    def test_nothing_else_is_moved(self) -> None:
        steps = simulate([at(-1, "Deployment", "d", "n"), obj("Secret", "s", "n")], GATES)
        assert [names(s.objects) for s in steps] == [["Deployment/d"], ["Secret/s"]]

    def test_phases_come_before_waves(self) -> None:
        hook = obj("Job", "migrate", annotations={HOOK: "PreSync", WAVE: "9"})
        helm = obj("Job", "after", annotations={"helm.sh/hook": "post-install,post-upgrade"})
        skipped = obj("Job", "never", annotations={HOOK: "Skip"})
        failing = obj("Job", "cleanup", annotations={HOOK: "SyncFail"})
        crd = obj("ConfigMap", "crd", annotations={"helm.sh/hook": "crd-install"})
        steps = simulate([helm, at(-5, "ConfigMap", "c"), hook, skipped, failing, crd], GATES)
        assert [(s.phase, s.wave) for s in steps] == [("PreSync", 9), ("Sync", -5), ("Sync", 0), ("PostSync", 0)]
        assert [s.verdict for s in steps] == [Verdict.GATES] * 4


class TestVerdict:
    def test_the_only_wave_and_the_last_wave_are_not_awaited(self) -> None:
        assert [s.verdict for s in simulate([obj("Deployment", "d", "n")], GATES)] == [Verdict.NOT_AWAITED]
        steps = simulate([obj("Deployment", "d", "n"), at(1, "Deployment", "e", "n")], GATES)
        assert [s.verdict for s in steps] == [Verdict.GATES, Verdict.NOT_AWAITED]
        assert simulate([], GATES) == ()

    def test_a_last_wave_with_a_hook_is_awaited(self) -> None:
        steps = simulate([obj("Job", "j", "n", annotations={HOOK: "Sync"})], GATES)
        assert [s.verdict for s in steps] == [Verdict.GATES]

    def test_a_kind_without_a_check_does_not_gate(self) -> None:
        manifests = [obj("ClusterQueue", "q"), at(1, "LocalQueue", "l", "n")]
        (blind, _) = simulate(manifests, gates(scripted=False))
        assert (blind.verdict, [r.kind for r, _ in blind.reasons]) == (Verdict.OPEN, ["ClusterQueue"])
        assert simulate(manifests, GATES)[0].verdict is Verdict.GATES

    def test_what_is_done_when_stored_gates(self) -> None:
        assert simulate([obj("ResourceFlavor", "f"), at(1, "ConfigMap", "c")], GATES)[0].verdict is Verdict.GATES

    def test_a_held_job_hangs_a_wave_and_not_the_last_one(self) -> None:
        held = {"kueue.x-k8s.io/queue-name": "lq"}
        steps = simulate([obj("Job", "j", "n", labels=held), at(1, "ConfigMap", "c", "n")], GATES)
        assert (steps[0].verdict, steps[0].reasons[0][1]) == (Verdict.HANGS, "Kueue holds it until there is quota")
        steps = simulate([obj("ConfigMap", "c", "n"), at(1, "Job", "j", "n", labels=held)], GATES)
        assert [s.verdict for s in steps] == [Verdict.GATES, Verdict.NOT_AWAITED]

    def test_a_held_job_without_a_check_does_not_hang(self) -> None:
        job = obj("PyTorchJob", "j", "n", labels={"kueue.x-k8s.io/queue-name": "lq"})
        steps = simulate([job, at(1, "ConfigMap", "c", "n")], Gates(frozenset()))
        assert steps[0].verdict is Verdict.OPEN

    def test_the_caller_may_know_more(self) -> None:
        apps = [obj("Application", "a", "argocd"), at(1, "Application", "b", "argocd")]
        assert simulate(apps, GATES)[0].verdict is Verdict.GATES
        assert simulate(apps, GATES, stalled=lambda m: "a Rollout in it")[0].verdict is Verdict.HANGS
        assert simulate(apps, gates(scripted=False))[0].verdict is Verdict.OPEN

    def test_the_floor_is_the_pause_between_waves(self) -> None:
        steps = simulate([at(n, "ConfigMap", f"c{n}") for n in range(20)], GATES)
        assert floor_seconds(steps) == 38
        assert floor_seconds(steps[:1]) == floor_seconds(()) == 0


@pytest.mark.parametrize(
    ("manifest", "stalled"),
    [
        (obj("Rollout", "r", "n"), True),
        (obj("Job", "j", "n"), False),
        (obj("Job", "j", "n", labels={"kueue.x-k8s.io/queue-name": "q"}), True),
        (obj("Job", "j", "n", labels={"kueue.x-k8s.io/queue-name": ""}), False),
        (obj("ConfigMap", "c", "n", labels={"kueue.x-k8s.io/queue-name": "q"}), False),
        (obj("Job", "j", "n", spec={"suspend": True}), True),
        (obj("Job", "j", "n", spec={"suspend": False}), False),
        (obj("CronJob", "j", "n", spec={"suspend": True}), False),
        (obj("Deployment", "d", "n", spec={"paused": True}), True),
        (obj("Deployment", "d", "n", spec={}), False),
        (obj("PyTorchJob", "p", "n", spec={"runPolicy": {"suspend": True}}), True),
        (obj("ScaledObject", "s", "n", annotations={"autoscaling.keda.sh/paused": "true"}), True),
        (obj("ScaledObject", "s", "n", annotations={"autoscaling.keda.sh/paused": "false"}), False),
        (obj("ScaledObject", "s", "n", annotations={"autoscaling.keda.sh/paused-replicas": "0"}), True),
        (Manifest({"kind": "Job", "metadata": 3, "spec": []}, obj("Job", "j").source), False),
    ],
)
def test_what_can_stall(manifest: Manifest, stalled: bool) -> None:
    assert bool(stalls(manifest)) is stalled
