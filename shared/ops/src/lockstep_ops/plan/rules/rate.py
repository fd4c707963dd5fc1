"""Rates as people write them: `50MB/s`, `400MiB/s`, `1.5GB`. Pure."""

import re

UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?b|b)?(?:/s|ps)?", re.IGNORECASE)


def parse_rate(text: str) -> int:
    """Return the rate in a text, in bytes a second, at least 1.

    Raises:
        ValueError: The text is no rate. The message is a sentence.
    """
    match = _RATE.fullmatch(text.strip())
    rate = round(float(match[1]) * UNITS[(match[2] or "").upper()]) if match else 0
    if rate < 1:
        raise ValueError(f"{text!r} is no rate: write it as 50MB/s, 400MiB/s or 1.5GB/s")
    return rate


def rate_text(per_second: int) -> str:
    """Return a rate as a text: `50 MB/s`."""
    return f"{size_text(per_second)}/s"


def size_text(size: int) -> str:
    """Return a size as a text, in powers of ten as rates are: `41.2 GB`."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            amount = size / factor
            return f"{amount:,.0f} {unit}" if amount == int(amount) else f"{amount:,.1f} {unit}"
    return f"{size} B"
