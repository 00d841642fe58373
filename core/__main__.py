"""`python -m core` has the commands of the engine; runs and searches are started by it."""

from core.cli import main

main()
