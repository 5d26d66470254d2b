"""The certificates of the catalogue: every encoding that is a bias, its parameters left free.

`python tests/formal/certified.py` writes them to `theory/formal/catalogue/`, where
`make formal` has the prover check them.
"""

from collections.abc import Iterator

from sympy import Expr

from farfield.theory.certificates import Certificate
from farfield.theory.certificates.prover import LIBRARY
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.files import write

FOLDER = LIBRARY / "catalogue"


def formulas() -> Iterator[tuple[str, Encoding]]:
    """The name of a file, and the encoding it is about: each formula of an entry once, under the
    first dialect that has it."""
    for name, entry in CATALOGUE.items():
        seen: set[Expr] = set()
        for dialect in entry.dialects or (None,):
            subject = encoding(name, dialect=dialect)
            if subject.formula is None or subject.formula in seen:
                continue
            yield (f"{name}_{dialect}" if seen else name), subject
            seen.add(subject.formula)


def certified() -> Iterator[tuple[str, Certificate]]:
    """The certificate of each.

    >>> kerple = next(found for name, found in certified() if name == "kerple_log")
    >>> kerple.statement.partition(" -> (")[2]
    'ex_series (fun n => exp (p n)) <-> r1 > 1).'
    """
    for name, subject in formulas():
        domains = {p.name: p.domain for p in subject.parameters}
        yield name, check_convergence(subject.formula, assumptions=domains).certificate()


def main() -> None:
    """Write the files."""
    for name, certificate in certified():
        write(FOLDER / f"{name}.v", certificate.source.encode())
        print(name)


if __name__ == "__main__":
    main()
