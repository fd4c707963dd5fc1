"""An ACL binding as a value, in Kafka's own words."""

from dataclasses import dataclass

UNKNOWN = "UNKNOWN"
"""What the client library calls a word it was not built for. Such a binding can be reported, never written."""


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
        """Whether every word of it is known to the client library."""
        return UNKNOWN not in (self.operation, self.permission, self.resource, self.pattern)
