"""The credential from what a running Kyverno reports: real PolicyReports on real objects, read by `credential issue`.

The API server, Kyverno's admission and its reports controller run as processes. Velero does not: its objects, which the
API server keeps by Velero's CRDs, and its bucket are those of tests/attest/deployment.py, which test_velero_layout.py
holds to Velero's source.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blueprint.conform.client import Target
from blueprint.conform.components.kyverno import KYVERNO, REPORTS
from blueprint.conform.local import LocalCluster
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from tests.attest.conftest import office  # noqa: F401 - a fixture
from tests.attest.deployment import Deployment
from tests.attest.test_verbs import Shell
from tests.attest.world import Office
from tests.conformance.conftest import ROOT, program
from tests.conformance.test_image_gate_live import Engine
from tests.policy_cases import NAMESPACE, TEAM, container, pod

pytestmark = pytest.mark.conformance

Body = dict[str, Any]

POLICIES = ("images-by-digest", "approved-registries", "no-api-tokens", "no-secondary-networks")
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PATIENCE = 240.0


#: What the chart of Kyverno lets its reports controller read; without it no policy is ready, for no report would come.
READER: tuple[Body, Body] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reports"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reports"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reports"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kyverno", "name": "kyverno-reports-controller"}],
    },
)


class Site:
    """A cluster under Kyverno, the signed tree that its policies come from, and a backup."""

    def __init__(self, shell: Shell, cluster: LocalCluster) -> None:
        self.shell, self.cluster, self.client = shell, cluster, cluster.client
        deployment = Deployment(shell.folder / "store")
        for name in ("backup", "location"):
            answer = self.client.create(deployment.objects[name])
            assert answer.ok, answer.message
            deployment.objects[name] = answer.body
        deployment.write_store()
        told = shell.run("credential", "kinds", "platform/rendered", "--cluster", "lab")
        self.paths = told.split()
        assert "/apis/policies.kyverno.io/v1/policyexceptions" in self.paths
        self._served()
        for body in READER:
            assert self.client.create(body).ok
        self.uid = str(self.client.get(Target("v1", "Namespace", name="kube-system")).body["metadata"]["uid"])

    def _served(self) -> None:
        """A server needs a moment for the storage of kinds that it has just learnt."""
        deadline = time.monotonic() + PATIENCE
        for path in self.paths:
            while time.monotonic() < deadline and not self.client.request("GET", path).ok:
                time.sleep(0.5)

    def evidence(self) -> None:
        """What `kubectl get --raw` gives of every path that the verb names, written where the verb reads it."""
        folder = self.shell.folder / "objects"
        folder.mkdir(exist_ok=True)
        for path in self.paths:
            answer = self.client.request("GET", path)
            assert answer.ok, answer.message
            (folder / f"{path.strip('/').replace('/', '_')}.json").write_text(json.dumps(answer.body))

    def issue(self, code: int) -> str:
        self.evidence()
        return self.judged(code)

    def judged(self, code: int) -> str:
        given = ["--cluster", "lab", "--objects", "objects", "--store", "store"]
        signing = ["--trust-config", "trust.json", "--identity-token", "token"]
        (self.shell.folder / "token").write_text(self.shell.office.store.token(self.shell.who[1]))
        return self.shell.run(
            "credential", "issue", "platform/rendered", *given, *self.shell.who[:4], *signing, code=code
        )

    def ready(self, wanted: bool) -> None:
        """Wait until Kyverno says of every policy that it is ready, or of one that it is not."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.client.every("policies.kyverno.io/v1", "ValidatingPolicy")
            told = [body.get("status", {}).get("conditionStatus", {}).get("ready") for body in found]
            if (len(told) == len(POLICIES) and all(told)) if wanted else False in told:
                return
            time.sleep(1)
        pytest.fail(f"not within {PATIENCE:.0f} s: {found}")

    def rows(self) -> set[tuple[str, str, str]]:
        """(policy, pod, result) of every row of every report."""
        return {
            (row["policy"], report["scope"]["name"], row["result"])
            for report in self.client.every("wgpolicyk8s.io/v1alpha2", "PolicyReport", NAMESPACE)
            for row in report.get("results") or ()
        }

    def until(self, holds: Callable[[set[tuple[str, str, str]]], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if holds(self.rows()):
                return
            time.sleep(1)
        log = self.cluster.log("kyverno-reports").read_text("utf-8")[-3000:]
        pytest.fail(f"not within {PATIENCE:.0f} s: {what}; the reports say {sorted(self.rows())}\n{log}")


@pytest.fixture(scope="module")
def signed(office: Office, tmp_path_factory: pytest.TempPathFactory) -> Shell:  # noqa: F811
    """The smallest platform with policies for Kyverno, rendered and signed."""
    folder = tmp_path_factory.mktemp("platform") / "platform"
    copy_example("minimal", folder)
    (folder / "policies").mkdir(exist_ok=True)
    for name in POLICIES:
        text = (ROOT / f"policies/{name}.yaml").read_text("utf-8")
        (folder / f"policies/{name}.yaml").write_text(re.sub(r"engines: \[.*\]", "engines: [Kyverno]", text))
    assert not render_platform(folder, folder / "rendered").report.failed
    shell = Shell(tmp_path_factory.mktemp("shell"), office, folder)
    shell.sign()
    return shell


@pytest.fixture(scope="module")
def site(signed: Shell, crds: list[Body], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for component in (KYVERNO, REPORTS):
        program(component.program)
    with Engine(tmp_path_factory.mktemp("cluster"), KYVERNO, REPORTS) as cluster:
        cluster.plane.load_crds(crd for crd in crds if crd["spec"]["group"] == "velero.io")
        cluster.plane.namespace("velero")
        cluster.plane.namespace(NAMESPACE, {TEAM: "a"})
        cluster.plane.namespace("kube-system")
        yield Site(signed, cluster)


def policies(site: Site) -> list[Body]:
    from blueprint.attest.evidence import World

    world = World.read([site.shell.folder / "platform/rendered/lab"])
    return [dict(policy.body) for policy in world.all("policies.kyverno.io", "ValidatingPolicy")]


def test_from_the_reports_of_a_running_kyverno(site: Site) -> None:
    """One story, for each step takes what the step before has left: nothing evaluated, a failure, agreement, tricks."""
    client = site.client
    bad = pod(container("registry.example.com/training/torch:2.9"), name="bad")
    for body in (pod(name="good"), bad):
        assert client.create(body).ok
    assert "CRE105" in site.issue(1), "policies that are not there yet"

    rendered = policies(site)
    assert len(rendered) == len(POLICIES)
    for body in rendered:
        answer = client.create(body)
        assert answer.ok, answer.message
    site.ready(True)
    site.until(lambda rows: len({(policy, name) for policy, name, _ in rows}) == 2 * len(POLICIES), "both pods judged")
    said = site.issue(1)
    assert re.findall(r"CRE\d+", said) == ["CRE103"], said
    assert "images-by-digest" in said
    assert f"{NAMESPACE}/bad" in said

    gone = client.get(Target.of(bad)).body["metadata"]["uid"]
    client.delete(Target.of(bad))

    def collected(rows: set[tuple[str, str, str]]) -> bool:
        _collect(site, gone)
        return {name for _, name, _ in rows} == {"good"}

    site.until(collected, "the report of a pod that is gone goes, too")
    first = site.issue(0)
    strict = ["--strict", "--objects", "objects", "--store", "store", "-o", "json"]
    given = ["platform/rendered", "--cluster", "lab", "--uid", site.uid, *site.shell.who]
    verified = json.loads(site.shell.run("credential", "verify", *given, *strict))
    assert verified["credential"]["policyEvidence"] == "cluster"
    assert verified["credential"]["policyHash"] in first
    _scanned_again(site)
    assert verified["credential"]["policyHash"] in site.issue(0), "the hash does not follow the clock"

    exception = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "mine", "namespace": "kyverno"},
        "spec": {"policyRefs": [{"kind": "ValidatingPolicy", "name": "images-by-digest"}]},
    }
    assert client.create(exception).ok
    assert "is not one that was rendered" in site.issue(1)
    client.delete(Target.of(exception))
    site.issue(0)

    _webhooks(site)
    (policy,) = [body for body in rendered if body["metadata"]["name"] == "images-by-digest"]
    for change, code in (
        ({"validationActions": ["Audit"]}, "CRE104"),
        ({"validationActions": ["Deny"], "matchConditions": [{"name": "n", "expression": "false"}]}, "CRE105"),
    ):
        assert client.patch(Target.of(policy), {"spec": change}).ok
        assert code in site.issue(1)
    client.delete(Target.of(READER[1]))
    assert client.patch(Target.of(policy), {"metadata": {"annotations": {"touched": "before"}}}).ok
    site.ready(False)
    assert "is not ready, says its engine" in site.issue(1)


def test_a_controller_that_has_stopped_is_no_evidence(site: Site) -> None:
    """The reports stay as they were, and the policy is put right again after them: nobody has judged it since."""
    site.cluster.end("kyverno-reports")
    (policy,) = [body for body in policies(site) if body["metadata"]["name"] == "images-by-digest"]
    assert site.client.patch(Target.of(policy), {"spec": {"matchConditions": None}}).ok
    time.sleep(2)  # times are in whole seconds
    answer = site.client.patch(Target.of(policy), {"spec": {"validationActions": ["Deny"]}})
    assert answer.ok, answer.message
    assert site.client.patch(Target.of(policy), {"metadata": {"annotations": {"touched": "now"}}}).ok
    # Old results, or none at all where the controller took those of the policy away before it ended.
    assert re.search("CRE10[12]", site.issue(1))


def _webhooks(site: Site) -> None:
    """What Kyverno registered is taken as it is, and each way to keep it away from a tenant is refused."""
    file = site.shell.folder / "objects" / f"{HOOKS.strip('/').replace('/', '_')}.json"
    kept = file.read_bytes()
    for change, says in (
        ({"failurePolicy": "Ignore"}, "is passed by when it does not answer"),
        ({"namespaceSelector": {"matchLabels": {"nobody": "has"}}}, "is not asked about the namespace"),
        ({"rules": []}, "is not asked about pods"),
        ({"objectSelector": {"matchLabels": {"nobody": "has"}}}, "is asked about some objects only"),
    ):
        document = json.loads(kept)
        for configuration in document["items"]:
            for hook in configuration["webhooks"]:
                hook.update(change)
        file.write_text(json.dumps(document))
        said = site.judged(1)
        assert says in said, said
        assert set(re.findall(r"CRE\d+", said)) == {"CRE112"}, said
    file.unlink()
    assert "CRE111" in site.judged(1)


def _collect(site: Site, uid: str) -> None:
    """Delete what a deleted object owned, as the garbage collector does, which is a controller that is not run here."""
    for version, kind in (("reports.kyverno.io/v1", "EphemeralReport"), ("wgpolicyk8s.io/v1alpha2", "PolicyReport")):
        for report in site.client.every(version, kind, NAMESPACE):
            if uid in {row["uid"] for row in report["metadata"].get("ownerReferences") or ()}:
                site.client.delete(Target.of(report))


def _scanned_again(site: Site) -> None:
    """Wait until every row was written anew."""
    before = _times(site)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if min(_times(site)) > max(before):
            return
        time.sleep(1)
    pytest.fail(f"no second scan within {PATIENCE:.0f} s")


def _times(site: Site) -> list[int]:
    reports = site.client.every("wgpolicyk8s.io/v1alpha2", "PolicyReport", NAMESPACE)
    return [row["timestamp"]["seconds"] for report in reports for row in report["results"]]
