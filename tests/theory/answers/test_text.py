"""Blocks as text for a terminal: by hand at the widths where a line breaks, and as laws."""

import random
import sys

import pytest

from farfield.theory.answers.blocks import (
    Formula,
    Steps,
    columns,
    facts,
    in_colour,
    note,
    sentence,
    table,
    written,
)
from farfield.theory.answers.notation import StyledWord, as_text, words
from farfield.theory.answers.writers.tables import csv_tables, latex_tables
from farfield.theory.functions.nodes import n

NARROW = table(
    ("name", "`n`", "what it is"),
    [("alibi", 12, "a line that falls with distance"), ("t5", 7, None)],
    title="Biases by their names, in order",
    numeric=(1,),
)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            44,
            """
Biases by their names, in order
  name    n  what it is
  alibi  12  a line that falls with distance
  t5      7
""",
        ),
        (
            43,
            """
Biases by their names, in order
  name    n  what it is
  alibi  12  a line that falls with
             distance
  t5      7
""",
        ),
        (
            30,
            """
Biases by their names, in
order
  name    n  what it is
  alibi  12  a line that falls
             with distance
  t5      7
""",
        ),
        (
            21,
            """
Biases by their
names, in order
  name    n  what it
             is
  alibi  12  a line
             that
             falls
             with
             distance
  t5      7
""",
        ),
        (
            17,
            """
Biases by their
names, in order
  alibi
    n: 12
    what it is: a
      line that
      falls with
      distance
  t5
    n: 7
""",
        ),
    ],
)
def test_a_table_by_hand(width, lines):
    assert written([NARROW], width=width) == lines.strip("\n")


@pytest.mark.parametrize("seed", range(30))
def test_columns_keep_the_words_of_their_cells(seed):
    draw = random.Random(seed)
    wide = draw.randrange(1, 5)
    rows = [
        [
            " ".join("x" * draw.randrange(1, 9) for _ in range(draw.randrange(5)))
            for _ in range(wide)
        ]
        for _ in range(draw.randrange(1, 6))
    ]
    for width in (24, 40, 60):
        lines = written([table((), rows)], width=width).splitlines()
        assert all(len(line) <= width for line in lines)
        found = [word for line in lines for word in line.split()]
        assert sorted(found) == sorted(
            word for row in rows for cell in row for word in cell.split()
        )


class Step:
    def words(self):
        return words("a step of some words")


LONG = [Formula(words("`p`"), sum(n**k for k in range(40)))]
BLOCKS = [
    sentence("The sum is `pi`, a number.", "theorem"),
    Formula(words("`p(n)`"), -n / 4),
    facts(total_mass="two words", left_out=None, of=3),
    Steps(as_text("Proof"), (Step(), Step()), as_text("it converges")),
    note("Some words of a note"),
]
NARROWED = [
    "The sum is π, a",
    "number.  [theorem]",
    "  p(n) = −n/4",
    "  total mass: two",
    "    words",
    "  of: 3",
    "Proof:",
    "  1. a step of",
    "     some words",
    "  2. a step of",
    "     some words",
    "  Hence: it",
    "     converges.",
    "  Some words of a",
    "  note",
]
WHOLE = [
    "The sum is π, a number.  [theorem]",
    "  p(n) = −n/4",
    "  total mass: two words",
    "  of: 3",
]
LONE = [("a" * 12, "b" * 12, ""), ("c", "", "d" * 12)]
LISTED = ["  " + "a" * 12, "    " + "b" * 12, "  c", "    " + "d" * 12]
BROKEN, UNEVEN = [("first\nsecond", "a-b-c d", "x" * 9)], [("a b", "c d e f g h")]
VERDICT = sentence("{v}: it converges", v=StyledWord("converges", "verdict"))
STATUS = sentence("{v}", v=StyledWord("converges", "status"))
GREEN, PLAIN = "\033[1;32mconverges\033[0m", ["  converges", "converges: it converges"]
SIGNS = "`n -> oo`: 1 … 2 × 3 ± ε — ’ ∞ ζ"


@pytest.mark.parametrize(
    ("blocks", "options", "lines"),
    [
        (BLOCKS, {"width": 18, "details": True}, NARROWED),
        (BLOCKS, {}, [*WHOLE, "  Some words of a note"]),
        ([sentence("a\tb"), note("x" * 30 + " y")], {"width": 20}, ["a\tb", "x" * 30, "  y"]),
        ([sentence(SIGNS)], {"unicode": False}, ["n -> oo: 1 ... 2 x 3 +/- eps - ' oo ?"]),
        ([], {}, []),
        (
            [table((), LONE)],
            {"width": 24},
            LISTED,
        ),
        ([table(("a", "b"), [])], {}, ["  a  b"]),
        ([table((), [])], {}, []),
        ([table((), BROKEN)], {"width": 28}, ["  first   a-b-c d  xxxxxxxxx", "  second"]),
        ([table((), UNEVEN)], {"width": 14}, ["  a b  c d e f", "       g h"]),
        ([VERDICT] * 2, {"colour": True}, [f"{GREEN}: it converges", "converges: it converges"]),
        ([STATUS], {"colour": True}, ["converges"]),
        ([sentence("{v}", v=StyledWord("other", "verdict"))], {"colour": True}, ["other"]),
        ([table((), [("converges",)]), VERDICT], {"colour": True}, PLAIN),
    ],
)
def test_the_other_blocks_by_hand(blocks, options, lines):
    assert written(blocks, **options).splitlines() == lines


def test_a_long_formula_is_cut_in_its_middle():
    shown = written(LONG, width=60)
    assert (shown.count("…"), len(shown)) == (1, len("  p = ") + 48)


@pytest.mark.parametrize(
    ("terminal", "size", "width"),
    [(False, 70, 100), (True, 40, 60), (True, 61, 61), (True, 99, 99), (True, 300, 100)],
)
def test_a_line_is_as_wide_as_the_terminal_within_bounds(monkeypatch, terminal, size, width):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("COLUMNS", str(size))  # what the library reads first
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert columns() == width and in_colour() is terminal
    monkeypatch.setenv("NO_COLOR", "1")
    assert not in_colour()


def test_a_table_in_latex_has_its_title_as_a_comment():
    title, begin, *_ = latex_tables([NARROW]).splitlines()
    assert csv_tables([note("it"), table((), [(1, 2)]), table(("a",), [(3,)])]) == "1,2\n\na\n3"
    assert (title, begin) == ("% Biases by their names, in order", r"\begin{tabular}{lrl}")


def test_proofs_and_colours_are_shown_where_they_are_asked_for():
    blocks = [sentence("It {verdict}.", verdict=StyledWord("diverges", "verdict"))]
    blocks += [Steps(words("Proof"), (), words("it ends"))]
    assert written(blocks) == "It diverges."
    assert written(blocks, details=True).endswith("Hence: it ends.")
    assert written(blocks, colour=True) == "It \033[1;33mdiverges\033[0m."
