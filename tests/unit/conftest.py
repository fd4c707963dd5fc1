"""How Hypothesis runs here: without a deadline for each example, for a busy machine is no mistake of the code."""

from hypothesis import settings

settings.register_profile("unit", deadline=None)
settings.load_profile("unit")
