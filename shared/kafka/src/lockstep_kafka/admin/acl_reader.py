"""Every ACL about some kinds of resource of a cluster, or why there are none to be had."""

from collections.abc import Collection

from confluent_kafka import KafkaError

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import NotPermitted, RequestRefused, RequestUnsupported
from lockstep_rules.acls.token_authorization import by_tokens
from lockstep_state.acl_binding import AclBinding
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence

CLUSTER = "the cluster (resource CLUSTER kafka-cluster)"


class NoAuthorizer(Exception):
    """The cluster keeps no ACLs at all (SECURITY_DISABLED). A state of that cluster, not a failure."""

    def __init__(self, alias: str) -> None:
        self.reason = ReasonCode.NO_AUTHORIZER.to_reason(cluster=alias)
        super().__init__(format_sentence(self.reason))


class AclsUnsupported(Exception):
    """The cluster does not know requests about ACLs. A state of that cluster, not a failure."""

    def __init__(self, alias: str) -> None:
        self.reason = ReasonCode.ACLS_UNSUPPORTED.to_reason(cluster=alias)
        super().__init__(format_sentence(self.reason))


class OAuthRules(Exception):
    """The cluster decides by OAuth tokens and has no ACLs. A state of that cluster, not a failure."""

    def __init__(self, alias: str, authorizer: str) -> None:
        self.reason = ReasonCode.ACLS_FROM_TOKENS.to_reason(cluster=alias, authorizer=authorizer)
        super().__init__(format_sentence(self.reason))


async def read_acls(admin: Admin, resources: Collection[str]) -> frozenset[AclBinding]:
    """Every binding about such resources (TOPIC, GROUP), of any pattern.

    Raises AclsUnsupported, NoAuthorizer, OAuthRules, NotPermitted (DESCRIBE on the cluster), RequestRefused and
    ClusterUnreachable. librdkafka answers with no bindings where one of the three in the middle holds, so they are
    asked for then. If the broker's
    settings may not be read, these cases show as no bindings.
    """
    found: frozenset[AclBinding] = frozenset()
    try:
        for resource in sorted(resources):
            found |= await admin.describe_acls(resource)
    except RequestUnsupported as unsupported:
        raise AclsUnsupported(admin.alias) from unsupported
    except RequestRefused as refused:
        raise (NoAuthorizer(admin.alias) if refused.code == KafkaError.SECURITY_DISABLED else refused) from refused
    except NotPermitted as denied:
        raise acls_denied(admin, "DESCRIBE") from denied
    if not found:
        operations = await admin.cluster_operations()
        if operations is not None and "DESCRIBE" not in operations:
            raise acls_denied(admin, "DESCRIBE")
        authorizer = await admin.broker_config("authorizer.class.name")
        if authorizer == "":
            raise NoAuthorizer(admin.alias)
        if authorizer is not None and by_tokens(authorizer):
            raise OAuthRules(admin.alias, authorizer)
    return found


def acls_denied(admin: Admin, operation: str) -> NotPermitted:
    """That ACLs may not be read (DESCRIBE), or changed (ALTER)."""
    remedy = admin.access.remedy("cluster", "", operation.capitalize())
    return NotPermitted(admin.alias, operation, CLUSTER, remedy)
