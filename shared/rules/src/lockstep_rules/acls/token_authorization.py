"""Clusters on which OAuth tokens, not ACLs, hold principals or permissions. Pure."""

from collections.abc import Mapping


def by_tokens(authorizer: str) -> bool:
    """Return whether an authorizer of this class (`authorizer.class.name`) decides by OAuth tokens.

    Strimzi's `io.strimzi.kafka.oauth.server.authorizer.KeycloakAuthorizer` does. It may decide by ACLs too.
    """
    return "oauth" in authorizer.lower()


def token_notes(admins: Mapping[str, Mapping[str, str]], target: str) -> tuple[str, ...]:
    """Return what ACLs mean on each cluster with OAuth logins: one sentence for operators each.

    Args:
        admins: The Java properties of our own login by the alias of the cluster. Only OAUTHBEARER counts as OAuth.
        target: The alias of the target.
    """
    return tuple(
        f"principals of {alias} come from OAuth tokens (sasl.mechanism=OAUTHBEARER). ACLs are copied unchanged, and "
        f"hold for tokens with the same principals on {target}. What an authorizer decides by the tokens themselves "
        "is no ACL and is not copied"
        for alias, admin in admins.items()
        if admin.get("security.protocol", "").upper().startswith("SASL_")
        and admin.get("sasl.mechanism", "").upper() == "OAUTHBEARER"
    )
