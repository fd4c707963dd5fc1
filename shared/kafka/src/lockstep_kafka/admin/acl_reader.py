"""A reader of a cluster's ACLs that also tells why a cluster has none."""

from collections.abc import Collection

from confluent_kafka import KafkaError

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import NotPermitted, RequestRefused, RequestUnsupported
from lockstep_rules.acls.token_authorization import by_tokens
from lockstep_state.acl_binding import AclBinding
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence

CLUSTER = "the cluster (resource CLUSTER kafka-cluster)"


class NoAuthorizer(Exception):
    """A cluster that keeps no ACLs at all (SECURITY_DISABLED).

    This is a state of the cluster, not a failure.
    """

    def __init__(self, alias: str) -> None:
        self.reason = ReasonCode.NO_AUTHORIZER.to_reason(cluster=alias)
        super().__init__(format_sentence(self.reason))


class AclsUnsupported(Exception):
    """A cluster that does not know requests about ACLs.

    This is a state of the cluster, not a failure.
    """

    def __init__(self, alias: str) -> None:
        self.reason = ReasonCode.ACLS_UNSUPPORTED.to_reason(cluster=alias)
        super().__init__(format_sentence(self.reason))


class OAuthRules(Exception):
    """A cluster that authorizes by OAuth tokens and has no ACLs.

    This is a state of the cluster, not a failure.
    """

    def __init__(self, alias: str, authorizer: str) -> None:
        self.reason = ReasonCode.ACLS_FROM_TOKENS.to_reason(cluster=alias, authorizer=authorizer)
        super().__init__(format_sentence(self.reason))


async def read_acls(admin: Admin, resources: Collection[str]) -> frozenset[AclBinding]:
    """Return every ACL binding of these resource types, with any pattern type.

    librdkafka also returns no bindings if ACLs may not be read, if there is no authorizer, or if tokens decide. So an
    empty answer is checked with two further requests. If the broker's configs may not be read, the result is empty.

    Args:
        admin: The administration of the cluster.
        resources: Resource types, such as TOPIC and GROUP.

    Raises:
        AclsUnsupported: The cluster does not know the request.
        NoAuthorizer: The cluster has no authorizer.
        OAuthRules: The cluster authorizes by OAuth tokens.
        NotPermitted: DESCRIBE on the cluster is missing.
        RequestRefused: The cluster refused the request for another reason.
        ClusterUnreachable: No broker answered.
    """
    bindings: frozenset[AclBinding] = frozenset()
    try:
        for resource in sorted(resources):
            bindings |= await admin.describe_acls(resource)
    except RequestUnsupported as unsupported:
        raise AclsUnsupported(admin.alias) from unsupported
    except RequestRefused as refused:
        raise (NoAuthorizer(admin.alias) if refused.code == KafkaError.SECURITY_DISABLED else refused) from refused
    except NotPermitted as denied:
        raise acls_denied(admin, "DESCRIBE") from denied
    if not bindings:
        operations = await admin.cluster_operations()
        if operations is not None and "DESCRIBE" not in operations:
            raise acls_denied(admin, "DESCRIBE")
        authorizer = await admin.broker_config("authorizer.class.name")
        if authorizer == "":
            raise NoAuthorizer(admin.alias)
        if authorizer is not None and by_tokens(authorizer):
            raise OAuthRules(admin.alias, authorizer)
    return bindings


def acls_denied(admin: Admin, operation: str) -> NotPermitted:
    """Return the error for ACLs that may not be read (DESCRIBE) or changed (ALTER)."""
    remedy = admin.access.remedy("cluster", "", operation.capitalize())
    return NotPermitted(admin.alias, operation, CLUSTER, remedy)
