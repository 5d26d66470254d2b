"""What is wrong with a question."""


class InputError(ValueError):
    """What was given, what is wrong with it, what is accepted: one line, fit for a user to read."""
