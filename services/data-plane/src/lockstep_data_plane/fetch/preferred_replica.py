"""From which replica each partition is read (KIP-392; no I/O, time comes from outside).

If a fetch has a rack, a leader may name another replica, which is nearer. The leader is asked again after a while, as
Java's consumer does it, for the nearest replica may be another one by then. After any error at a follower, the leader's
answer counts. A follower may lag, so an offset that it does not have is no gap.
"""

from collections.abc import Iterable

from lockstep_state.offsets import TopicPartition

AVOID_S = 15.0
"""For so long after a follower failed us the leader is asked for the records themselves. That is longer than brokers
take to notice that one of them is gone (`broker.session.timeout.ms`, 9 s)."""


class PreferredReplicas:
    """The replicas that leaders named. `now` everywhere: seconds of a clock that does not go back."""

    def __init__(self, rack: str, lease_s: float) -> None:
        """`lease_s`: how long a replica is read before its leader is asked again (`metadata.max.age.ms`)."""
        self._rack = rack
        self._lease_s = lease_s
        self._named: dict[TopicPartition, tuple[int, float]] = {}
        self._avoided: dict[TopicPartition, float] = {}

    def rack(self, partitions: Iterable[TopicPartition], now: float) -> str:
        """What to say with a fetch of these partitions: our rack, or none where one of them is to come from its leader.
        A fetch has one rack for all that it asks, so the others come from there too for as long.
        """
        if not self._rack or any(self._avoided.get(tp, now) > now for tp in partitions):
            return ""
        return self._rack

    def named(self, tp: TopicPartition, broker: int, now: float) -> None:
        """The leader would rather have us read from this broker."""
        self._named[tp] = (broker, now + self._lease_s)

    def replica_for(self, tp: TopicPartition, now: float) -> int | None:
        """The broker to read from instead of the leader; None: the leader."""
        broker, until = self._named.get(tp, (None, now))
        return broker if until > now else None

    def on_failure(self, tp: TopicPartition, now: float) -> None:
        """The replica could not be read: the leader, without a rack, for a while."""
        self._named.pop(tp, None)
        self._avoided[tp] = now + AVOID_S

    def reset(self, tp: TopicPartition) -> None:
        """The partition begins anew at its leader. A replica that failed is avoided still."""
        self._named.pop(tp, None)
