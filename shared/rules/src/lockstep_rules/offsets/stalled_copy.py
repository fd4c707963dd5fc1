"""The reason why a copy does not move, as far as the target's topic shows it. Pure."""

from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic


def why_stalled(topic: MirroredTopic, number: int, in_sync: int | None, replicas: int | None) -> Reason:
    """Return why the target acknowledges nothing in a partition; no reason if its topic shows none.

    The one known reason is that fewer replicas are in sync than `min.insync.replicas` asks for.

    Args:
        topic: The row of its topic, with the configs of the target.
        number: The number of the partition.
        in_sync: The number of its replicas that are in sync now; None: unknown.
        replicas: The number of its replicas; None: unknown.
    """
    least = dict(topic.target_configs).get("min.insync.replicas", "")
    if in_sync is None or not least.isdigit() or in_sync >= int(least):
        return NO_REASON
    return ReasonCode.NOT_ENOUGH_REPLICAS.to_reason(
        partition=f"{topic.target_topic}-{number}",
        in_sync=in_sync,
        replicas="?" if replicas is None else replicas,
        least=int(least),
    )
