"""What a terminal shows of lines and tables."""

import io
from collections.abc import Iterable

from rich.console import RenderableType

from lockstep_cli.rendering.console import WholeLineConsole


def printed(parts: Iterable[RenderableType], width: int = 200, *, terminal: bool = True) -> str:
    """Return the parts at this width, or with whole lines as a file has them."""
    stream = io.StringIO()
    console = WholeLineConsole(file=stream, width=width, highlight=False)
    for part in parts:
        console.print(part, soft_wrap=not terminal)
    return stream.getvalue()
