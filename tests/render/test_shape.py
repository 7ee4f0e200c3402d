"""The scan of template text: what it refuses, and the near misses that it must let pass."""

from __future__ import annotations

import pytest

from blueprint.render.sandbox import Sandbox
from blueprint.render.shape import faults


def scan(text):
    return [(fault.code, fault.line) for fault in faults(Sandbox({}).lex(text))]


BAD = [
    ('a: "x-{{ a }}"', "TPL109", 1),
    ("a: 1\nb: '{{ a }}'", "TPL109", 2),
    ("a: 'it''s {{ a }}'", "TPL109", 1),
    ('a: "say \\"{{ a }}\\""', "TPL109", 1),
    ('a: "one\n  two {{ a }}"', "TPL109", 2),
    ("a: |\n  one\n  {{ a }}", "TPL109", 3),
    ("a: >-\n  one {{ a }}", "TPL109", 2),
    ("a: |2-\n   {{ a }}", "TPL109", 2),
    ("- |\n {{ a }}", "TPL109", 2),
    ("|\n {{ a }}", "TPL109", 2),
    ("a: >1-\n  b\n # {{ a }}", "TPL109", 3),
    ("- a: |1 # c\n\n     b\n   {{ a }}", "TPL109", 4),
    ("- a: | # comment\n\n    one\n    {{ a }}", "TPL109", 4),
    ("a: x-{{ a }}", "TPL109", 1),
    ("a: {{ a }}-x", "TPL109", 1),
    ("a: {{ a }}{{ b }}", "TPL109", 1),
    ("a: {{ a }}:8080", "TPL109", 1),
    ("a: [x{{ a }}]", "TPL109", 1),
    ("a: http://{{ host }}/x", "TPL109", 1),
    ("x-{{ a }}: 1", "TPL109", 1),
    ("a: x{% if b %}{{ b }}{% endif %}", "TPL109", 1),
    ("{% if true %}\n{% if true %}\na: '{{ a }}'\n{% endif %}\n{% endif %}", "TPL109", 3),
    ("{% for a in as %}\n- '{{ a }}'\n{% endfor %}", "TPL109", 2),
    ('a: 1\n:#"k": |\n  {{ a }}', "TPL109", 3),
    ("a: >\n  {% if x %}  b: # {% endif %}{{ c }}", "TPL109", 2),
    ("a: yes", "TPL110", 1),
    ("a: 1\non: [push]", "TPL110", 2),
    ("a: [1, no]", "TPL110", 1),
    ("a: {b: Off}", "TPL110", 1),
    ("- y", "TPL110", 1),
    ("a: 0777", "TPL110", 1),
    ("a: 0o17", "TPL110", 1),
    ("a: 0x1F", "TPL110", 1),
    ("a: 1_000", "TPL110", 1),
    ("a: 1e3", "TPL110", 1),
    ("a: 1:30", "TPL110", 1),
    ("a: +1", "TPL110", 1),
    ("a: .5", "TPL110", 1),
    ("a: .inf", "TPL110", 1),
    ("a: 2026-11-30", "TPL110", 1),
    ("a: =", "TPL110", 1),
    ("<<: {{ a }}", "TPL110", 1),
    ("a: 12345678901234567890", "TPL110", 1),
    ("a: &x {{ b }}", "TPL111", 1),
    ("a: *x", "TPL111", 1),
    ("a: !!binary aGk=", "TPL111", 1),
    ("a: !Ref b", "TPL111", 1),
    ("\ta: 1", "TPL112", 1),
    ("a:\n\t- b", "TPL112", 2),
    ("a: 1\t# c", "TPL112", 1),
]

GOOD = [
    "a: {{ a }}\nb: [{{ a }}, {{ b }}]\nc: {d: {{ a }}, {{ b }}: 1}",
    "{{ a }}: {{ b }}\n- {{ a }}\n- - {{ b }}",
    "a: {{ a }} # a comment with {{ b }}, yes, 0777 and 'quotes",
    "a: {{ a }}{% if b %}{% endif %}",
    "a: {% if b %}{{ b }}{% else %}{{ c }}{% endif %}",
    "a: [{% for b in bs %}{{ b }}, {% endfor %}]",
    "{{ a }}",
    "a: '0777'\nb: \"yes\"\nc: 'it''s on'",
    "a: true\nb: false\nc: null\nd: ~\ne: 0\nf: -1\ng: 1.5\nh: 8080",
    "a: v1\nb: apps/v1\nc: 1.35.4\nd: 64Gi\ne: 100m\nf: 10.0.0.0/8\ng: 50%\nh: --flag\ni: -c\nj: None\nk: 10m",
    "a: don't stop\nb: a: {{ b }}".replace("b: a:", "b:"),
    "a: x #{{ b }}\nc: x#y",
    "a: |\n  yes\n  0777\n  'open\n  \ttab\nb: {{ b }}",
    "a: |\n    one\n\n    two\n  \nb: {{ b }}",
    "- a: |\n    one\n  b: {{ b }}\n- |\n one\n- {{ b }}",
    "a: >-\n{% if true %}\n  one\n{% endif %}\nb: {{ b }}",
    'a: "open\n  and closed" # {{ b }}\nb: {{ b }}',
    "a: {b: c,\n    d: {{ b }}}\ne: {{ b }}",
    "---\na: {{ b }}",
    "a: {{ '\\'\"' }}\nb: {{ b }}",
    "{# '{{ a }}' #}\na: 1",
    "{% raw %}\na: '{{ a }}'\n{% endraw %}",
    "a:\n  - b # y\n  - c d, e f\n  - -x\n  - ?x",
    "a: > b\nc: 1".replace("> b", "x > b"),
    "a: x & y * z ! w\nb: a|b",
    "kubernetes.io/metadata.name: {{ b }}\nJob.batch: 5",
]


@pytest.mark.parametrize(("text", "code", "line"), BAD)
def test_refused(text, code, line):
    assert scan(text) == [(code, line)]


@pytest.mark.parametrize("text", GOOD)
def test_let_pass(text):
    assert scan(text) == []


def test_every_fault_is_told_once():
    assert scan("a: yes\nb: '{{ a }} {{ b }}'\nc: [no, no]\n") == [("TPL110", 1), ("TPL109", 2), ("TPL110", 3)]
