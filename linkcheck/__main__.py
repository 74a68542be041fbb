"""`python -m linkcheck` is the same as the command `linkcheck`."""

from linkcheck.cli import main

main()
