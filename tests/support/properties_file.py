"""Files of properties."""

from collections.abc import Mapping


def properties_text(values: Mapping[str, str]) -> str:
    """Return a line for each key."""
    return "".join(f"{key} = {value}\n" for key, value in values.items())
