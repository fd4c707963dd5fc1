"""A property of Java's clients that cannot be handed to ours."""

from __future__ import annotations


class Untranslatable(ValueError):
    """A Java property that cannot be handed to our clients. `key` is the property, the text says why and what to do."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key
