"""Admin requests about ACLs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from confluent_kafka.admin import AclBinding as ConfluentAcl
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lockstep_kafka.admin.admin_requests import AdminRequests
from lockstep_kafka.admin.request_pieces import ask_in_pieces, merge_outcomes
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.librdkafka.control_producer import ACTS_WITHIN
from lockstep_state.acl_binding import UNKNOWN, AclBinding

CHANGED_AT_ONCE = 200
"""ACL bindings in one request that creates or deletes them."""


class AclRequests(AdminRequests):
    async def describe_acls(self, resource_type: str = "TOPIC") -> frozenset[AclBinding]:
        """Return all ACL bindings of a resource type, with any pattern type.

        librdkafka 2.16 drops the error of the whole answer. So the result is empty if the cluster has no authorizer,
        or if DESCRIBE on the cluster is denied. `broker_config` and `cluster_operations` tell these cases apart.
        """
        anything: Any = None  # None matches every name, principal and host; the annotations lack it
        everything = AclBindingFilter(
            ResourceType[resource_type],
            anything,
            ResourcePatternType.ANY,
            anything,
            anything,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        bindings = await self._again_if_closed(
            partial(self._describe_acls, everything), f"{resource_type.lower()} resources"
        )
        return frozenset(
            AclBinding(
                name=b.name,
                principal=b.principal,
                operation=b.operation.name,
                permission=b.permission_type.name,
                host=b.host,
                resource=b.restype.name,
                pattern=b.resource_pattern_type.name,
            )
            for b in bindings
        )

    async def _describe_acls(self, wanted: AclBindingFilter, subject: str) -> Any:
        future = (await self._connected()).describe_acls(wanted, request_timeout=self._timeout)
        return await self._answer(future, "describe ACLs of", subject)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> Outcome[AclBinding]:
        """Create each ACL binding.

        One that exists already is a success. The keys of the outcome are the bindings as text.
        """
        timeout = self._timeout
        return await self._change(
            bindings, ConfluentAcl, (await self._connected()).create_acls, "create an ACL for", timeout
        )

    async def delete_acls(self, bindings: Sequence[AclBinding]) -> Outcome[AclBinding]:
        """Delete exactly these ACL bindings.

        One that does not exist is a success. The keys of the outcome are the bindings as text. The request is bounded
        by `ACTS_WITHIN`: a leader that froze must not go on with it.

        Raises:
            ClusterUnreachable: The requests were not done within `ACTS_WITHIN`.
            ValueError: A binding would match others too: it has UNKNOWN, ANY or MATCH, or an empty field.
        """
        for binding in bindings:
            words = {binding.resource, binding.pattern, binding.operation, binding.permission}
            if words & NOT_ONE or not (binding.name and binding.principal and binding.host):
                raise ValueError(f"not one binding: {binding}")
        timeout = min(ACTS_WITHIN, self._timeout)
        return await self._change(
            bindings, AclBindingFilter, (await self._connected()).delete_acls, "delete an ACL of", timeout
        )

    async def _change(
        self,
        bindings: Sequence[AclBinding],
        make: Callable[..., Any],
        ask: Callable[..., Any],
        operation: str,
        timeout: float,
    ) -> Outcome[AclBinding]:
        async def change(piece: Sequence[AclBinding]) -> Outcome[AclBinding]:
            originals = {make(*_fields(b)): b for b in piece}
            futures = ask(list(originals), request_timeout=timeout)
            outcome = await self._collect(
                futures, operation, lambda a: f"{a.restype.name.lower()} {a.name}", lambda a: str(originals[a])
            )
            return Outcome({str(b): b for b in piece if str(b) in outcome.done}, outcome.failed, outcome.denied)

        return await merge_outcomes(ask_in_pieces(bindings, CHANGED_AT_ONCE, change))


NOT_ONE = frozenset({UNKNOWN, "ANY", "MATCH"})
"""Words in a filter that match more than the one binding that is meant."""


def _fields(b: AclBinding) -> tuple[Any, ...]:
    """Return the arguments that librdkafka's ACL bindings and ACL filters share."""
    return (
        ResourceType[b.resource],
        b.name,
        ResourcePatternType[b.pattern],
        b.principal,
        b.host,
        AclOperation[b.operation],
        AclPermissionType[b.permission],
    )
