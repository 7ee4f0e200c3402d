"""A patch takes its finding away and brings none; where a person has to decide there is no patch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blueprint.catalog.rules import rules
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.patches import MAKERS, apply, patched
from blueprint.check.read import Reading, read_bytes
from blueprint.finding import Finding
from blueprint.objects import Manifest

PACK = SchemaPack.shipped()
PLACE = "shown/queues/objects.yaml"

EXAMPLES = {
    "ARG101": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\n"
    'spec: {project: default}\nsource: {repoURL: "https://git.example.com/p.git", path: m}\n'
    "destination: {name: in-cluster}\n",
    "KQ701": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\nspec: {parent: all}\n",
    "NAM203": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a, namespace: x}\nspec: {}\n",
    "POL402": "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: OnlyDigests\nmetadata: {name: all}\n"
    'spec: {scopedEnforcementActions: [{action: deny, enforcementPoints: [{name: "*"}]}]}\n',
    "SCH104": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\nspec: {parentNam: all}\n",
    "SCH112": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: a, namespace: b}\n"
    "spec: {clusterQueue: c}\nstatus: {pendingWorkloads: 1}\n",
    "WAV201": "apiVersion: v1\nkind: ConfigMap\n"
    'metadata: {name: a, namespace: b, annotations: {argocd.argoproj.io/sync-wave: " 2"}}\n',
    "IMG101": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\n"
    'spec: {containers: [{name: c, image: "https://registry.example.com/c:1@sha256:' + "0" * 64 + '"}]}\n',
    "ARG203": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: m, namespace: argocd}\n"
    "spec:\n  generators: [{list: {elements: [{name: a}]}}]\n  template:\n    metadata: {name: '{{ .name }}'}\n"
    "    spec: {project: default, source: {repoURL: 'https://git.example.com/p.git', path: m}, destination: {name: a}}",
}


def manifests(text: str) -> list[Manifest]:
    reading = Reading()
    read_bytes(text.encode(), PLACE, reading)
    return [*reading.manifests, *reading.aside]


def judged(objects: list[Manifest]) -> list[Finding]:
    return validate(objects, PACK, tree_rules=tree_rules()).findings


@pytest.mark.parametrize("code", sorted(MAKERS))
def test_a_patch_takes_the_finding_away_and_brings_none(code: str) -> None:
    objects = manifests(EXAMPLES.get(code) or rules()[code].bad)
    before = patched(judged(objects), objects)
    wanted = [finding for finding in before if finding.code == code and finding.patch]
    assert wanted, [finding.code for finding in before]
    done = []
    for at in objects:
        body = at.body
        for finding in wanted:
            if (finding.source, finding.object) == (at.source, at.ref):
                body = apply(body, finding.patch)
        done.append(replace(at, body=body))
    after = judged(done)
    assert code not in {finding.code for finding in after if finding.source in {f.source for f in wanted}}
    assert not {f.code for f in after} - {f.code for f in before}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("KQ121", rules()["KQ121"].bad.replace("name: cpu,", "name: pods,", 1)),
        ("WAV201", EXAMPLES["WAV201"].replace('" 2"', '"1.5"')),
        ("ARG101", EXAMPLES["ARG101"].replace("project: default", "project: default, source: {}, destination: {}")),
        ("ARG203", EXAMPLES["ARG203"].replace("path: m", "path: '{{name}}'")),
        ("SCH104", EXAMPLES["SCH104"].replace("parentNam: all", "parentNam: all, parentName: b")),
        ("SCH104", EXAMPLES["SCH104"].replace("parentNam: all", "quota: all")),
        ("IMG101", EXAMPLES["IMG101"].replace("https://registry", "registry example")),
        ("KQ701", EXAMPLES["KQ701"].replace("{parent: all}", "{parent: all, parentName: b}")),
    ],
)
def test_a_person_has_to_decide(code: str, text: str) -> None:
    objects = manifests(text)
    found = [finding for finding in patched(judged(objects), objects) if finding.code == code]
    assert found
    assert not any(finding.patch for finding in found)


def test_what_is_built_is_not_patched() -> None:
    objects = [replace(each, root="base") for each in manifests(EXAMPLES["SCH112"])]
    assert not any(finding.patch for finding in patched(judged(objects), objects))
