"""What is asked about ACLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka.admin import AclBinding as ConfluentAcl
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lockstep_runtime.kafka.admin_requests import AdminRequests, in_pieces, together
from lockstep_runtime.kafka.admin_types import DescribedAcl
from lockstep_runtime.kafka.control_producer import ACTS_WITHIN
from lockstep_runtime.kafka.outcome import Outcome

__all__ = ["AclRequests"]

CHANGED_AT_ONCE = 200
"""Bindings a request."""


class AclRequests(AdminRequests):
    async def describe_acls(self, resource_type: str = "TOPIC") -> tuple[DescribedAcl, ...]:
        """All bindings of a resource type, any pattern.

        librdkafka 2.16 drops the error of the whole answer: where there is no authorizer, or DESCRIBE on the cluster is
        denied, this is empty. `broker_config` and `cluster_operations` tell.
        """
        anything: Any = None  # matches every name, principal and host, which the annotations forget
        everything = AclBindingFilter(
            ResourceType[resource_type],
            anything,
            ResourcePatternType.ANY,
            anything,
            anything,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        future = (await self._connected()).describe_acls(everything, request_timeout=self._timeout)
        bindings = await self._one(future, "describe ACLs of", f"{resource_type.lower()} resources")
        return tuple(
            sorted(
                DescribedAcl(
                    b.restype.name,
                    b.name,
                    b.resource_pattern_type.name,
                    b.principal,
                    b.host,
                    b.operation.name,
                    b.permission_type.name,
                )
                for b in bindings
            )
        )

    async def create_acls(self, bindings: Sequence[DescribedAcl]) -> Outcome[DescribedAcl]:
        """Add each binding (adding one that exists is success). Keys of the outcome: `acl_key` of the binding."""
        timeout = self._timeout
        return await self._change(
            bindings, ConfluentAcl, (await self._connected()).create_acls, "create an ACL for", timeout
        )

    async def delete_acls(self, bindings: Sequence[DescribedAcl]) -> Outcome[DescribedAcl]:
        """Delete exactly these bindings; one that is not there is success. Keys of the outcome: `acl_key` of the
        binding. What is not done within `ACTS_WITHIN` is given up and raises ClusterUnreachable: a leader that froze
        must not go on with it. Raises ValueError for a binding that would match others too (UNKNOWN, ANY or MATCH in
        it)."""
        for one in bindings:
            words = {one.resource_type, one.pattern_type, one.operation, one.permission}
            if words & NOT_ONE or not (one.name and one.principal and one.host):
                raise ValueError(f"not one binding: {self.acl_key(one)}")
        timeout = min(ACTS_WITHIN, self._timeout)
        return await self._change(
            bindings, AclBindingFilter, (await self._connected()).delete_acls, "delete an ACL of", timeout
        )

    async def _change(
        self,
        bindings: Sequence[DescribedAcl],
        make: Callable[..., Any],
        ask: Callable[..., Any],
        operation: str,
        timeout: float,
    ) -> Outcome[DescribedAcl]:
        async def change(piece: Sequence[DescribedAcl]) -> Outcome[DescribedAcl]:
            theirs = {make(*_fields(b)): b for b in piece}
            futures = ask(list(theirs), request_timeout=timeout)
            outcome = await self._many(
                futures, operation, lambda a: f"{a.restype.name.lower()} {a.name}", lambda a: self.acl_key(theirs[a])
            )
            return _of(piece, outcome)

        return await together(in_pieces(bindings, CHANGED_AT_ONCE, change))

    @staticmethod
    def acl_key(b: DescribedAcl) -> str:
        """A binding in one line, as logs and outcomes name it."""
        return f"{b.permission} {b.operation} {b.resource_type}:{b.pattern_type}:{b.name} {b.principal} from {b.host}"


NOT_ONE = frozenset({"UNKNOWN", "ANY", "MATCH"})
"""Words by which a filter would match bindings beside the one that is meant."""


def _of(asked: Sequence[DescribedAcl], outcome: Outcome[object]) -> Outcome[DescribedAcl]:
    by_key = {AclRequests.acl_key(b): b for b in asked}
    return Outcome({key: by_key[key] for key in outcome.done}, outcome.failed, outcome.denied)


def _fields(b: DescribedAcl) -> tuple[Any, ...]:
    """What librdkafka's bindings and filters are made of alike."""
    return (
        ResourceType[b.resource_type],
        b.name,
        ResourcePatternType[b.pattern_type],
        b.principal,
        b.host,
        AclOperation[b.operation],
        AclPermissionType[b.permission],
    )
