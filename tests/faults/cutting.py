"""Ways to end connections with requests in flight, whose outcome nobody knows then."""

import random
import time

from tests.support.eventually import wait_until
from tests.support.proxy import Proxy


def cut_with_answers_held(proxy: Proxy, dice: random.Random) -> None:
    """What is in flight was received by the broker and its answers are lost."""
    proxy.hold(requests=False, answers=True)
    before = proxy.requested
    wait_until(lambda: proxy.requested > before, what="a request under way")
    time.sleep(dice.uniform(0.0, 0.1))  # not to wait for anything: where in the pipeline the cut falls is to vary
    proxy.cut()
    proxy.let_pass()


def cut_with_requests_held(proxy: Proxy, dice: random.Random) -> None:
    """What is in flight never reaches the broker."""
    proxy.hold(requests=True, answers=False)
    time.sleep(dice.uniform(0.05, 0.2))
    proxy.cut()
    proxy.let_pass()


CUTS = (cut_with_answers_held, cut_with_requests_held)
