"""What is printed on a console."""

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType


def printed(parts: Iterable[RenderableType], width: int = 200) -> str:
    """Return what a console of this width shows of the parts."""
    text = io.StringIO()
    console = Console(file=text, width=width)
    for part in parts:
        console.print(part)
    return text.getvalue()
