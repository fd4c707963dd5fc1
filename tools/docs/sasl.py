"""The table of mechanisms in `tls-and-sasl.md`, from their records."""

from collections.abc import Mapping

from lockstep_config.clients.sasl import MECHANISMS, SaslMechanism
from tools.docs.pages import DOCS, code, table

PAGE = DOCS / "guides" / "tls-and-sasl.md"


def blocks() -> Mapping[str, str]:
    """Return a row for each mechanism."""
    head = "`sasl.mechanism` | login module | options it needs | Strimzi's type | the login"
    return {"mechanisms": table(head, map(_row, MECHANISMS.values()))}


def _row(mechanism: SaslMechanism) -> tuple[str, ...]:
    strimzi = f"`{mechanism.strimzi_type}`" if mechanism.strimzi_type else "-"
    options = code(mechanism.required) or "-"
    return f"`{mechanism.name}`", f"`{mechanism.login_module}`", options, strimzi, mechanism.documentation
