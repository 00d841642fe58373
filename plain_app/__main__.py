"""`python -m plain_app` is the script `plain`."""

from plain_app.cli import main

main()
