"""Every shipped health script, run by Lua 5.1 with what Argo CD leaves of it, against samples of real statuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import lupa.lua51 as lua
import pytest
import yaml
import yaml_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.catalog.argocd import health_check
from blueprint.catalog.gating import Gate
from blueprint.render import health
from blueprint.render.emit import emit

STATUSES = {"Healthy", "Progressing", "Degraded", "Suspended"}
SAMPLES = [
    sample
    for file in sorted((Path(__file__).parent / "health").glob("*.yaml"))
    for sample in yaml.safe_load(file.read_text())
]
CASES = [(kind, sample["base"], case) for sample in SAMPLES for kind in sample["kinds"] for case in sample["cases"]]

# argo-cd v3.6.1 util/lua/lua.go opens package, base and table, and an os of date and time; strings have no methods.
RESTRICT = """
getmetatable("").__index = nil
string, math, io, debug, coroutine, python, dofile, loadfile = nil, nil, nil, nil, nil, nil, nil, nil
os = { time = os.time, date = os.date }
"""


class Argo:
    """Runs a script as Argo CD does: a fresh state for each object."""

    def verdict(self, script: str, obj: dict[str, Any]) -> dict[str, Any]:
        state = lua.LuaRuntime(unpack_returned_tuples=True, register_eval=False)
        to_lua = self._table(state)
        state.execute(RESTRICT)
        state.globals().obj = to_lua(obj)
        returned = state.execute(script)
        assert lua.lua_type(returned) == "table"
        return dict(returned)

    def _table(self, state: Any) -> Any:
        def convert(value: Any) -> Any:
            if isinstance(value, dict):
                return state.table_from({k: convert(v) for k, v in value.items() if v is not None})
            if isinstance(value, list):
                return state.table_from([convert(v) for v in value])
            return value

        return convert


def script_for(name: str) -> str:
    group, _, kind = name.rpartition("/")
    scripts = health.scripts()
    return scripts[group, kind] if (group, kind) in scripts else scripts[group, "*"]


def build(name: str, base: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": f"{name.rpartition('/')[0]}/v1",
        "kind": name.rpartition("/")[2],
        **copy.deepcopy(base),
    }
    for path, value in case.get("replace", {}).items():
        *parents, leaf = path.split(".")
        place = obj
        for step in parents:
            place = place.setdefault(step, {})
        if value is None:
            place.pop(leaf, None)
        else:
            place[leaf] = copy.deepcopy(value)
    return obj


@pytest.mark.parametrize(("kind", "base", "case"), CASES, ids=[f"{k}: {c['name']}" for k, _, c in CASES])
def test_verdict(kind: str, base: dict[str, Any], case: dict[str, Any]) -> None:
    verdict = Argo().verdict(script_for(kind), build(kind, base, case))
    assert verdict["status"] == case["status"], verdict
    assert case.get("message", "") in verdict["message"]


def test_every_script_has_at_least_three_samples_and_two_verdicts() -> None:
    seen: dict[tuple[str, str], list[str]] = {}
    for kind, _, case in CASES:
        group, _, name = kind.rpartition("/")
        key = (group, name) if (group, name) in health.scripts() else (group, "*")
        seen.setdefault(key, []).append(case["status"])
    assert set(seen) == set(health.scripts())
    assert all(len(found) >= 3 and len(set(found)) >= 2 for found in seen.values())


def test_no_script_replaces_one_of_argo_cd() -> None:
    assert len(health.scripts()) >= 20
    assert [key for key in health.scripts() if health_check(*key) is not None] == []


def test_a_sample_says_what_happens_without_status() -> None:
    for kind, base, _ in CASES:
        bare = {key: value for key, value in base.items() if key != "status"}
        assert Argo().verdict(script_for(kind), bare)["status"] in STATUSES


def subtrees(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in inner for deeper in subtrees(child, (*path, key)))]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_script_answers_whatever_part_of_the_object_is_missing(data: st.DataObject) -> None:
    kind, base, case = data.draw(st.sampled_from(CASES))
    obj = build(kind, base, case)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(subtrees(obj)))
        if path:
            place = obj
            for step in path[:-1]:
                place = place[step]
            del place[path[-1]]
    verdict = Argo().verdict(script_for(kind), obj)
    assert verdict["status"] in STATUSES
    assert isinstance(verdict["message"], str)


def test_scripts_say_where_they_come_from_and_use_only_what_argo_cd_opens() -> None:
    for script in health.scripts().values():
        assert "-- source: " in script
        assert "-- kinds: " not in script
        for library in ("string.", "math.", "io.", "os.", "debug.", ":match(", ":find(", ":sub("):
            assert library not in "\n".join(line.partition("--")[0] for line in script.splitlines()), library


class TestArgocdCm:
    def test_holds_every_script_under_a_key_that_a_configmap_allows(self) -> None:
        data = health.argocd_cm()
        plain = [key for key in health.scripts() if key[1] != "*"]
        assert all(data[health.key(*key)] == health.scripts()[key] for key in plain)
        assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") for key in data)
        assert sum(map(len, data.values())) < 2**20

    def test_wildcards_stand_under_the_one_old_key(self) -> None:
        old = yaml.safe_load(health.argocd_cm()["resource.customizations"])
        assert old == {
            "constraints.gatekeeper.sh/*": {"health.lua": health.scripts()["constraints.gatekeeper.sh", "*"]}
        }

    def test_only_the_kinds_in_use_and_always_applications(self) -> None:
        data = health.argocd_cm(
            [("kueue.x-k8s.io", "ClusterQueue"), ("constraints.gatekeeper.sh", "K8sX"), ("", "Pod")]
        )
        assert {key for key in data if ".health." in key} == {
            "resource.customizations.health.argoproj.io_Application",
            "resource.customizations.health.kueue.x-k8s.io_ClusterQueue",
        }
        assert "resource.customizations" in data
        assert "resource.customizations" not in health.argocd_cm([("", "Pod")])

    def test_ignores_what_every_cluster_writes(self) -> None:
        data = health.argocd_cm([])
        webhooks = data[
            "resource.customizations.ignoreDifferences.admissionregistration.k8s.io_ValidatingWebhookConfiguration"
        ]
        assert yaml.safe_load(webhooks) == {"jqPathExpressions": [".webhooks[]?.clientConfig.caBundle"]}
        assert yaml.safe_load(data["resource.compareoptions"]) == {"ignoreAggregatedRoles": True}

    def test_reads_back_the_same_after_it_was_written(self) -> None:
        text = emit({"data": health.argocd_cm()})
        assert yaml.safe_load(text) == yaml_rs.loads(text) == {"data": health.argocd_cm()}


class TestGates:
    def test_scripts_make_kinds_gate(self) -> None:
        with_ours, without = health.gates(), health.gates(scripted=False)
        queue = ("kueue.x-k8s.io", "ClusterQueue")
        assert (with_ours.of(*queue), without.of(*queue)) == (Gate.WAITS, Gate.BLIND)
        constraint = ("constraints.gatekeeper.sh", "K8sRequireTeam")
        assert (with_ours.of(*constraint), without.of(*constraint)) == (Gate.WAITS, Gate.BLIND)

    @pytest.mark.parametrize(
        ("kind", "gate"),
        [
            (("apps", "Deployment"), Gate.WAITS),
            (("s3.aws.crossplane.io", "Anything"), Gate.WAITS),
            (("", "ConfigMap"), Gate.WRITTEN),
            (("kueue.x-k8s.io", "ResourceFlavor"), Gate.WRITTEN),
            (("example.com", "Widget"), Gate.UNKNOWN),
        ],
    )
    def test_kinds(self, kind: tuple[str, str], gate: Gate) -> None:
        assert health.gates().of(*kind) is gate
