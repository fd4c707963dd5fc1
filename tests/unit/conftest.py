"""How unit tests run: the examples of Hypothesis, and how often Python looks for cycles."""

import gc
import os

from hypothesis import settings

# No deadline for each example, for a busy machine is no mistake of the code. The examples are the same each time, so
# that a change is judged by what it changed. `HYPOTHESIS_PROFILE=explore` goes on.
settings.register_profile("unit", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))

# House tests keep the syntax tree of every module. With Python's own thresholds, looking for cycles among its nodes
# takes four fifths of the time in which it is made.
gc.set_threshold(100_000, 50, 50)
