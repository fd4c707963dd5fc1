"""The root of what can go wrong between Lockstep and its clusters.

A category says what helps: time, or somebody's decision. Any other exception is a mistake in Lockstep. It ends what was
going on, with a traceback."""


class LockstepError(Exception):
    """The text is a sentence for the operator. Raise one of the categories."""


class RetriableError(LockstepError):
    """It passes by itself, or somebody mends it while Lockstep tries again."""


class NeedsDecision(LockstepError):
    """Trying again does not help. The configuration, or somebody, decides how to go on."""
