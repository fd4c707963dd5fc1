"""The `lockstep` command."""

import time

STARTED_MS = round(time.time() * 1000)
"""The time when the process began to load the command, in Unix milliseconds."""
