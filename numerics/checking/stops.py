"""What a check may end with before its end."""


class ProofError(Exception):
    """A step of a proof is false; the message names the step and what disagrees."""


class Open(Exception):
    """The checker cannot tell; the step counts as cited."""
