"""SASL mechanisms: one record each, from which every client library has its login."""

from pathlib import Path

import pytest

from lockstep_config.clients.sasl import MECHANISMS, SaslMechanism, librdkafka_login, read_login
from lockstep_config.keys.client_keys import Untranslatable


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_login_of_every_mechanism_is_the_same_for_each_client(mechanism: SaslMechanism, tmp_path: Path) -> None:
    options = "".join(f' {option}="the {option}"' for option in mechanism.required)
    properties = {"sasl.mechanism": mechanism.name, "sasl.oauthbearer.token.endpoint.url": tmp_path.as_uri()}
    login = read_login({**properties, "sasl.jaas.config": f"{mechanism.login_module} required{options};"})
    librdkafka = librdkafka_login(login)
    assert librdkafka["sasl.mechanism"] == login.mechanism
    assert librdkafka.get("sasl.username") == login.principal_name()


@pytest.mark.parametrize(
    ("mechanism", "lacking"),
    [(mechanism, option) for mechanism in MECHANISMS.values() for option in mechanism.required],
)
def test_mechanism_without_an_option_it_needs_is_refused(mechanism: SaslMechanism, lacking: str) -> None:
    options = "".join(f' {option}="x"' for option in mechanism.required if option != lacking)
    line = f"{mechanism.login_module} required{options};"
    with pytest.raises(Untranslatable, match=f'has no {lacking}="..."'):
        read_login({"sasl.mechanism": mechanism.name, "sasl.jaas.config": line})
