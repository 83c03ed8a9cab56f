"""``python -m tests.mutants``: see :mod:`tests.mutants.campaign`."""

import sys

from tests.mutants.campaign import main

sys.exit(main())
