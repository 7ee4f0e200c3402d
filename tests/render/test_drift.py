"""Which rules an object gets, and what its Application says."""

from __future__ import annotations

from blueprint.render.drift import ignored, with_drift
from blueprint.render.plan import Drift, Item
from tests.render.plans import item, obj, ref

HELD = {"kueue.x-k8s.io/queue-name": "lq"}
ISTIO = {
    "strategy": {
        "canary": {
            "stableService": "r-stable",
            "canaryService": "r-canary",
            "trafficRouting": {"istio": {"virtualService": {"name": "r"}, "destinationRule": {"name": "r"}}},
        }
    }
}


def pointers(items: list[Item]) -> dict[str, tuple[str, ...]]:
    return {
        f"{one.manifest.kind}/{one.manifest.ref.name}": tuple(p for rule in one.drift for p in rule.pointers)
        for one in with_drift(items)
        if one.drift
    }


class TestScaled:
    SCALER = item("a", obj("ScaledObject", "s", "n", spec={"scaleTargetRef": {"name": "d"}}))

    def test_replicas_that_are_written_and_scaled(self) -> None:
        target = item("a", obj("Deployment", "d", "n", spec={"replicas": 2}))
        assert pointers([self.SCALER, target]) == {"Deployment/d": ("/spec/replicas",)}
        named = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        hpa = obj("HorizontalPodAutoscaler", "h", "n", spec={"scaleTargetRef": named})
        assert pointers([item("b", hpa), target]) == {"Deployment/d": ("/spec/replicas",)}

    def test_replicas_left_out_are_no_difference(self) -> None:
        assert pointers([self.SCALER, item("a", obj("Deployment", "d", "n", spec={}))]) == {}

    def test_another_namespace_is_another_object(self) -> None:
        assert pointers([self.SCALER, item("a", obj("Deployment", "d", "m", spec={"replicas": 2}))]) == {}


class TestQueued:
    def test_what_kueue_writes_and_git_sets(self) -> None:
        spec = {
            "runPolicy": {"suspend": True},
            "pytorchReplicaSpecs": {
                "Master": {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
                "Worker": {"template": {"spec": {"tolerations": []}}},
            },
        }
        assert pointers([item("a", obj("PyTorchJob", "p", "n", labels=HELD, spec=spec))]) == {
            "PyTorchJob/p": (
                "/spec/runPolicy/suspend",
                "/spec/pytorchReplicaSpecs/Master/template/spec/nodeSelector",
                "/spec/pytorchReplicaSpecs/Worker/template/spec/tolerations",
            )
        }

    def test_a_job_without_a_queue_is_left_alone(self) -> None:
        assert pointers([item("a", obj("Job", "j", "n", spec={"suspend": True}))]) == {}
        assert pointers([item("a", obj("Job", "j", "n", labels=HELD, spec={}))]) == {}

    def test_its_application_respects_the_live_value(self) -> None:
        items = with_drift([item("a", obj("Job", "j", "n", labels=HELD, spec={"suspend": True}))])
        assert ignored(items).respect
        assert ignored(items).entries == ()


class TestRouted:
    PLAN = (
        item("a", obj("Rollout", "r", "n", spec=ISTIO)),
        item("a", obj("VirtualService", "r", "n")),
        item("a", obj("VirtualService", "other", "n")),
        item("a", obj("DestinationRule", "r", "n")),
        item("a", obj("Service", "r-stable", "n")),
        item("a", obj("Service", "r-canary", "n")),
        item("a", obj("Service", "other", "n")),
    )

    def test_weights_and_selectors(self) -> None:
        items = with_drift(self.PLAN)
        said = ignored(items)
        assert [(entry["kind"], entry["name"], entry["jqPathExpressions"]) for entry in said.entries] == [
            ("DestinationRule", "r", ['.spec.subsets[].labels["rollouts-pod-template-hash"]']),
            ("VirtualService", "r", [".spec.http[].route[].weight"]),
        ]
        assert said.entries[1]["namespace"] == "n"
        selector = ("/spec/selector/rollouts-pod-template-hash",)
        found = pointers(list(self.PLAN))
        assert (found["Service/r-stable"], found["Service/r-canary"]) == (selector, selector)
        assert "Service/other" not in found

    def test_routes_of_the_gateway_api(self) -> None:
        plugin = {"httpRoutes": [{"name": "one"}, {"name": "two"}], "namespace": "edge"}
        spec = {"strategy": {"canary": {"trafficRouting": {"plugins": {"argoproj-labs/gatewayAPI": plugin}}}}}
        route = obj("Widget", "two", "edge")
        route.body.update(apiVersion="gateway.networking.k8s.io/v1", kind="HTTPRoute")
        items = with_drift([item("a", obj("Rollout", "r", "n", spec=spec)), item("a", route)])
        assert [entry["jqPathExpressions"] for entry in ignored(items).entries] == [
            [".spec.rules[].backendRefs[].weight"]
        ]

    def test_a_broken_rollout_is_read_without_an_error(self) -> None:
        for strategy in (
            None,
            [],
            {"canary": []},
            {"canary": {"trafficRouting": {"istio": {"virtualServices": [3, {}]}}}},
        ):
            assert with_drift([item("a", obj("Rollout", "r", "n", spec={"strategy": strategy}))])


class TestFrozenLists:
    def test_weights_beside_a_respected_field(self) -> None:
        held = item("a", obj("Job", "j", "n", labels=HELD, spec={"suspend": True}))
        said = ignored(with_drift([*TestRouted.PLAN, held]))
        assert [(f.code, f.object) for f in said.findings] == [
            ("WAV109", ref("DestinationRule", "r", "n")),
            ("WAV109", ref("VirtualService", "r", "n")),
        ]

    def test_apart_they_do_no_harm(self) -> None:
        assert ignored(with_drift(TestRouted.PLAN)).findings == ()
        assert not ignored(with_drift(TestRouted.PLAN)).respect

    def test_a_jq_path_outside_of_lists_does_no_harm(self) -> None:
        one = Item(obj("Widget", "w"), "a", drift=(Drift("x", jq=(".spec.size",)),))
        assert ignored([one]).findings == ()
        core = Item(obj("Service", "s", "n"), "a", drift=(Drift("x", jq=(".spec.ports[].nodePort",)),))
        assert ignored([core]).findings == ()


def test_rules_are_added_to_those_that_an_item_brings() -> None:
    own = Drift("own", pointers=("/spec/x",))
    one = Item(obj("Job", "j", "n", labels=HELD, spec={"suspend": True}), "a", drift=(own,))
    (with_both,) = with_drift([one])
    assert with_both.drift[0] is own
    assert len(with_both.drift) == 2
