"""Models from outside: read, opened, audited, measured."""
