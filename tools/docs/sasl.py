"""The table of mechanisms in `tls-and-sasl.md`, from their records: `python -m tools.docs.sasl` writes it anew.

It is between the lines that name it; the text around it is written by hand."""

import re
from pathlib import Path

from lockstep_config.clients.sasl import MECHANISMS, SaslMechanism

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "tls-and-sasl.md"
BLOCK = re.compile(r"(<!-- mechanisms -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its table as the mechanisms are now."""
    head = "| `sasl.mechanism` | login module | options it needs | Strimzi's type | the login |\n|---|---|---|---|---|"
    return BLOCK.sub(lambda block: "\n".join((f"{block[1]}", head, *map(_row, MECHANISMS.values()), "\n")), page)


def _row(mechanism: SaslMechanism) -> str:
    options = ", ".join(f"`{option}`" for option in mechanism.required) or "-"
    strimzi = f"`{mechanism.strimzi_type}`" if mechanism.strimzi_type else "-"
    return f"| `{mechanism.name}` | `{mechanism.login_module}` | {options} | {strimzi} | {mechanism.documentation} |"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
