"""Verdicts that carry their own certificate: a file whose theorem a prover checks.

Everything here only proposes. A formula is turned into a term of the prover (`forms`), expanded
along the logarithmic scale (`expansions`, one cell of the parameters at a time: `signs`), decided
(`verdicts`), and written down with a proof of every step (`writer`). The statement printed is read
back by a reader of its own and compared with the formula (`reading`); whether it is proved, the
prover's kernel says (`prover`). So a mistake here costs a certificate that does not compile, never
a wrong one. What no rule covers has no certificate: a weaker statement is never written.
"""

from farfield.theory.certificates.certificate import Certifiable, Certificate, certificate
from farfield.theory.certificates.forms import NoCertificate

__all__ = ["Certifiable", "Certificate", "NoCertificate", "certificate"]
