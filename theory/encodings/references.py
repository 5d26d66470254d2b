"""What to cite: BibTeX of farfield and of the papers of the catalogue's encodings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import closest
from farfield.theory.encodings.catalogue import CATALOGUE
from farfield.theory.encodings.construction import named

SOFTWARE = """@software{{farfield,
  title = {{farfield: how far a relative positional encoding can see}},
  author = {{{{The farfield authors}}}},
  version = {{{version}}},
  year = {{2026}},
  license = {{MIT}},
}}"""


@dataclass(frozen=True, repr=False)
class Citations(Result):
    """Entries of BibTeX.

    Fields:
        bibtex: an entry for each name that was asked for, without repetition.
        names: the encodings of each entry.
    """

    bibtex: tuple[str, ...]
    names: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        first = sentence("BibTeX of {names}.", names=", ".join(self.names))
        return (first, table(("name", "BibTeX"), [*zip(self.names, self.bibtex, strict=True)]))

    def text(self, **_: Any) -> str:
        """The entries as they are pasted."""
        return "\n\n".join(self.bibtex)

    def latex(self) -> str:
        """The same: what LaTeX reads of a citation is BibTeX."""
        return self.text()


@cache
def references() -> dict[str, str]:
    """The entry of each encoding that has one, without its keywords."""
    text = files("farfield.theory.encodings").joinpath("references.bib").read_text("utf-8")
    found: dict[str, str] = {}
    for entry in re.findall(r"^@.*?^\}", text, re.DOTALL | re.MULTILINE):
        keywords = re.search(r"\n  keywords = \{(.*?)\},", entry)
        assert keywords is not None, entry
        shown = entry.replace(keywords[0], "")
        found |= dict.fromkeys(re.split(r",\s*", keywords[1]), shown)
    return found


def cite(*names: str) -> Citations:
    """The BibTeX entries of encodings; of farfield itself without a name.

    Args:
        names: of the catalogue, in any spelling, or `farfield`.

    Raises:
        InputError: a name that the catalogue does not have, or an encoding without a paper.

    >>> print(cite("alibi").bibtex[0].splitlines()[0])
    @inproceedings{press2022train,
    """
    found: dict[str, str] = {}
    for name in names or ("farfield",):
        entry = named(name)
        key = entry.name if entry else re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        known = {"farfield": SOFTWARE.format(version=version("farfield"))} | references()
        alike = next((k for k in known if k.replace("_", "") == key.replace("_", "")), None)
        if alike is None and key in CATALOGUE:
            raise InputError(
                f"{name}: no paper is kept for it; its source: {CATALOGUE[key].source}"
            )
        if alike is None:
            raise InputError(
                f"{name[:40]!r} is no encoding of the catalogue; {closest(key, known)}"
            )
        found[alike] = known[alike]
    bibtex = tuple(dict.fromkeys(found.values()))
    of = (", ".join(k for k in found if found[k] == entry) for entry in bibtex)
    return Citations(bibtex, tuple(of))
