"""Names: valid for what they name, kept where they are valid, never the same for two texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from blueprint.finding import Ref
from blueprint.render.names import file_name, file_names, label_key, label_value, name, part_name, port_name

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"

KINDS = {
    "Namespace": (LABEL, 63),
    "Service": (LABEL_1035, 63),
    "Deployment": (LABEL, 63),
    "StatefulSet": (LABEL, 52),
    "CronJob": (LABEL, 52),
    "PyTorchJob": (LABEL_1035, 51),
    "TrainJob": (LABEL_1035, 45),
    "LocalQueue": (LABEL, 63),
    "ScaledObject": (LABEL, 54),
    "PriorityClass": (SUBDOMAIN, 253),
    "ConfigMap": (SUBDOMAIN, 253),
    "SomethingNew": (SUBDOMAIN, 253),
}

texts = st.one_of(st.text(max_size=300), st.text("abcXYZ019-._/: é", max_size=90), st.from_regex(rf"\A{SUBDOMAIN}\Z"))
kinds = st.sampled_from(sorted(KINDS))


@given(kinds, texts)
@example("PriorityClass", "system-node-critical")
@example("Namespace", "")
@example("Service", "9" * 80)
@example("ConfigMap", "../../etc/passwd")
@example("ConfigMap", "\ud800")
def test_a_name_is_valid_for_its_kind(kind, text):
    form, length = KINDS[kind]
    made = name(kind, text)
    assert re.fullmatch(form, made)
    assert len(made) <= length
    assert not (kind == "PriorityClass" and made.startswith("system-"))
    assert name(kind, made) == made


@given(kinds, st.from_regex(rf"\A{LABEL_1035}\Z", fullmatch=True))
def test_a_short_valid_name_is_kept(kind, text):
    assume(len(text) <= 45 and not text.startswith("system-"))
    assert name(kind, text) == text


@given(kinds, texts, texts)
@example("CronJob", "a" * 60, "a" * 61)
@example("ConfigMap", "Team", "team")
@example("ConfigMap", "a_b", "a-b")
def test_two_texts_have_two_names(kind, one, other):
    assume(one != other)
    assert name(kind, one) != name(kind, other)
    assert label_value(one) != label_value(other)
    assert port_name(one) != port_name(other)
    assert file_name(kind, one) != file_name(kind, other)


def test_a_long_name_keeps_its_beginning():
    made = name("CronJob", "nightly-evaluation-of-the-reranker", "against-the-golden-questions")
    assert made.startswith("nightly-evaluation-of-the-reranker-against-")
    assert 44 < len(made) <= 52


def test_names_never_change():
    """A changed name is a new object in every cluster: these texts are fixed."""
    assert name("Namespace", "Search AI") == "search-ai-" + name("Namespace", "Search AI")[-8:]
    assert [name("Service", "9lives"), port_name("http-metrics-for-vllm"), label_value("a b")] == [
        "x-9lives-xsdhgvw6",
        "http-m-ux2nrqrv",
        "a-b-zbuhucfk",
    ]


def test_parts_are_joined_and_empty_ones_left_out():
    assert name("ClusterQueue", "search-ai", "", "h100") == "search-ai-h100"


@given(kinds, texts, st.integers(0, 40))
def test_reserved_characters_stay_free(kind, text, reserve):
    assert len(name(kind, text, reserve=reserve)) <= (63 - reserve if reserve else 253)


def test_reserving_too_much_is_refused():
    with pytest.raises(ValueError, match="leave no room"):
        name("JobSet", "a", reserve=60)


@given(texts)
@example("8000")
@example("a--b")
@example("-")
def test_port_and_part_names(text):
    port = port_name(text)
    assert re.fullmatch(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*", port)
    assert len(port) <= 15
    assert port_name(port) == port
    assert re.fullmatch(LABEL, part_name(text))
    assert len(part_name(text)) <= 63


@given(texts)
def test_label_values(text):
    made = label_value(text)
    assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", made)
    assert len(made) <= 63
    assert label_value(made) == made
    assert bool(made) == bool(text)


@pytest.mark.parametrize("text", ["", "NVIDIA-H100-80GB-HBM3", "v1.2_3", "a" * 63])
def test_valid_label_values_are_kept(text):
    assert label_value(text) == text


@given(texts, texts)
def test_label_keys(prefix, text):
    key = label_key(prefix, text)
    assert re.fullmatch(rf"(?:{SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", key)
    assert key.count("/") == bool(prefix)
    assert len(key.partition("/")[0]) <= 253
    assert len(key.rpartition("/")[2]) <= 63


@given(texts, texts)
@example("../../etc/passwd", "")
@example("..", ".")
@example("CON", "a" * 253)
def test_a_file_name_stays_in_its_folder(text, more):
    made = file_name("ConfigMap", text, more)
    assert re.fullmatch(r"[a-z0-9][-a-z0-9_.]*\.yaml", made)
    assert ".." not in made
    assert len(made) <= 205


def test_file_names_of_ordinary_objects():
    assert file_name("Deployment", "chat-70b") == "deployment-chat-70b.yaml"
    assert file_name("ConfigMap", "a.b") == "configmap-a.b.yaml"
    assert file_name("ConfigMap", "a", "team-a") == "configmap-a_team-a.yaml"


def test_files_of_one_folder_are_told_apart():
    lone = Ref("apps", "Deployment", "chat", "a")
    twins = [Ref("", "ConfigMap", "one", "a"), Ref("", "ConfigMap", "two", "a")]
    gateways = [Ref("gateway.networking.k8s.io", "Gateway", "x", "g"), Ref("networking.istio.io", "Gateway", "x", "g")]
    found = file_names([lone, *twins, *gateways])
    assert found[lone] == "deployment-a.yaml"
    assert found[twins[0]] == "configmap-a_one_.yaml"
    assert len(set(found.values())) == 5
    assert file_names([*reversed(gateways), *reversed(twins), lone]) == found
    assert file_names([lone, lone]) == {lone: "deployment-a.yaml"}
