"""`python -m farfield` is the command `farfield`."""

from farfield.cli import main

main()
