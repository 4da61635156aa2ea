"""`python -m daemon.cli`."""

import sys

from daemon.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
