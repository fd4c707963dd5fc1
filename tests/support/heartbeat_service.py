"""The heartbeat service as the plainest one, and waiting for what it does."""

from functools import partial

from tests.support import eventually

HEARTBEAT = "lockstep_heartbeat"
wait_until = partial(eventually.wait_until, within=60.0, every=0.25)
