"""How wide words are: measured, so that nothing overlaps and nothing is cut that would fit.

The widths are those of DejaVu Sans and DejaVu Sans Bold 2.37 (hmtx table, thousandths of the size), the widest of the
faces that the pictures ask for: in Segoe UI, Helvetica or Arial the same words are narrower, and fit all the more.
"""

from __future__ import annotations

from functools import cache

_PLAIN = (
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 "
    "636 337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 748 787 603 787 "
    "695 635 611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 "
    "579 278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636 337 636 838"
)
_BOLD = (
    "348 456 521 838 696 1002 872 306 457 457 523 838 380 415 380 365 696 696 696 696 696 696 696 696 696 "
    "696 400 400 838 838 838 580 1000 774 762 734 830 683 683 821 837 372 372 775 637 995 837 850 733 850 "
    "770 720 682 812 774 1103 771 724 725 457 365 457 838 500 500 675 716 593 716 678 435 716 712 343 343 "
    "665 343 1042 712 687 716 716 493 595 478 712 652 924 645 652 582 712 365 712 838"
)
_OTHER = {"·": 380, "–": 500, "’": 318}
_WIDEST = 1000
"""For any character that is not listed: as wide as a Chinese one, which is as wide as it is high."""


@cache
def _table(bold: bool) -> dict[str, int]:
    widths = (_BOLD if bold else _PLAIN).split()
    return {chr(32 + number): int(width) for number, width in enumerate(widths)} | _OTHER


def width(words: str, size: float, *, bold: bool = False) -> float:
    """The width of one line of text, in the unit of `size`; never less than in any face that is asked for."""
    table = _table(bold)
    return sum(table.get(letter, _WIDEST) for letter in words) * size / 1000


def fitted(words: str, room: float, size: float, *, bold: bool = False) -> str:
    """The words, or as much of them as fits into `room`, with an ellipsis in the middle: ends tell names apart."""
    if width(words, size, bold=bold) <= room:
        return words
    kept = len(words) - 1
    while kept > 2:
        head, tail = words[: (kept + 1) // 2], words[len(words) - kept // 2 :]
        if width(f"{head}…{tail}", size, bold=bold) <= room:
            return f"{head}…{tail}"
        kept -= 1
    return "…"
