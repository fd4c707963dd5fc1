"""What a command line says of a switch (no I/O)."""

from dataclasses import dataclass

from lockstep_cli.switch.switch_steps import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOptions:
    """How a switch is to be done. `within_s`: seconds that each step may wait."""

    verb: Verb
    topics: tuple[str, ...] = ()
    """Source topics; (): all that are mirrored."""
    cutoff_ms: int = 0
    drill: bool = False
    rewind_groups: bool = False
    diverged: str = ""
    allowed_loss: int = -1
    force: bool = False
    within_s: float = 300.0
