"""Credentials are known by their forms and names; what only refers to one is none."""

from __future__ import annotations

import pytest

from blueprint.plaintext import by_form, by_name

# Put together here, so that no file of the repository holds the form itself.
FORMS = {
    "hf" + "_" + "aB3" * 11 + "x": "a token of Hugging Face",
    "gh" + "p_" + "a1B2" * 9: "a token of GitHub",
    "glpat" + "-" + "a1B2" * 5: "a token of GitLab",
    "AKI" + "A" + "A1B2" * 4: "an access key of AWS",
    "-----BEGIN RSA " + "PRIVATE KEY-----": "a private key",
    "--url=https://bot:hunter22@git.example.com/a": "a password",
}


@pytest.mark.parametrize(("value", "what"), FORMS.items())
def test_a_form_tells_what_it_is(value: str, what: str) -> None:
    assert by_form(value) == what
    assert by_form(f"--with={value}") == what


@pytest.mark.parametrize(
    "value",
    [
        "hf_hub",
        "ghp_short",
        "https://git.example.com/a.git",
        "git@git.example.com:team/a.git",
        "ssh://git@git.example.com/a.git",
        "https://bot:$(TOKEN)@git.example.com/a.git",
        "https://bot:${TOKEN}@git.example.com/a.git",
        "https://bot:<password>@git.example.com/a.git",
        "https://git.example.com/a@v1:x",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_only_looks_like_one_is_none(value: str) -> None:
    assert by_form(value) == ""


@pytest.mark.parametrize("name", ["HF_TOKEN", "DB_PASSWORD", "aws_secret_access_key", "OPENAI_API_KEY", "SECRET"])
def test_a_name_makes_a_literal_value_doubtful(name: str) -> None:
    assert by_name(name, "correct-horse-battery")
    for value in ("", "true", "none", "$(X)", "${TOKEN}", "/path/to/token", "./token", "file:///a/b", "{{ token }}"):
        assert not by_name(name, value), value
    assert not by_name(name, "changeme-please")
    assert not by_name(name, "123456")


@pytest.mark.parametrize("name", ["MAX_TOKENS", "HF_TOKEN_PATH", "TOKEN_FILE", "PASSWORD_POLICY", "SECRET_NAME", "KEY"])
def test_other_names_say_nothing(name: str) -> None:
    assert not by_name(name, "correct-horse-battery")
