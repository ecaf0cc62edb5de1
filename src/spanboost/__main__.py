"""`python -m spanboost` is the command line."""

from spanboost.cli import program

program()
