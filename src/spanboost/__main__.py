"""`python -m spanboost` is the command line."""

from spanboost.cli.main import program

program()
