"""`python -m spanboost` is the command line."""

import sys

from spanboost.cli import main

sys.exit(main())
