"""The result of adding and deleting ACL bindings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from lockstep_kafka.admin.acl_reader import NoAuthorizer, acls_denied
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_state.acl_binding import AclBinding


@dataclass(frozen=True, slots=True)
class AclsChanged:
    """The bindings that were added or deleted, and the errors of the others."""

    done: tuple[AclBinding, ...] = ()
    refused: Mapping[AclBinding, NotPermitted | RequestRefused] = field(default_factory=dict)


def acls_changed(admin: Admin, bindings: Sequence[AclBinding], outcome: Outcome[AclBinding]) -> AclsChanged:
    """Return the result of a request to add or delete bindings. Raises NoAuthorizer."""
    if any(trouble.code == KafkaError.SECURITY_DISABLED for trouble in outcome.failed.values()):
        raise NoAuthorizer(admin.alias)
    refused = outcome.failed | dict.fromkeys(outcome.denied, acls_denied(admin, "ALTER"))
    return AclsChanged(
        tuple(sorted(outcome.done.values())),
        {binding: refused[str(binding)] for binding in bindings if str(binding) in refused},
    )
