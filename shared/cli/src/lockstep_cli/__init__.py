"""The `lockstep` command."""

import time

STARTED_MS = round(time.time() * 1000)
"""When the process began to load the command, Unix milliseconds."""
