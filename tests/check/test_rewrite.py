"""Patches in the text of a file: the objects are what the patch makes of them, and all else stays as it was written."""

from __future__ import annotations

import json

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.patches import MAKERS, apply, patched
from blueprint.check.rewrite import rewritten
from blueprint.finding import Edit, Ref
from tests.check.test_patches import EXAMPLES, PLACE, rules

PACK = SchemaPack.shipped()
COHORT = Ref("kueue.x-k8s.io", "Cohort", "", "a")


def edit(op: str, path: str, value: object = None, source: str = "") -> Edit:
    return Edit(op, path, "" if value is None else json.dumps(value), source)


BLOCK = """\
# first
apiVersion: kueue.x-k8s.io/v1beta2   # version
kind: Cohort
metadata:
  name: a
  labels:
    x: "1"  # kept
spec:
  # about the parent
  parent: all  # why
  list:
  - name: two   # second
    q: 2
  - name: one
    q: 1
other:
  deep:
  - 1
"""


@pytest.mark.parametrize(
    ("edits", "old", "new"),
    [
        ([edit("move", "/spec/parentName", source="/spec/parent")], "  parent: all", "  parentName: all"),
        ([edit("replace", "/metadata/labels/x", "b c")], 'x: "1"  # kept', 'x: "b c"  # kept'),
        ([edit("replace", "/metadata/name", "a")], "", ""),
        ([edit("remove", "/spec/parent")], "  parent: all  # why\n", ""),
        ([edit("remove", "/metadata/labels")], '  labels:\n    x: "1"  # kept\n', ""),
        ([edit("add", "/spec/more", {"a": True})], "  # about", "  # about"),
        (
            [edit("replace", "/spec/list", [{"name": "one", "q": 1}, {"name": "two", "q": 2}])],
            "  - name: two   # second\n    q: 2\n  - name: one\n    q: 1\n",
            "  - name: one\n    q: 1\n  - name: two   # second\n    q: 2\n",
        ),
    ],
)
def test_a_block(edits: list[Edit], old: str, new: str) -> None:
    text = rewritten(BLOCK, COHORT, edits)
    assert text is not None
    if edits[0].op == "add":
        assert "  more: {a: true}\n" in text
        assert text.replace("  more: {a: true}\n", "") == BLOCK
    else:
        assert text == BLOCK.replace(old, new, 1)


def test_a_block_is_moved_below_another() -> None:
    text = rewritten(BLOCK, COHORT, [edit("move", "/spec/other", source="/other")])
    assert text is not None
    assert text.endswith("    q: 1\n  other:\n    deep:\n    - 1\n")


FLOW = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: a, namespace: x}  # here
spec: {parent: all, r: [{name: b, q: 2}, {name: a, q: 1}]}
"""


@pytest.mark.parametrize(
    ("edits", "old", "new"),
    [
        ([edit("move", "/spec/parentName", source="/spec/parent")], "{parent:", "{parentName:"),
        ([edit("remove", "/metadata/namespace")], ", namespace: x", ""),
        ([edit("add", "/spec/x", 1)], "{parent", "{x: 1, parent"),
        (
            [edit("replace", "/spec/r", [{"name": "a", "q": 1}, {"name": "b", "q": 2}])],
            "[{name: b, q: 2}, {name: a, q: 1}]",
            "[{name: a, q: 1}, {name: b, q: 2}]",
        ),
    ],
)
def test_a_flow_on_one_line(edits: list[Edit], old: str, new: str) -> None:
    ref = Ref("kueue.x-k8s.io", "Cohort", "x", "a")
    assert rewritten(FLOW, ref, edits) == FLOW.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.replace("parent: all", "parent: &p all") + "again: *p\n",
        BLOCK + "---\n" + BLOCK,
        BLOCK.replace("  parent: all  # why", "  parent:\n    all"),
        '{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort",\n "metadata": {"name": "a"},\n'
        ' "spec": {"parent":\n "all"}}\n',
    ],
)
def test_what_is_not_known_stays_or_comes_out_right(text: str) -> None:
    reading = Reading()
    read_bytes(text.encode(), "a.yaml", reading)
    edits = [edit("replace", "/spec/parent", "none")]
    result = rewritten(text, COHORT, edits)
    if result is not None:
        after = Reading()
        read_bytes(result.encode(), "a.yaml", after)
        assert after.manifests[0].body == apply(reading.manifests[0].body, edits)


@pytest.mark.parametrize("code", sorted(MAKERS))
def test_the_examples_of_rules(code: str) -> None:
    text = EXAMPLES.get(code) or rules()[code].bad
    text = text.replace("spec: {project: default}\n", "spec:\n  project: default\n")
    reading = Reading()
    read_bytes(text.encode(), PLACE, reading)
    objects = [*reading.manifests, *reading.aside]
    found = patched(validate(objects, PACK, tree_rules=tree_rules()).findings, objects)
    done = 0
    for finding in found:
        if finding.code == code and finding.patch and finding.object:
            changed = rewritten(text, finding.object, finding.patch)
            if changed is not None:
                text, done = changed, done + 1
    assert done
    reading = Reading()
    read_bytes(text.encode(), PLACE, reading)
    after = validate([*reading.manifests, *reading.aside], PACK, tree_rules=tree_rules()).findings
    assert code not in {finding.code for finding in after}
