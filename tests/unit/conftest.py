"""How Hypothesis runs here: without a deadline for each example, for a busy machine is no mistake of the code, and with
the same examples each time, so that a change is judged by what it changed. `HYPOTHESIS_PROFILE=explore` goes on."""

import os

from hypothesis import settings

settings.register_profile("unit", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))
