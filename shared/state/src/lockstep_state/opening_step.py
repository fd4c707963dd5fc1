"""The steps of opening a connection to a broker."""

from enum import StrEnum


class OpeningStep(StrEnum):
    """The steps in their order; `OPEN` is the last."""

    CONNECTION = "connection"
    VERSIONS = "versions"
    TOKEN = "token"  # noqa: S105  # the name of a step, no secret
    MECHANISM = "mechanism"
    CREDENTIALS = "credentials"
    OPEN = "open"
