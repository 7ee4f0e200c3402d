"""A file's text as documents, and each document as values: a fast way where it is safe, the exact way elsewhere."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache

import yaml_rs

from blueprint.check.goyaml import Decoder, Node, compose
from blueprint.check.scalars import Json, Remark, Unreadable, narrow


def documents(text: str) -> Iterator[tuple[int, str, str]]:
    """Documents of a text, split as apimachinery does: at lines that start with `---`.

    Gives the line (from 0) where each starts, its text, and what stood after the separator if that is neither blank
    nor a comment (then the text is empty). Source: k8s.io/apimachinery@v0.35.4 pkg/util/yaml/decoder.go, YAMLReader.
    """
    if not text.startswith("---") and "\n---" not in text:
        yield 0, text, ""
        return
    start = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if not line.startswith("---"):
            lines.append(line)
            continue
        if lines:
            yield start, "\n".join(lines) + "\n", ""
        lines = []
        start = number + 1
        rest = line[3:].strip()
        if rest and not rest.startswith("#"):
            yield start, "", rest
    if lines:
        yield start, "\n".join(lines), ""


_CONTENT = re.compile(r"^([ \t]*)[^\s#]", re.MULTILINE)


def first_content(chunk: str) -> tuple[int, int]:
    """Line and column (from 0) of the first thing that is neither blank nor comment, (-1, -1) where there is none."""
    match = _CONTENT.search(chunk)
    return (chunk.count("\n", 0, match.start()), len(match[1])) if match else (-1, -1)


_NUMBER = r"[-+._]*\d[\da-fA-FxXoO_.:+\-TtZz]*|[-+]?\.(?:[iI][nN][fF]|[nN][aA][nN])"
_WORD = r"(?:[yY](?:es|ES)?|[nN][oO]?|[oO](?:[nN]|ff|FF)|[tT]rue|TRUE|[fF]alse|FALSE|~|[nN]ull|NULL)"
# A colon inside a word (`sha256:37bf`) is text to both parsers; only after a quoted key does a value follow it.
_ODD_WORD = re.compile(
    r"(?:^|[\[{,:])(?:[&*!?:%]|[|>][^\d+\-]|<<|=$|[-+.]$)|[\[{,:][|>]"
    r"|(?:^|[\[{,]|(?<=[\"']):)(?!(?:true|false|null|-?(?:0|[1-9]\d{0,17}))(?:$|[,\]}#]))"
    rf"(?:{_WORD}|{_NUMBER})(?:$|[,\]}}#:])"
    r"|[\"']\d[\d.]*[:\-]\d|^\.\.\.|[\]}]:|:[,\[\]{}]|\\/|\{\{"
)
_DEEP = "\n" + " " * 120
_EMPTY_BLOCK = re.compile(r"[|>][\d+\-]*[ ]*(?:#.*)?\s*\Z")
_BLOCK_HEAD = re.compile(r"[|>][\d+\-]*[ ]*(?:#.*)?$", re.MULTILINE)
_ODD_KEY = re.compile(rf"[{{,]\s*(?:{_WORD}|-?\d+)\s*[,}}]|\{{\s*[\[{{]")


# A release (`0.33.0`) is text to both parsers: no number has two points.
_RELEASE = re.compile(r"v?\d+\.\d+\.\d+", re.ASCII)


@lru_cache(maxsize=1 << 16)
def _odd(word: str) -> bool:
    return word not in ("-", "|", ">") and _ODD_WORD.search(word) is not None and _RELEASE.fullmatch(word) is None


# One line of a block: a key, and a text that no parser takes for anything else, whatever its words are. It starts with
# a letter and has a blank or a bracket, so that it is no word of _WORD; with a bracket; as a sum; or it is in quotes.
_PLAIN_LINE = re.compile(
    r"[ ]*(?:- )*(?:[A-Za-z][\w./-]*: )?"
    r"(?:(?:[A-Za-z](?=[^\n]*[ (])|\(|\d+ [-+*/] )(?:[^:#\\\n]|:(?=\S)|(?<! )#)*+"
    r"|\"(?![\d\s])[^\"\\\n]*\"|'(?![\d\s])[^'\\\n]*')$"
)
_BLOCK = re.compile(r"([ ]*(?:- )*)(?:[A-Za-z][\w./-]*:([ ]+))?[|>][+-]?$")
_OPEN_FLOW = ("[", "{", ",")


def _odd_lines(text: str) -> bool:
    """Whether a line holds an odd word that is not just a word of a plain text, or of a block of text.

    Where a flow collection goes on over lines, any line may be odd.
    """
    odd = frozenset(filter(_odd, text.split()))
    block = -1  # the column of what a block of text belongs to
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        if block >= 0 and (not bare or len(line) - len(bare) > block):
            continue
        block = -1
        if match := _BLOCK.match(line):
            block = len(match[1]) if match[2] else max(len(match[1]) - 2, 0)
            continue
        if line.rstrip(" ").endswith(_OPEN_FLOW):
            return True
        key = ("{" in line or "," in line) and _ODD_KEY.search(line) is not None
        if (key or not odd.isdisjoint(line.split())) and _PLAIN_LINE.match(line) is None:
            return True
    return False


def suspicious(text: str) -> bool:
    """Whether a document may hold something that the fast parser reads differently from Kubernetes.

    It looks at words (whatever blanks part), most of which repeat from object to object, and errs on the safe side:
    values that YAML 1.1 and 1.2 read differently, dates (the fast parser sees them even in quotes), keys that are no
    strings, anchors, tags, merges, tabs, breaks only YAML 1.1 knows, a block of text that is empty at the end or ends
    without a new line, and nesting that overflows its stack.
    """
    return (
        not text.replace("\n", "").isprintable()
        or _DEEP in text
        or "- - - - - -" in text
        or _EMPTY_BLOCK.search(text) is not None
        or text.lstrip()[:1] in ("|", ">")
        or (not text.endswith("\n") and _BLOCK_HEAD.search(text) is not None)
        or ((any(map(_odd, text.split())) or _odd_key(text)) and _odd_lines(text))
    )


def _odd_key(text: str) -> bool:
    return text.count("{") > text.count("{}") and _ODD_KEY.search(text, text.index("{")) is not None


MAX_EXACT = 8 * 1024 * 1024
"""Characters of a document that the exact parser reads: it takes seconds, and some hundred MiB of memory, for that."""


def load_yaml(chunk: str) -> tuple[Json, Node | None, list[Remark]]:
    """The value of one YAML document, its tree where the exact way was taken, and what to tell; raises Unreadable."""
    if not suspicious(chunk):
        try:
            return yaml_rs.loads(chunk), None, []
        except ValueError:
            pass  # the exact parser decides, and has the position
    if len(chunk) > MAX_EXACT:
        message = (
            f"{len(chunk) / 2**20:.0f} MiB is more than the {MAX_EXACT // 2**20} MiB that are read of one document"
        )
        raise Unreadable(Remark("YML103", message, 0, 0, fix="split it: an object has at most about 1.5 MiB"))
    node = compose(chunk)
    if node is None:
        return None, None, []
    decoder = Decoder()
    value = decoder.value(node)
    return value, node, decoder.remarks


def load_json(chunk: str) -> list[tuple[Json, int]]:
    """Values of a chunk of JSON, one after the other, with their offsets.

    Empty where only the exact parser can tell (duplicate keys, NaN); raises json.JSONDecodeError, Unreadable.
    """
    found: list[tuple[Json, int]] = []
    position = _after_blanks(chunk, 0)
    try:
        while position < len(chunk):
            value, end = _JSON.raw_decode(chunk, position)
            found.append((value, position))
            position = _after_blanks(chunk, end)
    except RecursionError:
        raise Unreadable(Remark("YML108", "nested too deep", 0, 0)) from None
    except _Odd as odd:
        if odd.args:
            raise json.JSONDecodeError(f"{odd.args[0]} is not JSON", chunk, chunk.find(odd.args[0])) from None
        return []
    return found


_HALF = re.compile("[\ud800-\udfff]")


def paired(value: Json) -> Json:
    """The value with U+FFFD for each half of a surrogate pair, as Go reads it in JSON."""
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [paired(member) for member in value]
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", key): paired(member) for key, member in value.items()}
    return value


_BLANKS = re.compile(r"\s*")


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


class _Odd(Exception):
    """JSON that the exact parser has to look at: a duplicate key, a number JSON has not."""


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Odd
    return result


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        short = text if len(text) <= 40 else f"{text[:40]}…"
        raise Unreadable(Remark("YML109", f"{short} is beyond all numbers", 0, 0, fix="quote it"))
    return number


def _whole(text: str) -> int | float:
    return narrow(_finite(text))


def _integer(text: str) -> int | float:
    number = int(text) if len(text) < 30 else 2**64  # long ones take Python long, and it refuses some thousand digits
    return number if -(2**63) <= number < 2**63 else _finite(text)


def _refuse(text: str) -> Json:
    raise _Odd(text)


_JSON = json.JSONDecoder(object_pairs_hook=_members, parse_float=_whole, parse_int=_integer, parse_constant=_refuse)


def tree_at(text: str, line: int) -> tuple[Node | None, int]:
    """The document that holds a line (from 1) as a tree, and the line (from 0) where it starts."""
    found, begin = "", 0
    for start, chunk, _ in documents(text):
        if start >= line:
            break
        found, begin = chunk, start
    try:
        return compose(found), begin
    except Unreadable:
        return None, begin
