"""Canonical YAML: the same object gives the same bytes, and every parser in use reads it back equal.

The readers are PyYAML (YAML 1.1), the Rust parser of `yaml_rs` (YAML 1.2) and the API server's `sigs.k8s.io/yaml`
(`sigs.k8s.io/yaml@v1.6.0 goyaml.v2`, YAML 1.1 with its own booleans). A string is written plain only where all three
read a string; tests hold that. Keys are sorted by code point, lists stand at the indent of their key, and there are no
anchors, tags, comments or folded lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

# The deepest object that the catalog knows (a CRD that embeds a pod) has about 40 levels.
_MAX_DEPTH = 200
# libyaml and PyYAML look for the colon of a simple key within 1,024 characters; a longer key needs the `? ` form.
_MAX_SIMPLE_KEY = 1000
# Asked for every value: a union of types would be made anew each time.
_LISTS, _NUMBERS = (list, tuple), (int, float)
# The API server reads numbers as int64, uint64 or, losing digits, as a float.
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1

# Plain text: printable ASCII that starts like a word, a path, an option or a shell variable; no `: ` and no ` #` in it.
# After a digit it needs a letter that no number or date has (64Gi, 100m), a slash (10.0.0.0/8) or two dots (1.35.4).
_PLAIN = re.compile(
    r"(?:[A-Za-z/$(]|\.[A-Za-z/]|_+[A-Za-z]|--?[A-Za-z]"
    r"|[0-9](?=[^:]*[G-NP-SUVWYg-npq-suvwy/%])|[0-9]+\.[0-9]+\.(?=[0-9]))"
    r"(?:[!-9;-~]|:(?=[!-~])|\ (?=[!-\"$-~]))*",
)
# Words that some reader takes for a boolean, a null or a number, in any case of letters.
_WORD = re.compile(r"y|n|yes|no|on|off|true|false|null|[+-]?\.?(?:inf|nan|infinity)", re.IGNORECASE | re.ASCII)
_LONGEST_WORD = len("-.infinity")
# Numbers that every reader takes for the same number; a text that begins like one and is neither is of two meanings.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?", re.ASCII)
_NUMERIC_START = tuple("0123456789+-.")

# Written as they are between quotes. The rest is escaped: controls, spaces that look like others, line separators,
# marks that turn the direction of text, private use, everything without a glyph. The set is written down, not asked
# of `unicodedata`, whose answer depends on the version of Python.
_READABLE = (
    "\u0020-\u007e\u00a1-\u00ac\u00ae-\u05ff\u0606-\u061b\u061d-\u06dc\u06de-\u070e\u0710-\u088f\u0898-\u08e1"
    "\u08e3-\u167f\u1681-\u180a\u1810-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fef\u3001-\u3163\u3165-\ud7ff"
    "\uf900-\ufdff\ufe10-\ufefe\uff01-\uff9f\uffa1-\uffef\U0001f000-\U0001faff\U00020000-\U0003fffd"
)
_UNREADABLE = re.compile(f"[^{_READABLE}]")
_SHORT_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# A literal block holds readable lines, the first of which starts with a printed character; it ends with one line feed
# or none. Trailing blanks and tabs would be invisible in a review.
_BLANK_END = re.compile(r" (?:\n|\Z)")


def plain(text: str) -> bool:
    """Whether every reader takes the unquoted text for this very string."""
    if len(text) <= _LONGEST_WORD and _WORD.fullmatch(text):
        return False
    return _PLAIN.fullmatch(text) is not None


def ambiguous(text: str) -> bool:
    """Whether readers disagree about the unquoted text: `yes`, `0777`, `1e3`, `1:30`, `2026-11-30`, `=`, `<<`.

    Numbers in the form that `emit` writes, `true`, `false` and `null` are the same to all, and so is ordinary text.
    """
    if _WORD.fullmatch(text):
        return text.lower() not in ("true", "false", "null")
    return text in ("=", "<<") or (text[:1] in _NUMERIC_START and not plain(text) and not _NUMBER.fullmatch(text))


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if short := _SHORT_ESCAPES.get(char):
        return short
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"half of a surrogate pair (U+{code:04X}) is no character")
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def quote(text: str) -> str:
    """The text between double quotes, on one line, readable in every YAML; JSON escapes except above U+FFFF."""
    return '"' + _UNREADABLE.sub(_escape, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


# The bound on the length bounds the memory of the caches: some thousand entries of a few hundred bytes.
_SHORT = 96
_plain_or_quoted = lru_cache(maxsize=8192)(lambda text: text if plain(text) else quote(text))
_quoted = lru_cache(maxsize=8192)(quote)
_label = lru_cache(maxsize=4096)(lambda key: f"{_plain_or_quoted(key)}:")


def _number(value: float) -> str:
    if isinstance(value, int):
        if not _MIN_INT <= value <= _MAX_INT:
            raise ValueError(f"{value} does not fit in 64 bits")
        return str(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    text = repr(value)
    if "e" not in text:
        return text
    if 1e-15 <= abs(value) < 1e21:
        positional = format(Decimal(text), "f")
        return positional if "." in positional else f"{positional}.0"
    # YAML 1.1 wants a dot and a signed exponent: 1e300 would be a string.
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+03d}"


def _bare(value: object) -> str:
    """A value that is neither a string nor has children; everything that JSON does not know is refused here."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, _NUMBERS):
        return _number(value)
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _literal(text: str, pad: str) -> str | None:
    """The text as a literal block whose lines stand behind `pad`, or None where it would not read back equal."""
    if text[0] in " \n" or text.endswith("\n\n") or _BLANK_END.search(text):
        return None
    if _UNREADABLE.search(text.replace("\n", "")):
        return None
    body = text.removesuffix("\n")
    lines = "\n".join(pad + line if line else "" for line in body.split("\n"))
    return f"|\n{lines}" if text.endswith("\n") else f"|-\n{lines}"


def _key(key: object, pad: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is no string")
    if len(key) <= _SHORT:
        return _label(key)
    text = key if plain(key) else quote(key)
    return f"{text}:" if len(text) <= _MAX_SIMPLE_KEY else f"? {text}\n{pad}:"


def _leaf(value: object, pad: str) -> str:
    """A value without children; the lines of a literal block stand behind `pad`."""
    if isinstance(value, str):
        if "\n" in value and (block := _literal(value, pad)) is not None:
            return block
        return _plain_or_quoted(value) if len(value) <= _SHORT else value if plain(value) else quote(value)
    if isinstance(value, dict):
        return "{}"
    return "[]" if isinstance(value, _LISTS) else _bare(value)


def _map(value: dict[str, object], pad: str, head: str, out: list[str]) -> None:
    """Write the entries: the first behind `head` (the pad, or the dash of a list item), the others behind `pad`."""
    if len(pad) >= 2 * _MAX_DEPTH:
        raise RecursionError
    inner = pad + "  "
    for key in sorted(value):
        child = value[key]
        label = _label(key) if type(key) is str and len(key) <= _SHORT else _key(key, pad)
        if type(child) is str and len(child) <= _SHORT and "\n" not in child:
            out.append(f"{head}{label} {_plain_or_quoted(child)}")
        elif child and isinstance(child, dict):
            out.append(head + label)
            _map(child, inner, inner, out)
        elif child and isinstance(child, _LISTS):
            out.append(head + label)
            _list(child, pad, pad, out)
        else:
            out.append(f"{head}{label} {_leaf(child, inner)}")
        head = pad


def _list(value: Iterable[object], pad: str, head: str, out: list[str]) -> None:
    """Write the items: a dash, and the item two columns further in."""
    if len(pad) >= 2 * _MAX_DEPTH:
        raise RecursionError
    inner = pad + "  "
    for item in value:
        if item and isinstance(item, dict):
            _map(item, inner, f"{head}- ", out)
        elif item and isinstance(item, _LISTS):
            _list(item, inner, f"{head}- ", out)
        else:
            out.append(f"{head}- {_leaf(item, inner)}")
        head = pad


def _fault(value: object, path: str, depth: int = 0) -> str:
    """Where the first value stands that cannot be written, as a path; only asked after a failure."""
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, dict):
        for key, child in value.items():
            try:
                _key(key, "")
            except (TypeError, ValueError):
                return path
            if found := _fault(child, f"{path}.{key}" if path else key, depth + 1):
                return found
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            if found := _fault(child, f"{path}[{index}]", depth + 1):
                return found
    else:
        try:
            _leaf(value, "")
        except (TypeError, ValueError):
            return path
    return ""


def emit(obj: object) -> str:
    """One YAML document: LF, ends with a line feed, no `---`.

    `obj` is what JSON knows: maps with string keys, lists (or tuples), strings, 64-bit integers, finite floats,
    booleans, null. Raises TypeError for another type and ValueError for a value that no reader could give back (half a
    surrogate pair, a huge integer, NaN, more than 200 levels); the message names the path.
    """
    out: list[str] = []
    try:
        if obj and isinstance(obj, dict):
            _map(obj, "", "", out)
        elif obj and isinstance(obj, list | tuple):
            _list(obj, "", "", out)
        else:
            out.append(flow(obj))
    except RecursionError:
        raise ValueError(f"the object is nested deeper than {_MAX_DEPTH} levels") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}" if (path := _fault(obj, "")) else str(error)) from None
    out.append("")
    return "\n".join(out)


def emit_all(objs: Iterable[object]) -> str:
    """Several documents in the order given, with `---` between them. Raises as `emit`."""
    return "---\n".join(map(emit, objs))


def flow(value: object) -> str:
    """The value on one line in flow style with every string quoted: JSON, except for characters above U+FFFF.

    What templates write for an expression. Raises as `emit`, without the path.
    """
    if isinstance(value, str):
        return _quoted(value) if len(value) <= _SHORT else quote(value)
    if isinstance(value, dict):
        return f"{{{', '.join([f'{_flow_key(key)}: {flow(child)}' for key, child in value.items()])}}}"
    if isinstance(value, _LISTS):
        return f"[{', '.join([flow(item) for item in value])}]"
    return _bare(value)


def _flow_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is no string")
    if len(key) <= _SHORT:
        return _quoted(key)
    text = quote(key)
    return text if len(text) <= _MAX_SIMPLE_KEY else f"? {text} "
