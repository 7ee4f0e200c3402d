"""Access: what each role of the tree may do, asked of the server for every verb and kind, and what nobody may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml_rs

from blueprint.conform.client import Target
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, refused
from blueprint.conform.tree import Tree

Body = dict[str, Any]

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_ELSEWHERE = ("get", "create", "delete")
_GROUPS = frozenset(
    {
        *("", "apps", "batch", "autoscaling", "policy", "networking.k8s.io", "rbac.authorization.k8s.io"),
        *("resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io"),
        *("kueue.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org", "leaderworkerset.x-k8s.io", "argoproj.io"),
        *("keda.sh", "policies.kyverno.io", "templates.gatekeeper.sh", "monitoring.coreos.com"),
    }
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A group of people, the role that the tree binds it to, and in which namespace ("" for the whole cluster)."""

    group: str
    role: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Question:
    """One request that may or may not be allowed; `resource` may have a subresource."""

    verb: str
    group: str
    resource: str
    namespace: str

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind} in {self.namespace or 'the cluster'}"


def subjects(tree: Tree) -> list[Subject]:
    """Every group that the tree gives a role, in each namespace."""
    found = []
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for body in tree.of_kind(kind):
            for subject in body.get("subjects", ()):
                if subject["kind"] == "Group":
                    space = body["metadata"].get("namespace", "")
                    found.append(Subject(subject["name"], body["roleRef"]["name"], space))
    return found


def run(stage: Stage) -> None:
    """The whole matrix, then the list of what must not, by review and by impersonation."""
    people = subjects(stage.tree)
    served = list(_served(stage))
    teams = sorted({person.namespace for person in people} - {""})
    for person in people:
        other = next((team for team in teams if team != person.namespace), "default")
        with stage.case(f"{person.group} as {person.role}: every verb on every kind, as its rules say") as case:
            asked = list(_matrix(person, served, other))
            wrong = []
            allowed = 0
            for question, answer in _reviews(stage, person.group, asked):
                allowed += answer
                if answer is not _on_paper(stage.tree, people, person.group, question):
                    wrong.append(f"{question}: the server says {'yes' if answer else 'no'}")
            if wrong:
                raise WrongAnswerError(f"{len(wrong)} of {len(asked)} differ: {'; '.join(wrong[:5])}")
            case.said = f"{len(asked)} requests, {allowed} allowed"
    for person in people:
        if not person.namespace:
            continue
        other = next((team for team in teams if team != person.namespace), "default")
        with stage.case(f"{person.group} as {person.role}: what no tenant may do", negative=True) as case:
            asked = list(_forbidden(person, other))
            open_doors = [str(question) for question, answer in _reviews(stage, person.group, asked) if answer]
            if open_doors:
                raise WrongAnswerError(f"it may {'; '.join(open_doors[:5])}")
            case.said = f"{len(asked)} requests, none allowed"
    _impersonated(stage, people)


def _served(stage: Stage) -> Iterator[tuple[str, str, bool]]:
    """Group, resource and whether it is namespaced, of all that the server serves in the groups that matter."""
    roots = ["/api/v1"]
    for group in accepted(stage.client.request("GET", "/apis"), "discovery").body["groups"]:
        if group["name"] in _GROUPS:
            roots.append(f"/apis/{group['preferredVersion']['groupVersion']}")
    for root in roots:
        group = root.split("/")[2] if root.startswith("/apis/") else ""
        for row in accepted(stage.client.request("GET", root), root).body["resources"]:
            yield group, row["name"], row["namespaced"]


def _matrix(person: Subject, served: Iterable[tuple[str, str, bool]], other: str) -> Iterator[Question]:
    for group, resource, namespaced in served:
        if not namespaced:
            yield from (Question(verb, group, resource, "") for verb in _VERBS)
            continue
        own = person.namespace or "default"
        yield from (Question(verb, group, resource, own) for verb in _VERBS)
        if person.namespace:
            yield from (Question(verb, group, resource, other) for verb in _ELSEWHERE)


def _forbidden(person: Subject, other: str) -> Iterator[Question]:
    text = resources.files("blueprint.conform").joinpath("data/forbidden.yaml").read_text("utf-8")
    places = {"own": person.namespace, "foreign": other, "platform": "kube-system", "cluster": ""}
    rows: Any = yaml_rs.loads(text, parse_datetime=False)
    for row in rows:
        for verb in row["verbs"]:
            yield Question(verb, row["group"], row["resource"], places[row["where"]])


def _reviews(stage: Stage, group: str, asked: Iterable[Question]) -> Iterator[tuple[Question, bool]]:
    """The server's own answer to each question, by SubjectAccessReview."""
    asked = list(asked)

    def ask(question: Question) -> bool:
        resource, _, part = question.resource.partition("/")
        attributes = {"verb": question.verb, "group": question.group, "resource": resource, "subresource": part}
        spec = {
            "user": "person@example.com",
            "groups": [group, "system:authenticated"],
            "resourceAttributes": {**attributes, "namespace": question.namespace, "name": "some"},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        made = stage.client.create({**body, "metadata": {}})
        return bool(accepted(made, "a review").body["status"]["allowed"])

    with ThreadPoolExecutor(8) as pool:
        yield from zip(asked, pool.map(ask, asked), strict=True)


def _on_paper(tree: Tree, people: Iterable[Subject], group: str, question: Question) -> bool:
    """What the rules of the tree say, read by us (kubernetes v1.35.4 pkg/registry/rbac/validation/rule.go).

    A named object is asked for: verbs on collections are answered the same way, for rules here name no objects.
    """
    if question.verb == "create" and question.group == "authorization.k8s.io":
        return question.resource.startswith("self")
    for person in people:
        if person.group != group or person.namespace not in ("", question.namespace):
            continue
        for role in tree.of_kind("ClusterRole", person.role):
            if any(_covers(rule, question) for rule in role["rules"]):
                return True
    return False


def _covers(rule: Body, question: Question) -> bool:
    if "resourceNames" in rule or "resources" not in rule:
        return False
    _, slash, part = question.resource.partition("/")
    named = rule["resources"]
    fits = "*" in named or question.resource in named or (bool(slash) and f"*/{part}" in named)
    return fits and _any(rule["verbs"], question.verb) and _any(rule.get("apiGroups", ()), question.group)


def _any(values: Iterable[str], wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values)


def _impersonated(stage: Stage, people: list[Subject]) -> None:
    """The same through the front door: real requests, as a person of the group."""
    developer = next(person for person in people if person.role.endswith("developer"))
    other = next(person.namespace for person in people if person.namespace not in ("", developer.namespace))
    person = stage.client.acting_as("person@example.com", developer.group)
    space = developer.namespace
    with stage.case(f"{developer.group} reads its pods and writes a configuration") as case:
        accepted(person.get(Target("v1", "Pod", space)), "reading pods")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": space}}
        accepted(person.create(body, dry_run=True), "a ConfigMap")
        case.said = f"in {space}"
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any"}}]}}
    device = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "mine"}, "spec": {}}
    meta = {"name": "mine", "namespace": other}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": role}
    writes: list[Body] = [
        device,
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": claim},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "namespace": space}},
        {**binding, "metadata": {**meta, "namespace": space}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "mine"}, "value": 9},
    ]
    for body in writes:
        with stage.case(f"{developer.group} writes a {body['kind']}", negative=True) as case:
            case.said = refused(person.create(body, dry_run=True), "it", "forbidden").message[:160]
    for kind, namespace in (("Pod", other), ("Secret", other), ("Secret", space)):
        with stage.case(f"{developer.group} lists every {kind} of {namespace}", negative=True) as case:
            case.said = refused(person.get(Target("v1", kind, namespace)), kind, "forbidden").message[:160]


def _widened(tree: Tree) -> Tree:
    """A developer who may also write the classes of devices."""

    def put(body: Body) -> None:
        rule = {"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["*"]}
        body["rules"] = [*body["rules"], rule]

    role = next(person.role for person in subjects(tree) if person.role.endswith("developer"))
    return tree.changed("ClusterRole", put, role)


SUITE = Suite(
    name="access",
    title="Roles give what they say, and never what no tenant may have",
    run=run,
    needs=(KUEUE, TRAINING),
    faults=(Fault("a role widened to the classes of devices", _widened, "what no tenant may do"),),
    elsewhere=run,
)
