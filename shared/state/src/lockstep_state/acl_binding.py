"""An ACL binding as a value, in Kafka's own words."""

from dataclasses import dataclass

UNKNOWN = "UNKNOWN"
"""The client library's name for a word that it does not know. Such a binding can be reported, never written."""


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """A permission or denial: principal, operation, resource. Words as Kafka spells them (TOPIC, LITERAL, READ, ALLOW).

    Two bindings are the same to a broker exactly when they are equal here.
    """

    name: str
    principal: str
    operation: str
    permission: str
    host: str = "*"
    resource: str = "TOPIC"
    pattern: str = "LITERAL"

    def __str__(self) -> str:
        return (
            f"{self.permission} {self.operation} on {self.resource} {self.name} ({self.pattern}) "
            f"for {self.principal} from {self.host}"
        )

    @property
    def readable(self) -> bool:
        """The client library knows every word of the binding."""
        return UNKNOWN not in (self.operation, self.permission, self.resource, self.pattern)
