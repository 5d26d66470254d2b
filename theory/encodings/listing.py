"""The catalogue for a reader: an entry with all that it takes, or every entry on a line.

`index.txt` holds the lines, for a command line that does not load what computes them:

    python -m farfield.theory.encodings.listing > theory/encodings/index.txt
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, facts, sentence, table
from farfield.theory.answers.notation import expression_line, listed, shortened
from farfield.theory.answers.number import plural
from farfield.theory.encodings.catalogue import CATALOGUE, usual_values
from farfield.theory.encodings.construction import encoding
from farfield.theory.encodings.encoding import Encoding
from farfield.theory.mechanisms import MECHANISMS


@dataclass(frozen=True, repr=False)
class Listed(Result):
    """An encoding with what its entry of the catalogue takes.

    Fields:
        encoding: as it was asked for.
        dialects: variants of the formula, the default first.
        options: each with its default, and the dialects that alone read it.
        usual: values of its free parameters in the comparisons of the project.
    """

    encoding: Encoding
    dialects: tuple[str, ...] = ()
    options: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    usual: Mapping[str, str] = field(default_factory=dict)

    def blocks(self) -> Sequence[Block]:
        options = [
            f"{name} = {value}" + (f" (dialect {listed(read)})" if read else "")
            for name, value, read in self.options
        ]
        biases = self.encoding.biases
        heads = [f"head {h}: {expression_line(bias)}" for h, bias in enumerate(biases, 1)]
        several = len(set(heads)) > 1
        return (
            *self.encoding.blocks(),
            facts(
                dialects=listed(self.dialects) or None,
                options=listed(options) or None,
                usual=" ".join(f"--set {k}={v}" for k, v in self.usual.items()) or None,
                biases=shortened("; ".join(heads), 200) if several else None,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        options = [{"name": n, "default": v, "dialects": list(d)} for n, v, d in self.options]
        return self.encoding.to_dict() | {"dialects": list(self.dialects), "options": options}


def of_entry(subject: Encoding) -> Listed:
    """An encoding with what its entry takes; nothing more for one that is in no catalogue.

    >>> of_entry(encoding("alibi")).dialects
    ('press', 'geometric', 'shift', 'equal')
    """
    entry = CATALOGUE.get(subject.name)
    if entry is None:
        return Listed(subject)
    options = tuple((k, str(v), entry.needs.get(k, ())) for k, v in entry.options.items())
    usual = usual_values(subject.name, [p.name for p in subject.free])
    return Listed(subject, entry.dialects, options, usual)


@dataclass(frozen=True, repr=False)
class Catalogue(Result):
    """Every entry of the catalogue, on a line each."""

    encodings: tuple[Encoding, ...]

    def blocks(self) -> Sequence[Block]:
        inside = [e for e in self.encodings if e.biases]
        outside = [e for e in self.encodings if not e.biases]
        return (
            sentence(
                "{all}: {inside} with a bias in the distance alone, {others} to which the "
                "exp-series does not apply.",
                all=plural(len(self.encodings), "encoding"),
                inside=len(inside),
                others=len(outside),
            ),
            table(
                ("name", "bias p(n)", "parameters to give", "dialects"),
                [(e.name, shortened(e.formula_text(), 60), *_takes(e)) for e in inside],
            ),
            table(
                ("name", "why it has no bias p(n)", "a window is enough"),
                [(e.name, e.out_of_scope, _enough(e)) for e in outside],
            ),
        )


def _takes(e: Encoding) -> tuple[str, str]:
    """What an entry takes: its free parameters and its dialects."""
    return listed([p.name for p in e.free], 4), listed(CATALOGUE[e.name].dialects)


def _enough(e: Encoding) -> str:
    """Whether some window is ever enough, decided by the mechanism."""
    decided = MECHANISMS[e.mechanism]
    if decided.condition is not None:
        return f"if {expression_line(decided.condition)}"
    return {True: "yes", False: "never", None: "unknown"}[decided.windowable]


def catalogue() -> Catalogue:
    """The catalogue, every entry with its defaults.

    >>> len(catalogue().encodings) == len(CATALOGUE)
    True
    """
    return Catalogue(tuple(encoding(name) for name in CATALOGUE))


if __name__ == "__main__":
    print(catalogue())
