"""`python -m core` is the `plain` command."""

from core.cli import main

main()
