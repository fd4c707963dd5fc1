"""Write the tables of mechanisms and of logins in `tls-and-sasl.md` from their records: `python -m tools.docs.sasl`.

Each is between the lines that name it; the text around it is written by hand."""

import re
from pathlib import Path

from lockstep_config.clients.sasl import LOGIN_PARTS, MECHANISMS, SaslMechanism

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "tls-and-sasl.md"
BLOCK = re.compile(r"(<!-- (mechanisms|logins) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with its tables as the records are now."""
    tables = {"mechanisms": _mechanisms(), "logins": _logins()}
    return BLOCK.sub(lambda block: "\n".join((block[1], *tables[block[2]], "\n")), page)


def _mechanisms() -> list[str]:
    head = "| `sasl.mechanism` | login module | options it needs | Strimzi's type | the login |\n|---|---|---|---|---|"
    return [head, *map(_row, MECHANISMS.values())]


def _logins() -> list[str]:
    head = "| of the login | setting of librdkafka | Lockstep's own connections |\n|---|---|---|"
    return [head, *(f"| {part.name} | `{part.librdkafka}` | {part.ours} |" for part in LOGIN_PARTS)]


def _row(mechanism: SaslMechanism) -> str:
    options = ", ".join(f"`{option}`" for option in mechanism.required) or "-"
    strimzi = f"`{mechanism.strimzi_type}`" if mechanism.strimzi_type else "-"
    return f"| `{mechanism.name}` | `{mechanism.login_module}` | {options} | {strimzi} | {mechanism.documentation} |"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
