"""Verdicts that carry their own certificate: a file whose theorem a prover checks.

Everything here only proposes. A formula becomes a term of the prover (`prover_forms`). The steps of
the decision say which facts are proved, one cell of the parameters at a time (`case_proofs`); the
expansions behind each are asserted (`expansion_proofs`), and all is written down (`source`). A file
follows from the formula that its first comment spells (`certificate`), so that a received one is
printed anew and compared (`verification`). The prover's kernel says whether the statement is proved
(`prover`). So a mistake here costs a certificate that does not compile, never a wrong one. What no
rule covers has no certificate: a weaker statement is never written.
"""

from farfield.theory.certificates.certificate import Certificate, certificate
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.certificates.source import Certifiable

__all__ = ["Certifiable", "Certificate", "NoCertificate", "certificate"]
