"""`python -m farfield` is the command `farfield`; its version needs none of the verbs."""

import os
import sys

from farfield import __version__


def main() -> None:
    """Print the version, or hand the command line to the verbs."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: no other file may take its place
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        try:
            print(__version__, flush=True)
        except OSError as error:
            from farfield.cli import unwritten

            sys.exit(unwritten(error))
        return
    from farfield.cli import main

    main()


if __name__ == "__main__":
    main()
