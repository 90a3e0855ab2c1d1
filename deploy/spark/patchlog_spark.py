"""The commands of `python -m spark` as the file that spark-submit wants. docs/cluster.md."""  # noqa: INP001  it is no package

import sys

from spark.__main__ import main

sys.exit(main())
