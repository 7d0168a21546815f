"""`python -m cofire`: the command line."""

from __future__ import annotations

import sys

from cofire.cli import main

sys.exit(main())
