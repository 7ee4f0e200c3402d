"""Waves from needs: where things land, and each trap with a bad plan, the same plan fixed, and a near miss."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.gating import Gates
from blueprint.finding import Ref, Severity
from blueprint.objects import Manifest
from blueprint.render import order as ordering
from blueprint.render.health import gates
from blueprint.render.options import annotated
from blueprint.render.order import Ordered, order
from blueprint.render.plan import External, Item
from blueprint.sync import Verdict, simulate, wave
from tests.render.plans import item, obj, pod, ref

GATES = gates()
HELD = {"kueue.x-k8s.io/queue-name": "lq"}


def codes(ordered: Ordered) -> list[str]:
    return sorted(finding.code for finding in ordered.findings)


def waves(ordered: Ordered) -> dict[str, int]:
    return {f"{p.item.manifest.kind}/{p.item.manifest.ref.name}": p.wave for p in ordered.items}


def apps(ordered: Ordered) -> dict[str, int]:
    return {application.name: application.wave for application in ordered.applications}


QUEUES = [
    item("queues", obj("LocalQueue", "lq", "team", spec={"clusterQueue": "cq"})),
    item("queues", obj("ClusterQueue", "cq", spec={"resourceGroups": [{"flavors": [{"name": "h100"}]}]})),
    item("queues", obj("ResourceFlavor", "h100")),
    item("base", obj("Namespace", "team")),
]


class TestPlacing:
    def test_fields_that_name_objects_give_the_waves(self) -> None:
        ordered = order(QUEUES, GATES)
        assert waves(ordered) == {
            "ResourceFlavor/h100": 0,
            "ClusterQueue/cq": 1,
            "LocalQueue/lq": 2,
            "Namespace/team": 0,
        }
        assert apps(ordered) == {"base": 0, "queues": 1}
        assert ordered.findings == ()
        queues = ordered.applications[1]
        assert (queues.needs, queues.stalls) == (("base",), "")
        assert queues.waves == ("ResourceFlavor", "ClusterQueue", "LocalQueue")

    def test_the_order_of_the_input_does_not_matter(self) -> None:
        plan = [*QUEUES, item("app", obj("ConfigMap", "c", "team"), ref("LocalQueue", "lq", "team"))]
        expected = order(plan, GATES)
        for seed in range(5):
            shuffled = plan[:]
            random.Random(seed).shuffle(shuffled)
            assert order(shuffled, GATES) == expected

    def test_argo_cds_own_order_inside_a_wave_is_used(self) -> None:
        plan = [
            item("app", obj("Deployment", "d", "team", spec=pod(account="sa"))),
            item("app", obj("ServiceAccount", "sa", "team")),
            item("app", obj("Namespace", "team")),
        ]
        ordered = order(plan, GATES)
        assert set(waves(ordered).values()) == {0}
        (step,) = simulate([annotated(p.item.manifest, p.wave) for p in ordered.items], GATES)
        assert [m.kind for m in step.objects] == ["Namespace", "ServiceAccount", "Deployment"]

    def test_a_stated_need_of_a_healthy_object_asks_for_a_later_wave(self) -> None:
        plan = [
            item("app", obj("Deployment", "operator", "team")),
            item("app", obj("Widget", "w", "team"), ref("Deployment", "operator", "team")),
        ]
        assert waves(order(plan, GATES)) == {"Deployment/operator": 0, "Widget/w": 1}

    def test_a_crd_in_the_same_application_needs_no_wave_and_elsewhere_an_earlier_application(self) -> None:
        crd = obj(
            "CustomResourceDefinition", "w.example.com", spec={"group": "example.com", "names": {"kind": "Widget"}}
        )
        same = order([item("app", crd), item("app", obj("Widget", "w"))], GATES)
        assert set(waves(same).values()) == {0}
        apart = order([item("z-crds", crd), item("app", obj("Widget", "w"))], GATES)
        assert apps(apart) == {"z-crds": 0, "app": 1}

    def test_a_constraint_comes_after_its_template_which_is_named_like_its_kind(self) -> None:
        plan = [
            item("policy", obj("K8sRequireTeam", "a")),
            item("policy", obj("ConstraintTemplate", "k8srequireteam")),
            item("policy", obj("ConstraintTemplate", "k8sother")),
        ]
        assert waves(order(plan, GATES)) == {
            "ConstraintTemplate/k8sother": 0,
            "ConstraintTemplate/k8srequireteam": 0,
            "K8sRequireTeam/a": 1,
        }

    def test_an_empty_plan(self) -> None:
        assert order([], GATES) == Ordered((), (), ())


class TestCircles:
    def test_the_shortest_circle_is_printed_with_places(self) -> None:
        plan = [
            item("app", obj("ConfigMap", "a", line=3), ref("ConfigMap", "b"), ref("ConfigMap", "c")),
            item("app", obj("ConfigMap", "b", line=4), ref("ConfigMap", "a")),
            item("app", obj("ConfigMap", "c", line=5), ref("ConfigMap", "d")),
            item("app", obj("ConfigMap", "d", line=6), ref("ConfigMap", "a")),
        ]
        ordered = order(plan, GATES)
        assert codes(ordered) == ["WAV101"]
        message = ordered.findings[0].message
        assert "ConfigMap a (a.yaml:3) needs ConfigMap b (b.yaml:4) needs ConfigMap a (a.yaml:3)" in message
        assert len(ordered.items) == 4

    def test_the_circle_taken_apart(self) -> None:
        plan = [item("app", obj("ConfigMap", "a")), item("app", obj("ConfigMap", "b"), ref("ConfigMap", "a"))]
        assert codes(order(plan, GATES)) == []

    def test_an_object_that_names_itself_is_no_circle(self) -> None:
        assert codes(order([item("app", obj("ConfigMap", "a"), ref("ConfigMap", "a"))], GATES)) == []

    def test_a_circle_of_applications_without_one_of_objects(self) -> None:
        plan = [
            item("one", obj("ConfigMap", "a")),
            item("two", obj("ConfigMap", "b", line=7), ref("ConfigMap", "a")),
            item("two", obj("ConfigMap", "c")),
            item("one", obj("ConfigMap", "d", line=9), ref("ConfigMap", "c")),
        ]
        ordered = order(plan, GATES)
        assert codes(ordered) == ["WAV102"]
        message = ordered.findings[0].message
        assert "one needs two, because ConfigMap d (d.yaml:9) needs ConfigMap c (c.yaml:1)" in message
        assert "two needs one, because ConfigMap b (b.yaml:7) needs ConfigMap a (a.yaml:1)" in message
        assert codes(order(plan[:3], GATES)) == []

    def test_a_circle_across_applications_is_said_once(self) -> None:
        plan = [
            item("one", obj("ConfigMap", "a"), ref("ConfigMap", "b")),
            item("two", obj("ConfigMap", "b"), ref("ConfigMap", "a")),
        ]
        assert codes(order(plan, GATES)) == ["WAV101"]


class TestNeeds:
    def test_a_need_that_nobody_meets(self) -> None:
        target = ref("Secret", "token", "team")
        plan = [item("app", obj("Widget", "w", "team", line=4), target)]
        ordered = order(plan, GATES)
        assert codes(ordered) == ["WAV104"]
        assert (ordered.findings[0].object, str(ordered.findings[0].source)) == (ref("Widget", "w", "team"), "w.yaml:4")
        assert codes(order([item("app", obj("Widget", "w", "team"), External(target, "vault"))], GATES)) == []
        assert codes(order(plan, GATES, [target])) == []

    def test_an_external_that_is_rendered_all_the_same_is_ordered(self) -> None:
        target = ref("Widget", "other")
        plan = [item("app", obj("Widget", "w"), External(target)), item("app", obj("Widget", "other"))]
        assert waves(order(plan, GATES)) == {"Widget/other": 0, "Widget/w": 1}

    def test_a_name_in_a_field_that_leads_nowhere_is_not_said_here(self) -> None:
        assert codes(order([item("app", obj("LocalQueue", "lq", "team", spec={"clusterQueue": "gone"}))], GATES)) == []


class TestHealth:
    def test_waiting_for_a_kind_without_a_check(self) -> None:
        ordered = order(QUEUES, gates(scripted=False))
        assert codes(ordered) == ["WAV103", "WAV108"]
        finding = ordered.findings[1]
        assert finding.severity is Severity.WARNING
        assert "LocalQueue.kueue.x-k8s.io team/lq does not wait for ClusterQueue.kueue.x-k8s.io cq" in finding.message
        assert "script" in finding.fix
        assert codes(order(QUEUES, GATES)) == []

    def test_an_unknown_kind_is_said_to_be_unknown(self) -> None:
        plan = [item("app", obj("Widget", "a")), item("app", obj("Widget", "b"), ref("Widget", "a"))]
        (finding,) = order(plan, GATES).findings
        assert (finding.code, finding.severity) == ("WAV103", Severity.NOTE)
        assert "not known" in finding.message
        assert codes(order(plan[:1], GATES)) == []

    def test_one_finding_for_each_kind(self) -> None:
        plan = [item("app", obj("Widget", "a"))]
        plan += [item("app", obj("ConfigMap", f"c{n}"), ref("Widget", "a")) for n in range(5)]
        assert codes(order(plan, GATES)) == ["WAV103"]

    def test_what_is_done_when_stored_needs_no_check(self) -> None:
        plan = [
            item("app", obj("AnalysisTemplate", "a")),
            item("app", obj("Widget", "b"), ref("AnalysisTemplate", "a")),
        ]
        assert codes(order(plan, Gates(frozenset()))) == []

    def test_applications_only_wait_with_the_check_that_was_taken_out(self) -> None:
        plan = [item("base", obj("Namespace", "team")), item("app", obj("ConfigMap", "c", "team"))]
        ordered = order(plan, Gates(frozenset()))
        assert codes(ordered) == ["WAV108"]
        assert codes(order(plan, GATES)) == []
        alone = [item("app", one.manifest) for one in plan]
        assert codes(order(alone, Gates(frozenset()))) == []


class TestStalling:
    def test_what_can_stall_comes_last_in_its_application(self) -> None:
        plan = [
            item("app", obj("Rollout", "a", "team")),
            item("app", obj("AnalysisTemplate", "t", "team")),
            item("app", obj("Widget", "w", "team"), ref("AnalysisTemplate", "t", "team")),
        ]
        ordered = order(plan, GATES)
        assert waves(ordered) == {"AnalysisTemplate/t": 0, "Rollout/a": 1, "Widget/w": 1}
        assert "suspends" in ordered.applications[0].stalls
        steps = simulate([annotated(p.item.manifest, p.wave) for p in ordered.items], GATES)
        assert [step.verdict for step in steps] == [Verdict.GATES, Verdict.NOT_AWAITED]

    def test_its_scaler_comes_with_it(self) -> None:
        target = {"scaleTargetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "a"}}
        plan = [
            item("app", obj("ScaledObject", "a", "team", spec=target)),
            item("app", obj("Rollout", "a", "team")),
            item("app", obj("ConfigMap", "c", "team"), ref("ConfigMap", "first", "team")),
            item("app", obj("ConfigMap", "first", "team")),
        ]
        ordered = order(plan, GATES)
        assert codes(ordered) == []
        assert waves(ordered) == {"ConfigMap/first": 0, "ConfigMap/c": 1, "Rollout/a": 1, "ScaledObject/a": 1}

    def test_a_need_of_what_can_stall(self) -> None:
        held = item("app", obj("Job", "warm-up", "team", labels=HELD))
        after = item("app", obj("ConfigMap", "c", "team"), ref("Job", "warm-up", "team"))
        ordered = order([held, after], GATES)
        assert codes(ordered) == ["WAV105"]
        assert "Kueue holds it until there is quota" in ordered.findings[0].message
        free = item("app", obj("Job", "warm-up", "team"))
        assert codes(order([free, after], GATES)) == []
        assert codes(order([held, item("app", obj("ConfigMap", "c", "team"))], GATES)) == []

    def test_an_application_that_can_stall_comes_last_and_is_needed_by_none(self) -> None:
        serving = item("a-serving", obj("Rollout", "r", "team"))
        others = [item("base", obj("Namespace", "team")), item("jobs", obj("ConfigMap", "c", "team"))]
        further = item("more", obj("Widget", "w", "team"), ref("ConfigMap", "c", "team"))
        ordered = order([serving, *others, further], GATES)
        assert codes(ordered) == []
        assert apps(ordered) == {"base": 0, "jobs": 1, "a-serving": 2, "more": 2}
        needs_it = item("more", obj("Widget", "v", "team"), ref("Rollout", "r", "team"))
        bad = order([serving, *others, needs_it], GATES)
        assert codes(bad) == ["WAV106"]
        assert "Application more would wait for a-serving" in bad.findings[0].message
        assert "Rollout.argoproj.io team/r in it can stall" in bad.findings[0].message

    def test_the_root_does_not_hang(self) -> None:
        plan = [
            item("serving", obj("Rollout", "r", "team")),
            item("base", obj("Namespace", "team")),
            item("jobs", obj("ConfigMap", "c", "team")),
        ]
        ordered = order(plan, GATES)
        stalls = {application.name: application.stalls for application in ordered.applications}
        children = [annotated(obj("Application", app.name, "argocd"), app.wave) for app in ordered.applications]
        steps = simulate(children, GATES, stalled=lambda m: stalls[m.ref.name])
        assert [step.verdict for step in steps] == [Verdict.GATES, Verdict.NOT_AWAITED]


class TestClaims:
    CLAIM = obj("PersistentVolumeClaim", "models", "team", spec={"storageClassName": "fast"})
    USER = obj("Deployment", "d", "team", spec=pod(claim="models"))

    def test_a_claim_stands_in_the_wave_of_its_user(self) -> None:
        plan = [
            item("app", self.CLAIM),
            item("app", self.USER, ref("Widget", "first")),
            item("app", obj("Widget", "first")),
        ]
        assert waves(order(plan, GATES)) == {"Widget/first": 0, "PersistentVolumeClaim/models": 1, "Deployment/d": 1}

    def test_a_pod_does_not_make_its_application_wait_for_that_of_its_claim(self) -> None:
        plan = [item("data", self.CLAIM), item("app", self.USER)]
        ordered = order(plan, GATES)
        assert (codes(ordered), apps(ordered)) == ([], {"app": 0, "data": 0})
        wish = item("app", self.USER, ref("PersistentVolumeClaim", "models", "team"))
        bad = order([plan[0], wish], GATES)
        assert codes(bad) == ["WAV106"]
        assert "may bind only when one does" in bad.findings[0].message
        assert codes(order([item("app", self.CLAIM), wish], GATES)) == []

    @pytest.mark.parametrize(
        ("claim", "mode", "expected"),
        [
            (CLAIM, "Immediate", []),
            (CLAIM, None, []),
            (CLAIM, "WaitForFirstConsumer", ["WAV106"]),
            (obj("PersistentVolumeClaim", "models", "team", spec={"volumeName": "pv-1"}), "WaitForFirstConsumer", []),
        ],
    )
    def test_a_claim_that_binds_at_once_may_come_first(self, claim: Manifest, mode: str, expected: list[str]) -> None:
        storage = obj("StorageClass", "fast", **({"volumeBindingMode": mode} if mode else {}))
        wish = item("app", self.USER, claim.ref)
        plan = [item("base", storage), item("storage", claim), wish]
        assert codes(order(plan, GATES)) == expected

    def test_a_claim_without_a_user_is_last_and_holds_nobody_up(self) -> None:
        plan = [
            item("data", self.CLAIM),
            item("data", obj("Widget", "a")),
            item("data", obj("ConfigMap", "b"), External(ref("Widget", "a"))),
            item("data", obj("CronJob", "nightly", "team", spec={"jobTemplate": {"spec": pod(claim="models")}})),
            item("base", obj("Namespace", "team")),
        ]
        ordered = order(plan, GATES)
        assert waves(ordered)["PersistentVolumeClaim/models"] == 1
        assert apps(ordered) == {"base": 0, "data": 1}
        assert "WAV105" not in codes(ordered)


class TestSize:
    def test_a_large_application_is_cut_in_wave_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ordering, "MAX_OBJECTS", 3)
        plan = [item("queues", obj("LocalQueue", f"l{n}", "team", spec={"clusterQueue": "cq"})) for n in range(4)]
        plan += [item("queues", obj("ClusterQueue", "cq")), item("queues-2", obj("ConfigMap", "c", "team"))]
        ordered = order(plan, GATES)
        assert codes(ordered) == ["WAV107"]
        assert "5 objects" in ordered.findings[0].message
        held = {(p.application, p.wave, p.item.manifest.ref.name) for p in ordered.items}
        assert held == {
            ("queues", 0, "cq"),
            ("queues", 1, "l0"),
            ("queues", 1, "l1"),
            ("queues-3", 0, "l2"),
            ("queues-3", 0, "l3"),
            ("queues-2", 0, "c"),
        }
        assert apps(ordered) == {"queues": 0, "queues-2": 0, "queues-3": 1}
        monkeypatch.setattr(ordering, "MAX_OBJECTS", 5)
        assert codes(order(plan, GATES)) == []

    def test_bytes_count_as_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = [item("app", obj("ConfigMap", f"c{n}", data={"k": "x" * 1000})) for n in range(4)]
        monkeypatch.setattr(ordering, "MAX_BYTES", 2500)
        ordered = order(plan, GATES)
        assert codes(ordered) == ["WAV107"]
        assert [application.name for application in ordered.applications] == ["app", "app-2"]
        monkeypatch.setattr(ordering, "MAX_BYTES", 10_000)
        assert codes(order(plan, GATES)) == []


KINDS = ["ConfigMap", "Deployment", "ClusterQueue", "Rollout", "Namespace", "Widget", "Job", "PersistentVolumeClaim"]


@st.composite
def plans(draw: st.DrawFn) -> list[Item]:
    count = draw(st.integers(1, 12))
    manifests = []
    for number in range(count):
        kind = draw(st.sampled_from(KINDS))
        held = HELD if draw(st.booleans()) else {}
        manifests.append(obj(kind, f"o{number}", "" if kind in ("Namespace", "ClusterQueue") else "team", labels=held))
    refs: Sequence[Ref] = [manifest.ref for manifest in manifests]
    return [
        item(draw(st.sampled_from(["a", "b", "c"])), manifest, *draw(st.lists(st.sampled_from(refs), max_size=3)))
        for manifest in manifests
    ]


@given(plans())
def test_every_need_comes_first_and_no_wave_hangs_unless_it_is_said(plan: list[Item]) -> None:
    ordered = order(plan, GATES)
    said = set(codes(ordered))
    where = {placed.item.manifest.ref: placed for placed in ordered.items}
    app_wave = apps(ordered)
    assert len(where) == len(plan)
    if not said & {"WAV101", "WAV102", "WAV105", "WAV106"}:
        for placed in ordered.items:
            for need in placed.item.needs:
                assert isinstance(need, Ref)
                other = where[need]
                if other.application != placed.application:
                    assert app_wave[other.application] < app_wave[placed.application]
                elif need != placed.item.manifest.ref:
                    assert other.wave <= placed.wave
    for application in ordered.applications:
        mine = [placed for placed in ordered.items if placed.application == application.name]
        assert sorted({placed.wave for placed in mine}) == list(range(len(application.waves)))
        manifests = [annotated(placed.item.manifest, placed.wave) for placed in mine]
        assert all(wave(manifest.body) == placed.wave for manifest, placed in zip(manifests, mine, strict=True))
        assert all(step.verdict is not Verdict.HANGS for step in simulate(manifests, GATES))
    children = [annotated(obj("Application", app.name, "argocd"), app.wave) for app in ordered.applications]
    stalls = {app.name: app.stalls for app in ordered.applications}
    for step in simulate(children, GATES, stalled=lambda manifest: stalls[manifest.ref.name]):
        assert step.verdict is not Verdict.HANGS
