"""`python -m farfield` is the command `farfield`; its version needs none of the verbs."""

import sys

from farfield import __version__


def main() -> None:
    """Print the version, or hand the command line to the verbs."""
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        print(__version__)
        return
    from farfield.cli import main

    main()


if __name__ == "__main__":
    main()
