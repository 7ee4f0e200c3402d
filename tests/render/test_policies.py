"""Policies: the same rules for each engine, in the same places, and the right verdicts on the reference platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check.pods import pod_templates
from blueprint.finding import Severity
from blueprint.render import policies
from blueprint.render.gatekeeper import constraint_kind
from blueprint.render.kyverno import spelt
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.rulebook import SYSTEM_NAMESPACES
from blueprint.render.site import Site
from blueprint.render.templates import Templates
from blueprint.spec.load import load
from blueprint.spec.policy import GIVEN_VARIABLES
from tests.cel_judge import refusal
from tests.policy_cases import CASES, JOBS, OWN, PERSON, Case, owner
from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 2}]"
ALL = "engines: [ValidatingAdmissionPolicy, Kyverno, Gatekeeper]"
BARE = {"components": "{kyverno: null, gatekeeper: null}"}

Body = dict[str, Any]


def policy(*lines: str, name: str = "p", match: str = "{resources: [pods]}", rule: str = "true") -> str:
    """A Policy with one rule."""
    body = [
        "description: d",
        f"match: {match}",
        f'rules: [{{expression: "{rule}", message: refused}}]',
        *lines,
    ]
    head = f"apiVersion: platform.blueprint/v1alpha1\nkind: Policy\nmetadata: {{name: {name}}}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in body)


def gate(engines: str, *lines: str) -> str:
    """An image gate."""
    body = [f"engines: [{engines}]", "images:", '  prefixes: ["registry.example.com/"]']
    body += ["  signers: [{subject: s, issuer: i}, {subject: t, issuer: i}]", *(f"  {line}" for line in lines)]
    head = "apiVersion: platform.blueprint/v1alpha1\nkind: Policy\nmetadata: {name: gate}\nspec:\n  description: d\n"
    return head + "".join(f"  {line}\n" for line in body)


@pytest.fixture(scope="module")
def reference() -> RenderedCluster:
    platform = load(Path(__file__).parents[2]).platform
    document = next(d for d in platform.clusters if d.model.metadata.name == "prod-a")
    return render(platform, document, Templates(), SchemaPack.shipped())


def of_kind(rendered: RenderedCluster, kind: str) -> dict[str, Body]:
    return {f.manifest.ref.name: f.manifest.body for f in rendered.files if f.manifest.kind == kind}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.policy}: {case.name}")
def test_expressions_give_the_verdict(case: Case, reference: RenderedCluster) -> None:
    spec = of_kind(reference, "ValidatingAdmissionPolicy")[case.policy]["spec"]
    if case.namespace in SYSTEM_NAMESPACES:
        selector = spec["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert any(case.namespace in row.get("values", ()) for row in selector if row["operator"] == "NotIn")
        return
    assert bool(said := refusal(spec, case.review()["request"])) is case.refused, said
    assert "cannot be evaluated" not in said


def test_each_policy_has_cases_both_ways(reference: RenderedCluster) -> None:
    both = {case.policy for case in CASES if case.refused} & {case.policy for case in CASES if not case.refused}
    known = set(of_kind(reference, "ValidatingAdmissionPolicy"))
    assert known - both == {"device-admin-namespaces"}  # asks for the caller's rights: judged by a real server only
    assert len(known) >= 10


def test_all_engines_are_given_the_same_text(reference: RenderedCluster) -> None:
    native, kyverno = of_kind(reference, "ValidatingAdmissionPolicy"), of_kind(reference, "ValidatingPolicy")
    templates = of_kind(reference, "ConstraintTemplate")
    assert set(kyverno) <= set(native)
    for name, body in kyverno.items():
        spec = native[name]["spec"]
        for field in ("variables", "validations"):
            wanted = [row | {"expression": spelt(row["expression"])} for row in spec.get(field, [])]
            assert body["spec"].get(field, []) == wanted
        for field in ("matchConstraints", "failurePolicy"):
            assert body["spec"][field] == spec[field]
    for name, body in native.items():
        template = templates.get(constraint_kind(name).lower())
        if template is None:
            continue
        source = template["spec"]["targets"][0]["code"][0]["source"]
        assert source["validations"] == body["spec"]["validations"]
        assert source.get("variables", []) == [
            row for row in body["spec"].get("variables", []) if row["name"] != "anyObject"
        ]
        assert (source["failurePolicy"], source["generateVAP"]) == ("Fail", False)


def test_all_engines_look_at_the_same_objects(reference: RenderedCluster) -> None:
    pack = SchemaPack.shipped()
    plurals = {(row.api_version.rpartition("/")[0], row.plural): row.kind for row in pack.listed()}
    native = of_kind(reference, "ValidatingAdmissionPolicy")
    constraints = [f.manifest.body for f in reference.files if f.manifest.ref.group == "constraints.gatekeeper.sh"]
    assert len(constraints) >= 15
    for body in constraints:
        if body["metadata"]["name"] not in native:
            continue
        rules = native[body["metadata"]["name"]]["spec"]["matchConstraints"]
        asked = {
            (g, plurals[g, r.partition("/")[0]])
            for row in rules["resourceRules"]
            for g in row["apiGroups"]
            for r in row["resources"]
        }
        match = body["spec"]["match"]
        assert {(group, kind) for row in match["kinds"] for group in row["apiGroups"] for kind in row["kinds"]} == asked
        assert match["namespaceSelector"] == rules["namespaceSelector"]


def test_no_policy_judges_the_namespaces_of_kubernetes_and_of_engines(reference: RenderedCluster) -> None:
    policies_ = [
        body["spec"]["matchConstraints"]
        for kind in ("ValidatingAdmissionPolicy", "ValidatingPolicy", "ImageValidatingPolicy")
        for body in of_kind(reference, kind).values()
    ]
    matches = [
        f.manifest.body["spec"]["match"] for f in reference.files if f.manifest.ref.group == "constraints.gatekeeper.sh"
    ]
    for match in policies_ + matches:
        out = next(row for row in match["namespaceSelector"]["matchExpressions"] if row["operator"] == "NotIn")
        assert out == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)}


def test_the_pods_of_the_platform_break_none_of_its_policies(reference: RenderedCluster) -> None:
    """Every pod that the rendered workloads make, as its controller will ask for it."""
    pods = [
        body["spec"]
        for body in of_kind(reference, "ValidatingAdmissionPolicy").values()
        if any("pods" in row["resources"] for row in body["spec"]["matchConstraints"]["resourceRules"])
    ]
    seen = 0
    for file in reference.files:
        if file.manifest.ref.namespace in SYSTEM_NAMESPACES:
            continue
        for template in pod_templates(file.manifest):
            request = _made(file.manifest.kind, template.metadata, template.spec)
            for spec in pods:
                assert not refusal(spec, request), f"{file.path}: {spec['validations']}"
            seen += 1
    assert seen >= 4


def _made(kind: str, metadata: Body, spec: Body) -> Body:
    """The request by which the controller of a workload makes one of its pods."""
    annotations = dict(metadata.get("annotations") or {})
    if kind == "LeaderWorkerSet":  # Kueue's webhook marks the template (kueue v0.17.0 leaderworkerset_webhook.go)
        annotations["kueue.x-k8s.io/pod-suspending-parent"] = "leaderworkerset.x-k8s.io/leaderworkerset"
    owners = {"PyTorchJob": owner("PyTorchJob", "kubeflow.org/v1"), "TrainingRuntime": owner("Job", "batch/v1")}
    meta = {
        "name": "pod",
        "namespace": "team",
        "labels": metadata.get("labels") or {},
        "annotations": annotations,
        "ownerReferences": owners.get(kind, owner("ReplicaSet", "apps/v1")),
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return {"operation": "CREATE", "namespace": "team", "userInfo": {"username": JOBS}, "object": pod}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oldObject != null && a", "(oldObject != null && has(oldObject.metadata)) && a"),
        ("object == null ? 1 : 2", "(object == null || !has(object.metadata)) ? 1 : 2"),
        ("null==oldObject", "(oldObject == null || !has(oldObject.metadata))"),
        ("namespaceObject != null", "namespaceObject != null"),
        ("object.spec.x == null", "object.spec.x == null"),
        ("null != object.spec", "null != object.spec"),
        ("request.object == null", "request.object == null"),
    ],
)
def test_kyverno_is_told_of_absence_in_its_own_way(text: str, said: str) -> None:
    assert spelt(text) == said


def test_what_kyverno_is_told_judges_its_own_requests_alike(reference: RenderedCluster) -> None:
    """Kyverno hands over an empty map where the other engines have null."""
    for case in CASES:
        spec = of_kind(reference, "ValidatingPolicy").get(case.policy, {}).get("spec")
        if spec is not None and case.namespace not in SYSTEM_NAMESPACES:
            assert bool(refusal(spec, {"oldObject": {}, **case.review()["request"]})) is case.refused


@pytest.mark.parametrize(
    ("action", "native", "gatekeeper"),
    [("Deny", ["Deny", "Audit"], "deny"), ("Audit", ["Audit"], "dryrun"), ("Warn", ["Warn", "Audit"], "warn")],
)
def test_each_engine_acts_alike(tmp_path: Path, action: str, native: list[str], gatekeeper: str) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(ALL, f"action: {action}"))
    assert world.get("ValidatingAdmissionPolicyBinding", "p")["spec"]["validationActions"] == native
    assert world.get("ValidatingPolicy", "p")["spec"]["validationActions"] == [action]
    assert world.get("BlueprintP", "p")["spec"]["enforcementAction"] == gatekeeper


def test_an_engine_that_the_cluster_lacks_gets_nothing(tmp_path: Path) -> None:
    """The spec says so in a note; `load` would give it, so the engines are named and there, or not named."""
    world = World(tmp_path, cluster(f"[{PLAIN}]", **BARE), team(QUOTA), policy())
    kinds = {f.manifest.kind for f in world.cluster.files if f.application == "policies"}
    assert kinds == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def test_a_policy_of_the_platform_judges_namespaces_of_components(tmp_path: Path) -> None:
    match = "{resources: [pods], namespaces: platform}"
    world = World(tmp_path, cluster(f"[{PLAIN}]", monitoring="{namespace: metrics}"), team(QUOTA), policy(match=match))
    constraints = world.get("ValidatingAdmissionPolicy", "p")["spec"]["matchConstraints"]
    [row] = constraints["namespaceSelector"]["matchExpressions"]
    assert row["operator"] == "In"
    assert {"kueue-system", "velero", "metrics", "argocd"} <= set(row["values"])
    assert not set(row["values"]) & {*SYSTEM_NAMESPACES, "alpha"}


def test_kinds_of_absent_components_are_left_out(tmp_path: Path) -> None:
    match = "{resources: [jobs.batch, pytorchjobs.kubeflow.org, jobsets.jobset.x-k8s.io]}"
    lacking = {"components": "{trainingOperator: null, trainer: null}"}
    world = World(tmp_path, cluster(f"[{PLAIN}]", **lacking), team(QUOTA), policy(ALL, match=match))
    rules = world.get("ValidatingAdmissionPolicy", "p")["spec"]["matchConstraints"]["resourceRules"]
    assert [(row["apiGroups"], row["resources"]) for row in rules] == [(["batch"], ["jobs"])]
    reader = world.get("ClusterRole", "platform-kyverno-reader")
    assert [rule["apiGroups"] for rule in reader["rules"]] == [["batch"]]


def test_a_policy_with_nothing_left_to_judge_is_not_rendered(tmp_path: Path) -> None:
    lacking = {"components": "{trainingOperator: null}"}
    only = policy(ALL, match="{resources: [pytorchjobs.kubeflow.org]}")
    world = World(tmp_path, cluster(f"[{PLAIN}]", **lacking), team(QUOTA), only)
    assert not [f for f in world.cluster.files if f.application == "policies"]
    assert not world.findings


@pytest.mark.parametrize(("engines", "severity"), [("", Severity.WARNING), (ALL, Severity.ERROR)])
def test_a_resource_that_nobody_knows_is_told(tmp_path: Path, engines: str, severity: Severity) -> None:
    lines = [engines] if engines else []
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(*lines, match="{resources: [pod, jobs.batch]}"))
    [finding] = world.findings
    assert (finding.code, finding.severity) == ("POL101", severity)
    rules = world.get("ValidatingAdmissionPolicy", "p")["spec"]["matchConstraints"]["resourceRules"]
    assert {tuple(row["apiVersions"]) for row in rules} == {("*",), ("v1",)}
    assert not world.all("ConstraintTemplate")


def test_a_rule_on_changes_is_not_asked_of_what_stands_still(tmp_path: Path) -> None:
    changes = policy(ALL, name="changes", match="{resources: [pods], operations: [UPDATE]}")
    creation = policy(ALL, name="creation", match="{resources: [pods], operations: [CREATE, UPDATE]}")
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), changes, creation)

    def asked(name: str) -> str:
        target = world.get("ConstraintTemplate", f"blueprint{name}")["spec"]["targets"][0]
        return str(target["code"][0]["source"]["matchCondition"][0]["expression"])

    assert asked("changes") == "request.operation in ['UPDATE']"
    assert asked("creation") == "request.operation in ['', 'CREATE', 'UPDATE']"
    for name, scans in (("changes", False), ("creation", True)):
        evaluation = world.get("ValidatingPolicy", name)["spec"]["evaluation"]
        assert evaluation == {"admission": {"enabled": True}, "background": {"enabled": scans}}


def test_nothing_is_generated_from_policies(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(ALL))
    assert world.get("ValidatingPolicy", "p")["spec"]["autogen"] == {
        "podControllers": {"controllers": []},
        "validatingAdmissionPolicy": {"enabled": False},
    }


def test_given_variables_come_where_they_are_read(tmp_path: Path) -> None:
    rule = "variables.anyObject != null && variables.byController"
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(ALL, rule=rule), policy(ALL, name="q"))
    spec = world.get("ValidatingAdmissionPolicy", "p")["spec"]
    assert tuple(row["name"] for row in spec["variables"]) == GIVEN_VARIABLES
    source = world.get("ConstraintTemplate", "blueprintp")["spec"]["targets"][0]["code"][0]["source"]
    assert [row["name"] for row in source["variables"]] == ["byController"]  # Gatekeeper has its own anyObject
    assert "variables" not in world.get("ValidatingAdmissionPolicy", "q")["spec"]


@pytest.mark.parametrize(
    ("user", "namespace", "controller"),
    [
        (PERSON, "team", False),
        (JOBS, "team", True),
        ("system:serviceaccount:team:training", "team", False),
        ("system:serviceaccount:team-b:training", "team", True),
        ("system:node:gpu-1", "team", True),
        ("oidc:system:x", "team", False),
        (OWN, "", True),
        ("", "team", True),
    ],
)
def test_who_is_a_controller(tmp_path: Path, user: str, namespace: str, controller: bool) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(rule="variables.byController"))
    spec = world.get("ValidatingAdmissionPolicy", "p")["spec"]
    request: Body = {"userInfo": {"username": user} if user else {}, "object": {}}
    assert (refusal(spec, request | ({"namespace": namespace} if namespace else {})) == "") is controller


def test_the_old_object_stands_in_when_one_is_deleted(tmp_path: Path) -> None:
    rule = "variables.anyObject.metadata.name == 'a'"
    match = "{resources: [pods], operations: [DELETE]}"
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(rule=rule, match=match))
    spec = world.get("ValidatingAdmissionPolicy", "p")["spec"]
    assert not refusal(spec, {"oldObject": {"metadata": {"name": "a"}}})
    assert refusal(spec, {"oldObject": {"metadata": {"name": "b"}}})


def test_kinds_of_constraints_are_valid_however_long_the_name() -> None:
    assert constraint_kind("require-queue-name") == "BlueprintRequireQueueName"
    for name in ("a" * 63, "a-" * 31 + "b", "9-lives"):
        assert len(constraint_kind(name)) <= 63
    assert constraint_kind("a" * 63) != constraint_kind("a" * 62 + "b")


@pytest.mark.parametrize("engines", ["ValidatingAdmissionPolicy, Gatekeeper", "Kyverno, Gatekeeper", "Gatekeeper"])
def test_a_tenant_comes_after_what_judges_it(tmp_path: Path, engines: str) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), policy(f"engines: [{engines}]"), gate("Kyverno"))
    document = world.platform.clusters[0]
    judges = policies.judges(Site(world.platform, document, world.platform.deliveries[0], Templates()))
    assert len(judges) == 2
    assert set(judges) <= {f.manifest.ref for f in world.cluster.files}
    waves = {application.name: application.wave for application in world.cluster.applications}
    assert waves["policies"] < waves["team-alpha"]


def test_without_policies_there_is_no_application_for_them(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA))
    assert "policies" not in {application.name for application in world.cluster.applications}


SIGNATURE = {"name": "signature", "intoto": {"type": "https://sigstore.dev/cosign/sign/v1"}}


def test_kyverno_verifies_every_list_of_images(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), gate("Kyverno"))
    spec = world.get("ImageValidatingPolicy", "gate")["spec"]
    assert [rule["expression"] for rule in spec["validations"]] == [
        f"images.{images}.all(image, verifyImageSignatures(image, [attestors.signers]) > 0 && "
        "verifyAttestationSignatures(image, attestations.signature, [attestors.signers]) > 0)"
        for images in ("containers", "initContainers", "ephemeralContainers", "volumes")
    ]
    [attestor] = spec["attestors"]
    assert attestor["cosign"] == {"keyless": {"identities": [{"issuer": "i", "subject": s} for s in "st"]}}
    assert spec["validationConfigurations"] == {"mutateDigest": False, "required": True, "verifyDigest": True}
    assert spec["attestations"] == [SIGNATURE]
    assert not world.all("Provider")


def test_kyverno_reads_the_age_from_provenance(tmp_path: Path) -> None:
    trust = "trust: {mirror: https://tuf.example.com, root: e30=}"
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), gate("Kyverno", "maxAge: 1h30m", trust))
    spec = world.get("ImageValidatingPolicy", "gate")["spec"]
    provenance = {"name": "provenance", "intoto": {"type": "https://slsa.dev/provenance/v1"}}
    assert spec["attestations"] == [SIGNATURE, provenance]
    dated = [rule["expression"] for rule in spec["validations"] if "time.now()" in rule["expression"]]
    assert len(dated) == 4
    assert all("> time.now() - duration('5400s') && " in text for text in dated)
    assert all(text.endswith("< time.now() + duration('300s'))") for text in dated)
    tuf = spec["attestors"][0]["cosign"]["tuf"]
    assert tuf == {"mirror": "https://tuf.example.com", "root": {"data": "e30="}}


def test_gatekeeper_asks_the_provider(tmp_path: Path) -> None:
    provider = "provider: {url: https://gate.svc:8443/verify, caBundle: e30=}"
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), gate("Gatekeeper", "maxAge: 2d", provider))
    assert world.get("Provider", "gate")["spec"] == {
        "url": "https://gate.svc:8443/verify",
        "timeout": 2,
        "caBundle": "e30=",
    }
    assert world.get("BlueprintGate", "gate")["spec"]["parameters"] == {
        "provider": "gate",
        "prefixes": ["registry.example.com/"],
        "signers": [{"subject": "s", "issuer": "i"}, {"subject": "t", "issuer": "i"}],
        "maxAgeSeconds": 172800,
    }
    [code] = world.get("ConstraintTemplate", "blueprintgate")["spec"]["targets"][0]["code"]
    assert (code["engine"], code["source"]["version"]) == ("Rego", "v1")
    assert not world.findings
    assert not world.all("ImageValidatingPolicy")
