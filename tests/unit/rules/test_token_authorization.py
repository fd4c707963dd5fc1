"""The notes about OAuth tokens that authorize beside ACLs, or instead of them."""

from lockstep_rules.acls.token_authorization import by_tokens, token_notes

OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
NONE = {"security.protocol": "PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def test_an_authorizer_that_decides_by_tokens_is_known_by_its_name() -> None:
    assert by_tokens("io.strimzi.kafka.oauth.server.authorizer.KeycloakAuthorizer")
    assert not by_tokens("org.apache.kafka.metadata.authorizer.StandardAuthorizer")


def test_each_cluster_with_oauth_logins_is_named() -> None:
    assert token_notes({"A": SCRAM, "B": NONE}, "B") == ()
    (note,) = token_notes({"A": OAUTH, "B": SCRAM}, "B")
    assert note.startswith("principals of A come from OAuth tokens")
    assert len(token_notes({"A": OAUTH, "B": OAUTH}, "B")) == 2
