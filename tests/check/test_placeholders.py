"""Placeholders leave fields unknown, never wrong; templates keep their objects as far as they can be read."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.schemas import SchemaPack
from blueprint.catalog.tables import table
from blueprint.check import validate
from blueprint.check.placeholders import is_placeholder, maybe, template, unknown_fields
from blueprint.check.read import Reading, read_bytes
from blueprint.finding import Severity
from blueprint.objects import EVERYTHING

PACK = SchemaPack.shipped()


def of(text: str, file: str = "a.yaml") -> Reading:
    reading = Reading()
    read_bytes(textwrap.dedent(text).encode(), file, reading)
    return reading


def codes(text: str) -> set[str]:
    """Codes of what is wrong, without notes."""
    reading = of(text)
    findings = [*reading.findings, *validate(reading.manifests, PACK).findings]
    return {finding.code for finding in findings if finding.severity is not Severity.NOTE}


@pytest.mark.parametrize(
    "text",
    [
        "${NAME}", "a-${NAME:-x}-b", "$NAME", "${{ NAME }}", "{{ name }}", "x{{name}}", "{% name %}", "@NAME@",
        "@@NAME@@", "__NAME__", "%%NAME%%", "#{Name}#", "<name>", "<your name here>", "CHANGEME", "change-REPLACE_ME",
        "registry.example.com/<team>/x:<tag>", "registry.example.com/x:REPLACE-THIS",
        "{IMAGE}", "e2e-$$name$$", "HELMSUBST_REPLICAS", "ko://example.com/cmd",
        "ENC[AES256_GCM,data:p1bJ,iv:a=,tag:b=,type:str]", "FILLED BY THE OPERATOR", "FILLED_BY_OPERATOR",
        "registry.example.com/YOUR_TEAM/x:1", "YOUR-PROJECT", "REPLACE_WITH_TOKEN",
    ],
)  # fmt: skip
def test_placeholders_are_known(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        "$(NAME)", "$1", "${1}", "$1:${2}", "a$", "cost $5", "a@example.com", "__meta_kubernetes_pod_name", "100%",
        "a < b", "x<y and y>z", "#1", "$labels", "^[a-z]+$", "foo__BAR", "changes", "replaced", "%d", "((a))", "-> <-",
        "{name}", "a$$", "filled by the operator", "your-project", "replace with care", "FILLED BY THE OPERATOR later",
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_a_value(text: str) -> None:
    assert not is_placeholder(text)


@given(st.text(alphabet='${}<>@_%#AX-a {."', max_size=12))
def test_the_quick_look_misses_no_form(text: str) -> None:
    patterns = [
        row["pattern"] if "inside" in row else rf"\A\s*(?:{row['pattern']})\s*\Z"
        for row in table("placeholders")["forms"]
    ]
    assert is_placeholder(text) == any(re.search(pattern, text) for pattern in patterns)
    assert maybe(text) or not is_placeholder(text)


POD = """\
    apiVersion: v1
    kind: Pod
    metadata: {{name: web, namespace: {namespace}}}
    spec:
      {extra}
      containers:
      - name: web
        image: {image}
        command: {command}
        resources:
          limits: {{cpu: {cpu}}}
    """


def pod(
    namespace: str = "shop",
    image: str = "registry.example.com/web:1",
    command: str = "[web]",
    cpu: str = "1",
    extra: str = "hostNetwork: false",
) -> str:
    return POD.format(namespace=namespace, image=image, command=command, cpu=cpu, extra=extra)


def test_a_pod_without_placeholders_is_wrong_where_it_is_wrong() -> None:
    assert codes(pod()) == set()
    assert codes(pod(cpu="much")) == {"SCH107"}
    assert codes(pod(namespace="Not_Good")) == {"NAM103"}


@pytest.mark.parametrize("form", ["${X}", "'{{ x }}'", "{{ x }}", "<x>", "$NAME", "__NAME__"])
def test_nothing_is_said_of_a_field_with_a_placeholder(form: str) -> None:
    assert codes(pod(cpu=form, namespace=form, image=form)) == set()
    assert codes(pod(extra=f"terminationGracePeriodSeconds: {form}")) == set()


def test_the_rest_of_the_object_is_judged() -> None:
    assert codes(pod(image="${IMAGE}", extra="hostNetwrk: true")) == {"SCH104"}
    assert codes(pod(image="${IMAGE}", extra="hostNetwrk: ${X}")) == {"SCH104"}
    assert codes(pod(image="${IMAGE}", cpu="much")) == {"SCH107"}


def test_a_rule_that_reads_an_unknown_field_is_silent() -> None:
    queue = """\
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ClusterQueue
        metadata: {{name: a}}
        spec:
          cohortName: a
          namespaceSelector: {{}}
          resourceGroups:
          - coveredResources: [cpu]
            flavors: [{{name: f, resources: [{{name: {resource}, nominalQuota: 1}}]}}]
          fairSharing: {{weight: "{weight}"}}
        """
    assert "SCH107" in codes(queue.format(resource="cpu", weight="x y"))
    assert codes(queue.format(resource="${R}", weight="${W}")) == set()


def test_shell_variables_of_a_script_are_values_and_others_are_not() -> None:
    script = of(pod(command='[sh, -c, "exec web --port ${PORT} $HOME"]')).manifests[0]
    assert not script.unknown
    assert of(pod(command='["${SERVER}"]')).manifests[0].unknown == {("spec", "containers", 0, "command", 0)}


def test_keys_with_placeholders_are_unknown() -> None:
    (manifest,) = of("""\
        apiVersion: v1
        kind: Service
        metadata: {name: a, labels: {"${KEY}": x, b: y}}
        """).manifests
    assert manifest.unknown == {("metadata", "labels")}


def test_what_a_controller_fills_in_is_a_value() -> None:
    alert = """\
        apiVersion: monitoring.coreos.com/v1
        kind: PrometheusRule
        metadata: {name: a, namespace: b}
        spec:
          groups:
          - name: a
            rules: [{alert: A, expr: 'up{job="${JOB}"} == 0', annotations: {summary: "{{ $labels.pod }} {{ define }}"}}]
        """
    (manifest,) = of(alert).manifests
    assert manifest.unknown == {("spec", "groups", 0, "rules", 0, "expr")}


def test_data_of_a_config_map_is_whatever_it_is_but_its_name_is_not() -> None:
    reading = of("""\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${NAME}"}
        data:
          a: "{{ .Release.Name }} ${X}"
          template: |
            {{ define "x" }}{{ if y }}z{{ end }}{{ end }}
        """)
    assert reading.manifests[0].unknown == {("metadata", "name")}
    assert not reading.findings


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_no_controller_fills_in_the_name_of_its_own_object(kind: str) -> None:
    text = f"""
        apiVersion: v1
        kind: {kind}
        metadata:
          name: '{{{{ template "fullname" . }}}}'
          namespace: '{{{{ .Release.Namespace }}}}'
          labels: {{release: '{{{{ .Release.Name }}}}'}}
        """
    assert not codes(text)


@pytest.mark.parametrize(
    "line",
    ["  name: {{ .Values.name }}", "  name: {{ include \"a.b\" . | trunc 63 }}", "  name: a-{{ x }}  # {{ y }}",
     "  name: '{{ .Values.name }}'", "  name: {{ \"{{\" }} y {{ \"}}\" }}"],
)  # fmt: skip
def test_actions_in_the_place_of_a_value_leave_it_unknown(line: str) -> None:
    reading = of(
        f"apiVersion: v1\nkind: Service\nmetadata:\n{line}\n  namespace: x\nspec:\n  ports:\n  - port: 80\n  prts: 1\n"
    )
    (manifest,) = reading.manifests
    assert manifest.unknown == {("metadata", "name")}
    assert manifest.ref.namespace == "x"
    assert manifest.body["metadata"]["name"] in line.replace("\\", "")
    assert [f.code for f in validate(reading.manifests, PACK).findings] == ["SCH104"]


HELM = """\
    {{- if .Values.on }}
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: web
      labels: {{- include "web.labels" . | nindent 4 }}
    spec:
      {{- if .Values.replicas }}
      replicas: {{ .Values.replicas }}
      {{- else }}
      replicas: 1
      {{- end }}
      {{- with .Values.x }}
      nonsense: {{ toYaml .
        | nindent 8 }}
      {{- end }}
    {{- end }}
    """


def test_of_a_template_with_blocks_the_identity_is_known() -> None:
    reading = of(HELM)
    (manifest,) = reading.manifests
    assert manifest.unknown == EVERYTHING
    assert (str(manifest.ref), manifest.source.line) == ("Deployment.apps web", 2)
    assert reading.templates == ["a.yaml"]
    assert not reading.findings
    assert codes(HELM) == set()


def test_of_a_template_that_cannot_be_read_the_kind_is_known() -> None:
    reading = of("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  {{- range x }}\n a: [\n{{ end }}\n")
    (manifest,) = reading.manifests
    assert (manifest.kind, manifest.unknown) == ("ConfigMap", EVERYTHING)
    assert validate(reading.manifests, PACK).findings == []


@pytest.mark.parametrize(
    "text",
    ["{{ template }}\n", "{% include x %}\n", "kind: {{ .Kind }}\napiVersion: v1\nmetadata: {}\n", "a: {{ b }}: ["],
)
def test_what_is_no_object_before_it_is_filled_in_is_counted(text: str) -> None:
    reading = of(text)
    assert not reading.manifests
    assert not reading.findings
    assert reading.counts.templates + reading.counts.foreign <= 1


def test_lists_and_several_documents_may_be_templates() -> None:
    reading = of("""\
        {{- range .Values.names }}
        ---
        apiVersion: v1
        kind: List
        items:
        - apiVersion: v1
          kind: Service
          metadata: {name: "{{ . }}"}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: {{ . }} }
        {{- end }}
        """)
    assert [(m.kind, m.source.line) for m in reading.manifests] == [("Service", 6), ("Pod", 10)]


@given(st.text(alphabet='{}%#"`\\ \nx:-', max_size=60))
def test_any_template_is_read_with_its_lines(text: str) -> None:
    made = template(text)
    assert made.text.count("\n") == text.count("\n")
    assert "\ue000" not in made.filled(made.text)
    of(text)


@pytest.mark.parametrize("piece", ["{{", '{{"', '{{"\\"', "{{`", "{%", "{#", "{{ x", '"{{', "{{ \n"])
def test_openings_without_an_end_cost_little(piece: str) -> None:
    text = piece * 20_000
    assert template(text).actions == ()


def test_an_unknown_name_may_be_the_one_that_is_missing() -> None:
    from blueprint.check.graph import Graph

    known = of("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").manifests
    unknown = of("apiVersion: v1\nkind: Namespace\nmetadata: {name: '${TEAM}'}\n", "b.yaml").manifests
    assert Graph(known).closed("Namespace")
    assert not Graph(known + unknown).closed("Namespace")


def test_fields_are_found_in_any_body() -> None:
    assert unknown_fields({"apiVersion": "v1", "kind": "Pod", "spec": [{"a": "${X}"}, 1, None]}) == {("spec", 0, "a")}


def test_what_sops_encrypts_is_unknown_and_what_it_adds_goes() -> None:
    text = """
        apiVersion: v1
        kind: Secret
        metadata: {name: a}
        data: {password: "ENC[AES256_GCM,data:p1bJ,iv:a=,tag:b=,type:str]"}
        sops: {age: [], mac: "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]", version: 3.9.0}
        """
    assert not codes(text)
    assert codes(text.replace("mac:", "hash:")) == {"SCH104"}


@pytest.mark.parametrize("line", ["__MOUNTS__", "  @MOUNTS@", "%%MOUNTS%%"])
def test_a_line_for_which_a_script_puts_others_makes_a_template(line: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n{line}\n  - name: b\n"
    reading = Reading()
    read_bytes(text.encode(), "a.yaml", reading)
    assert (reading.counts.templates, reading.findings, reading.templates) == (1, [], ["a.yaml"])
