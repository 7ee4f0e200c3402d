"""`python -m blueprint`."""

from blueprint.cli import main

main()
