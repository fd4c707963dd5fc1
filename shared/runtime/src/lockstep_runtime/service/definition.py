"""What distinguishes one service from another."""

from dataclasses import dataclass

CONTROL_SERVICES = "control-services"
"""The name in the log of a process that has several services."""


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """A service by its name, and the code behind it.

    `build` names the class or function `module:name` that makes a FlowService of a FlowContext. It is imported only
    when the service really starts. `first` names a function of the chosen flows that is called before anything slow is
    loaded. `divided`: replicas divide the work by commands partition (checkpoint). Otherwise the one that holds
    partition 0 does all of it. `pauses_itself`: a paused connector's main loop is not ended. It checks itself what is
    wanted (the data plane keeps its slots).
    """

    name: str
    build: str
    first: str = ""
    divided: bool = False
    pauses_itself: bool = False
