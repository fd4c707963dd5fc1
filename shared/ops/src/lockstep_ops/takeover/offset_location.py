"""The places where an MM2 keeps its progress, by its kind (`mm2-behaviour.md` §1.7). Pure."""

from dataclasses import dataclass

from lockstep_ops.exit_codes import CannotUse
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode

STRIMZI, CONNECT = "strimzi", "connect"


@dataclass(frozen=True, slots=True)
class OffsetLocation:
    """The place where an MM2 keeps its progress, and the group of its workers, both on the target.

    Without `watched` other connectors run in that group too, so its members say nothing.
    """

    origin: str
    topic: str
    connector: str
    group: str
    watched: bool = True

    def is_same(self, other: "OffsetLocation") -> bool:
        """Return whether both keep their progress in the same records."""
        return (self.topic, self.connector) == (other.topic, other.connector)

    def __str__(self) -> str:
        return f"{self.topic}, connector {self.connector}"


def offset_location(
    origin: str,
    flow: Flow,
    group_id: str | None,
    own_topic: str,
    *,
    topic: str | None = None,
    connector: str | None = None,
    group: str | None = None,
) -> OffsetLocation:
    """Return the place where an MM2 of this kind keeps its progress by default.

    Args:
        origin: The kind of MM2.
        flow: The flow.
        group_id: The target's `group.id` in the file.
        own_topic: The topic of offsets that the file names, which is that of a dedicated MM2 as well.
        topic: The topic of offsets, if it is not the default one.
        connector: The connector's name, if it is not the default one.
        group: The workers' group, if it is not the default one.

    Raises:
        CannotUse: A Connect cluster's names are needed.
    """
    source = Connector.SOURCE.value
    if origin == CONNECT and not (topic and connector and group):
        raise CannotUse(
            "--from connect needs --offsets-topic, --connector and --group: the workers' offset.storage.topic, the "
            "connector's name, and the workers' group.id"
        )
    if origin == STRIMZI:
        default = OffsetLocation(STRIMZI, "mirrormaker2-cluster-offsets", f"{flow}.{source}", "mirrormaker2-cluster")
    else:
        default = OffsetLocation(origin, own_topic, source, group_id or f"{flow.source}-mm2")
    return OffsetLocation(origin, topic or default.topic, connector or default.connector, group or default.group)


def still_runs(location: OffsetLocation, target: str, members: int) -> Reason:
    """Return why nothing may be done yet."""
    return RefusalCode.MIRROR_MAKER_RUNS.to_reason(group=location.group, cluster=target, members=members)
