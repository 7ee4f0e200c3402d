"""The forms of names and texts that Kubernetes accepts: each function says what is wrong, "" where nothing is.

Sources: k8s.io/apimachinery@v0.35.4 pkg/util/validation/validation.go, pkg/api/validate/content,
pkg/api/validation/path.
"""

from __future__ import annotations

import re
from functools import lru_cache

from blueprint.naming import LABEL, LABEL_1035, QUALIFIED, SUBDOMAIN

_UNDERSCORED = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*")
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_PERCENT = re.compile(r"[0-9]+%")

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_TOO_LONG_LABEL = f"must be no more than {LABEL_LENGTH} characters"
_TOO_LONG_SUBDOMAIN = f"must be no more than {SUBDOMAIN_LENGTH} characters"


@lru_cache(maxsize=1 << 14)
def label_1123(text: str) -> str:
    """A DNS label: namespaces, containers, volumes, ports of Services."""
    if len(text) > LABEL_LENGTH:
        return _TOO_LONG_LABEL
    if LABEL.fullmatch(text):
        return ""
    return "must be lower-case letters, digits and '-', with a letter or digit at both ends"


@lru_cache(maxsize=1 << 14)
def label_1035(text: str) -> str:
    """A DNS label that starts with a letter: Services."""
    if len(text) > LABEL_LENGTH:
        return _TOO_LONG_LABEL
    if LABEL_1035.fullmatch(text):
        return ""
    return "must be lower-case letters, digits and '-', starting with a letter and ending with a letter or digit"


@lru_cache(maxsize=1 << 14)
def subdomain(text: str) -> str:
    """A DNS name: the name of most objects."""
    if len(text) > SUBDOMAIN_LENGTH:
        return _TOO_LONG_SUBDOMAIN
    if SUBDOMAIN.fullmatch(text):
        return ""
    return "must be lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"


def subdomain_underscored(text: str) -> str:
    """A DNS name with underscores: search domains."""
    if len(text) > SUBDOMAIN_LENGTH:
        return _TOO_LONG_SUBDOMAIN
    return "" if _UNDERSCORED.fullmatch(text) else "must be lower-case letters, digits, '-', '_' and '.'"


@lru_cache(maxsize=1 << 10)
def path_segment(text: str) -> str:
    """What fits between two slashes of a URL: names of Roles and bindings."""
    if text in (".", ".."):
        return f"must not be {text!r}"
    for bad in "/%":
        if bad in text:
            return f"must not contain {bad!r}"
    return ""


@lru_cache(maxsize=1 << 14)
def qualified_name(text: str) -> str:
    """The key of a label: an optional DNS name and a slash, then a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or "/" in prefix):
        return "must be a name, or a DNS name, one '/' and a name"
    if slash and (problem := subdomain(prefix)):
        return f"prefix {problem}"
    if len(name) > LABEL_LENGTH:
        return f"name {_TOO_LONG_LABEL}"
    if not QUALIFIED.fullmatch(name):
        return "name must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return ""


@lru_cache(maxsize=1 << 14)
def annotation_key(text: str) -> str:
    """The key of an annotation: as that of a label, upper case allowed in the prefix."""
    return qualified_name(text.lower())


@lru_cache(maxsize=1 << 14)
def label_value(text: str) -> str:
    """The value of a label."""
    if len(text) > LABEL_LENGTH:
        return _TOO_LONG_LABEL
    if not text or QUALIFIED.fullmatch(text):
        return ""
    return "must be empty, or letters, digits, '-', '_' and '.', with a letter or digit at both ends"


@lru_cache(maxsize=1 << 12)
def port_name(text: str) -> str:
    """The name of a container's port (RFC 6335)."""
    if len(text) > 15:
        return "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(text) or text[0] == "-" or text[-1] == "-" or "--" in text:
        return "must be lower-case letters, digits and single '-' between them"
    return "" if any("a" <= letter <= "z" for letter in text) else "must contain a letter"


@lru_cache(maxsize=1 << 12)
def config_key(text: str) -> str:
    """A key of a ConfigMap or Secret."""
    if len(text) > SUBDOMAIN_LENGTH:
        return _TOO_LONG_SUBDOMAIN
    if not _CONFIG_KEY.fullmatch(text):
        return "must be letters, digits, '-', '_' and '.'"
    return "must not be '.' or start with '..'" if text == "." or text.startswith("..") else ""


@lru_cache(maxsize=1 << 12)
def env_name(text: str) -> str:
    """The name of an environment variable, as relaxed since Kubernetes 1.34."""
    return "" if _ENV_NAME.fullmatch(text) else "must be printable ASCII without '='"


def header_name(text: str) -> str:
    """The name of an HTTP header."""
    return "" if _HEADER.fullmatch(text) else "must be letters, digits and '-'"


def percent(text: str) -> bool:
    """Whether a text is a share such as `25%`."""
    return _PERCENT.fullmatch(text) is not None


def relative_path(text: str) -> str:
    """A path below some folder."""
    if text.startswith("/"):
        return "must be a relative path"
    return "must not contain '..'" if ".." in text.split("/") else ""


def local_path(text: str) -> str:
    """A relative path that does not start with `..`, as a file in a volume."""
    return relative_path(text) or ("must not start with '..'" if text.startswith("..") else "")
