"""A group with checkpoints of MirrorMaker 2 is translated on after a take-over, and never too far."""

import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_state.codecs.mm2_codec import Checkpoint, decode_checkpoint
from tests.contract.takeover_flow import EVERY_SECOND, MORE, PARTITIONS, Moved, dedicated, flushes, plan_of, say
from tests.contract.turns import until
from tests.support.broker import Broker
from tests.support.clusters import commit_offset, committed_offset, end_offsets
from tests.support.control import read_so_far
from tests.support.mirror import Mirror
from tests.support.mm2 import MirrorMaker
from tests.support.services import ServiceProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex[:6]


# -- groups ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reader:
    """A group on the source that reads the topic, always near its end."""

    group: str
    moved: Moved

    def moves(self) -> dict[int, int]:
        """By partition where it stands then."""
        copy = self.moved.copy
        places = {number: end - 50 for number, end in end_offsets(copy.a, copy.topic).items()}
        for number, offset in places.items():
            commit_offset(copy.a, self.group, copy.topic, number, offset)
        return places

    def checkpoints(self) -> list[Checkpoint]:
        """All that were ever written, oldest first."""
        topic = f"{self.moved.flow.source}.checkpoints.internal"
        return [decode_checkpoint(r.key, r.value) for r in read_so_far(self.moved.copy.b, topic)]

    def newest(self) -> dict[int, Checkpoint]:
        return {one.partition: one for one in self.checkpoints()}

    def on_target(self) -> dict[int, int | None]:
        copy = self.moved.copy
        return {number: committed_offset(copy.b, self.group, copy.remote, number) for number in range(PARTITIONS)}

    def is_translated(self, places: Mapping[int, int], *, exactly: bool = False) -> None:
        """Returns once each place has its checkpoint, and the group on the target stands where that leads."""

        def there() -> bool:
            newest, seen = self.newest(), self.moved.copy.seen()
            assert {number: one.upstream for number, one in newest.items()} == dict(places)
            for number, one in newest.items():
                assert not exactly or seen.again(number, one.upstream, one.downstream) == 0, one
            assert self.on_target() == {number: one.downstream for number, one in newest.items()}
            return True

        until(there, what=f"{self.group} stands at {places}")

    def was_never_beyond(self) -> int:
        """How many checkpoints there were."""
        seen, written = self.moved.copy.seen(), self.checkpoints()
        for one in written:
            assert one.downstream <= len(seen.copy[one.partition])
            assert seen.missed(one.partition, one.upstream, one.downstream) == 0, one
        return len(written)


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_checkpointed_group_of_mm2_is_translated_on_and_never_too_far(
    tmp_path: Path, brokers: tuple[Broker, Broker], mark: str, ended: str
) -> None:
    """By MM2, by us, and where MM2 was stopped in order by MM2 again, on the syncs that both have written. Of a killed
    one some records are there twice, and MM2's syncs lead into the first ones."""
    lines = [f"{what}.interval.seconds = 1" for what in EVERY_SECOND]
    lines += ["sync.group.offsets.enabled = true", "offset.lag.max = 100", flushes(mark)]
    moved = dedicated(tmp_path, brokers, mark, *lines, f"groups = reader-{mark}")
    reader = Reader(f"reader-{mark}", moved)
    service = ServiceProcess("lockstep_checkpoint", moved.file, str(moved.flow))
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            until(lambda: len(moved.mirrored.mm2_progress(moved.copy.topic)) == PARTITIONS, what="MM2 has flushed")
            moved.copy.wait_for_more(MORE)
            reader.is_translated(reader.moves())
            by_mm2 = reader.was_never_beyond()
            mm2.stop() if ended == "stopped" else mm2.kill()
            until(lambda: plan_of(moved), what="MM2 is gone")
            assert "1 with checkpoints" in moved.lockstep("takeover", "--yes")
            since = moved.not_written_down()
            with Mirror(moved.file, [moved.mirrored]), service:
                moved.copy.wait_for_more(MORE)
                reader.is_translated(reader.moves(), exactly=True)
                by_us = reader.was_never_beyond() - by_mm2
                moved.lockstep("handback", "--stop", "--yes")
            mm2.start()
            moved.copy.wait_for_more(MORE)
            reader.is_translated(reader.moves())
            mm2.stop()
        writing.close()
    again = reader.was_never_beyond() - by_mm2 - by_us
    count = moved.copy.counted()
    say(f"MM2 {ended} {since} after it wrote; checkpoints {by_mm2} of MM2, {by_us} of Lockstep, {again} of MM2", count)
    assert (count.lost, count.doubled, count.displaced) == (0, since, 0)
    assert (since > 0) == (ended == "killed")
    assert min(by_mm2, by_us, again) > 0
