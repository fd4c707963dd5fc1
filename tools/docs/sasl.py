"""The tables of mechanisms and of logins in `tls-and-sasl.md`, from their records."""

from collections.abc import Mapping

from lockstep_config.clients.sasl import LOGIN_PARTS, MECHANISMS, SaslMechanism
from tools.docs.pages import DOCS, code, table

PAGE = DOCS / "guides" / "tls-and-sasl.md"


def blocks() -> Mapping[str, str]:
    """Return a row for each mechanism, and for each part of a login."""
    head = "`sasl.mechanism` | login module | options it needs | Strimzi's type | the login"
    parts = ((part.name, f"`{part.librdkafka}`", part.wire) for part in LOGIN_PARTS)
    logins = table("of the login | setting of librdkafka | Lockstep's own connections", parts)
    return {"mechanisms": table(head, map(_row, MECHANISMS.values())), "logins": logins}


def _row(mechanism: SaslMechanism) -> tuple[str, ...]:
    strimzi = f"`{mechanism.strimzi_type}`" if mechanism.strimzi_type else "-"
    options = code(mechanism.required) or "-"
    return f"`{mechanism.name}`", f"`{mechanism.login_module}`", options, strimzi, mechanism.documentation
