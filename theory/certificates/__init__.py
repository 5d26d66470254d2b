"""Verdicts that carry their own certificate: a file whose theorem a prover checks.

Everything here only proposes. A formula becomes a term of the prover (`prover_forms`). It is
expanded along the logarithmic scale, one cell of the parameters at a time (`expansions`), decided
(`verdicts`), and written down with a proof of every step (`writer`). What the file says in words is
read back, and all but the proofs is printed anew and compared (`readback`). The prover's kernel
says whether the statement is proved (`prover`). So a mistake here costs a certificate that does not
compile, never a wrong one. What no rule covers has no certificate: a weaker statement is never
written.
"""

from farfield.theory.certificates.certificate import Certificate, certificate
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.certificates.writer import Certifiable

__all__ = ["Certifiable", "Certificate", "NoCertificate", "certificate"]
