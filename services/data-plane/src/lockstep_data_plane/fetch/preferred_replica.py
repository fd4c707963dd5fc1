"""The replica from which each partition is read (KIP-392; no I/O, time comes from outside).

If a fetch names a rack, a leader may name a nearer replica. The leader is asked again after a while, as Java's
consumer does, since another replica may be the nearest by then. After any error at a follower, the leader's answer
counts. A follower may lag, so an offset that it does not have is no gap.
"""

from collections.abc import Iterable

from lockstep_state.offsets import TopicPartition

AVOID_S = 15.0
"""Seconds for which records are read from the leader after a follower failed. Brokers notice in less that one of them
is gone (`broker.session.timeout.ms`, 9 s).
"""


class PreferredReplicas:
    """The replicas that leaders named. `now` is always in seconds of a monotonic clock."""

    def __init__(self, rack: str, lease_s: float) -> None:
        """Take the slot's rack, and the seconds before a leader is asked again (`metadata.max.age.ms`)."""
        self._rack = rack
        self._lease_s = lease_s
        self._named: dict[TopicPartition, tuple[int, float]] = {}
        self._avoided: dict[TopicPartition, float] = {}

    def rack(self, partitions: Iterable[TopicPartition], now: float) -> str:
        """Return the rack for a fetch of these partitions, or "" if one of them has to come from its leader.

        A fetch has one rack for all its partitions, so the others come from their leaders too for that time.
        """
        if not self._rack or any(self._avoided.get(tp, now) > now for tp in partitions):
            return ""
        return self._rack

    def set_preferred(self, tp: TopicPartition, broker: int, now: float) -> None:
        """Note that the leader named this broker as the replica to read from."""
        self._named[tp] = (broker, now + self._lease_s)

    def replica_for(self, tp: TopicPartition, now: float) -> int | None:
        """Return the broker to read from instead of the leader, or None for the leader."""
        broker, valid_until = self._named.get(tp, (None, now))
        return broker if valid_until > now else None

    def on_failure(self, tp: TopicPartition, now: float) -> None:
        """Note that the replica could not be read. The partition is read from its leader for `AVOID_S`."""
        self._named.pop(tp, None)
        self._avoided[tp] = now + AVOID_S

    def reset(self, tp: TopicPartition) -> None:
        """Forget the named replica, since the partition starts at its leader.

        A replica that failed is still avoided.
        """
        self._named.pop(tp, None)
