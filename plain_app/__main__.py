"""`python -m plain_app` starts the program."""

from plain_app.launcher import main

main()
