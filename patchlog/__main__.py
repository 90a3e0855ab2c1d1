"""`python -m patchlog`: the same as the command `patchlog`."""

import sys

from patchlog.cli import main

sys.exit(main())
