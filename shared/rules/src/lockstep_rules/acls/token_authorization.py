"""Where principals, or what they may do, come from OAuth tokens: no ACL can say that. Pure."""

from collections.abc import Mapping


def by_tokens(authorizer: str) -> bool:
    """Whether an authorizer of this class name (`authorizer.class.name`) decides by OAuth tokens, as Strimzi's
    `io.strimzi.kafka.oauth.server.authorizer.KeycloakAuthorizer` does. It may look at ACLs too."""
    return "oauth" in authorizer.lower()


def token_notes(admins: Mapping[str, Mapping[str, str]], target: str) -> tuple[str, ...]:
    """What is to be known of the clusters with OAuth logins, a sentence each, by the properties (Java's names) with
    which we ourselves log in."""
    return tuple(
        f"principals of {alias} come from OAuth tokens (sasl.mechanism=OAUTHBEARER). ACLs are copied unchanged, and "
        f"hold for tokens with the same principals on {target}. What an authorizer decides by the tokens themselves "
        "is no ACL and is not copied"
        for alias, admin in admins.items()
        if admin.get("security.protocol", "").upper().startswith("SASL_")
        and admin.get("sasl.mechanism", "").upper() == "OAUTHBEARER"
    )
