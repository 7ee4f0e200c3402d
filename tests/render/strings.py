"""Strings that some YAML reader takes for something else, for all tests that write YAML."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = (
    "y Y n N yes Yes NO on ON off true True FALSE null Null ~ None .inf -.inf +.INF .nan .NaN inf nan Infinity -inf"
)
_NUMBERS = (
    "0 1 -1 +1 00 08 0777 0o777 0x1F 0b101 1_000 1__0 _1 1. .5 -.5 1.5 1e3 1E3 1e+3 1e-3 1e400 1:30 190:20:30.15 0:0"
    " 12e 0x 1_000g 1.0g 1.2.3 1..2 1.2. 18446744073709551616 2026-11-30 2026-11-30T10:00:00Z 2026-13-45"
    " 10:00 1h30m 1d 1M 1:30m"
)
_MARKS = (
    "= << - -- --- ... ? ?a : :a a: & &a * *a ! !a !!str | > |- >+ % %a @ ` , , { } [ ] {} [] {a} [a] # #a a#b a:b"
    " . .. .a"
)
_TEXTS = [
    *[
        "",
        " ",
        "  ",
        " a",
        "a ",
        "a: b",
        "a :b",
        "a #b",
        "- a",
        "-  a",
        "? a",
        ": a",
        "a, b",
        "a: ",
        "- ",
        "--- a",
        "'a'",
        '"a"',
    ],
    *[
        "'",
        '"',
        "''",
        "\\",
        "\\n",
        "a\\b",
        "a'b",
        'a"b',
        "{{ a }}",
        "${A}",
        "$(A)",
        "%YAML 1.1",
        "<<: *a",
        "!!binary aGk=",
    ],
    *[
        "\t",
        "\ta",
        "a\t",
        "a\tb",
        "a:\tb",
        "a\t#b",
        "\r",
        "a\rb",
        "a\r\nb",
        "\0",
        "\x01",
        "\x07",
        "\x1b[31m",
        "\x7f",
        "\x85",
    ],
    *[
        "\xa0",
        "\xad",
        "\u2028",
        "\u2029",
        "a\u2028b\nc",
        "a\x85\nb",
        "\ufeff",
        "\ufeffa",
        "\ufffe",
        "\uffff",
        "\ue000",
        "\u202e",
    ],
    *["é", "日本語", "😀", "𝒳", "\U000e0041", "\U0010ffff", "\u3000", "١٢", "²"],
    *[
        "\n",
        "\n\n",
        "\na",
        "a\n",
        "a\n\n",
        "a\nb",
        "a\nb\n",
        "a\n\nb",
        "a\n b",
        " a\nb",
        "a \nb",
        "a\n \nb",
        "a\n\tb",
        "a\tb\nc",
    ],
    *[
        "# a\nb",
        "- a\n- b",
        "a: b\nc: d",
        "---\na",
        "a\n---\nb\n",
        "a\n...\n",
        "|\n a",
        "a\n\n\n  b\n",
        "a\nb ",
        "a\n#b",
        "\u00e9\nb",
    ],
    *["x" * 5000, "x " * 2000, "x\n" * 500, "é" * 1100],
]
NASTY = list(dict.fromkeys([*_WORDS.split(), *_NUMBERS.split(), *_MARKS.split(), *_TEXTS]))

_SPECIAL = "0123456789abefxoTZ_.:+-/%gmk#, \n\t\r\"'\\{}[]&*!|>?@`~=<$yYnN\x00\x1b\x7f\x85\xa0\u2028\ufeff\u202e😀é"
nasty_text = st.one_of(
    st.sampled_from(NASTY[:-4]),
    st.text(_SPECIAL, max_size=8),
    st.text(max_size=8),
    st.lists(st.sampled_from(NASTY[:-4]), min_size=2, max_size=3).map("".join),
)
