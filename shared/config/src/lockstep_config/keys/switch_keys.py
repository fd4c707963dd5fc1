"""The properties `lockstep.switch.*`: how clients are switched to the target."""

from dataclasses import dataclass
from datetime import timedelta

from lockstep_config.keys.key_types import Key, interval
from lockstep_config.keys.key_values import key_field


def _hook(name: str, when: str) -> Key:
    return Key(
        name=f"lockstep.switch.hook.{name}",
        default="",
        meaning=f"a command, or an http address, that a switch runs {when}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSettings:
    """Settings of `lockstep.switch.*` about a switch of clients to the target.

    There is a field for each key, with its type and its default.
    """

    max_lag: timedelta = key_field(
        interval(
            "lockstep.switch.max.lag.seconds",
            "10",
            "lag of a partition, in seconds, up to which the flow is ready to switch",
        )
    )
    hook_before: str = key_field(_hook("before", "before anything changes; if it fails, nothing is"))
    hook_fence: str = key_field(
        _hook("fence", "when the source's writers are to stop; if it fails, nothing is changed")
    )
    hook_redirect: str = key_field(_hook("redirect", "when clients are to go to the target"))
    hook_after: str = key_field(_hook("after", "at the end, also of an aborted switch"))
    hook_timeout: timedelta = key_field(
        interval("lockstep.switch.hook.timeout.seconds", "60", "seconds that each hook of a switch may take")
    )
