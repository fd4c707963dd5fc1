"""The root of the errors between Lockstep and its clusters.

A category says what helps: time, or a decision. Any other exception is a mistake in Lockstep. It ends its task with a
traceback.
"""


class LockstepError(Exception):
    """An error whose text is a sentence for the operator. Raise one of the categories."""


class RetriableError(LockstepError):
    """An error that passes by itself, or that an operator mends while Lockstep tries again."""


class NeedsDecision(LockstepError):
    """An error that retries do not solve. The configuration, or an operator, decides how to go on."""
