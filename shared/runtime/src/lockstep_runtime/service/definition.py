"""The definition of a service: its name, its code, and how its replicas share work."""

from dataclasses import dataclass

CONTROL_SERVICES = "control-services"
"""The name in the log of a process that has several services."""


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """A service by its name, and the code behind it."""

    name: str
    build: str
    """The `module:name` that makes a FlowService of a FlowContext. It is imported when the service really starts."""
    first: str = ""
    """The `module:name` of a function of the flows' settings that is called before anything slow is imported."""
    divided: bool = False
    """Replicas divide the work by commands partition (checkpoint). Else the one with partition 0 does all of it."""
    pauses_itself: bool = False
    """A paused connector's main loop goes on, and reads the desired state itself (the data plane keeps its slots)."""
