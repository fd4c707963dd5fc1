"""Slips of writing in values: what selects nothing, comments behind a value, other quotes, placeholders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.client_settings import source_consumer
from lockstep_config.resolve.value_typos import find_placeholder, find_typo
from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.unmatchable_patterns import LEGAL, needed_but_illegal
from lockstep_state.names import Flow

from .conftest import LoadText, MistakesOf

COMMENT = "# begins a comment only at the start of a line"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("orders.* # only orders", COMMENT),
        ('"orders.*"', "quotes belong to the value: write it without"),
        ("'orders'", "quotes belong to the value: write it without"),
        ("orders.* payments", "patterns are separated by commas"),
        ("orders;payments", "this needs ';'"),
        ("orders/eu", "this needs '/'"),
        ("“orders”", "it has typographic quotes (“ ”)"),
        ("[ ]orders", "this needs a blank"),
        ("ördérs", "this needs 'ö'"),
    ],
)
@pytest.mark.parametrize(("key", "does"), [("topics", "selects"), ("topics.exclude", "leaves out")])
def test_a_pattern_that_matches_no_legal_name_is_named_with_the_reason(
    key: str, does: str, value: str, why: str, load_text: LoadText
) -> None:
    notes = [one.message for one in load_text(f"A->B.{key} = {value}\n").notes]
    said = [one for one in notes if f"which {does} no topic" in one]
    assert len(said) == 1, notes
    assert why in said[0]


@pytest.mark.parametrize(
    "value", ["orders.*", r"orders\..*", "a, b|c d", "[^ ]+", "x( y)?", r"\w+-\d{2}", "(?i)ORDERS"]
)
def test_a_pattern_that_may_match_is_not_remarked_on(value: str, load_text: LoadText) -> None:
    assert load_text(f"A->B.topics = {value}\n").notes == ()


def test_a_group_may_be_called_anything(load_text: LoadText) -> None:
    assert load_text("A->B.groups = my group, a/b\n").notes == ()


@given(st.text(alphabet=st.sampled_from('ab.#" ;|()[]*?+-^_/'), max_size=12), st.text(alphabet=sorted(LEGAL)))
def test_pattern_reported_as_unmatchable_matches_no_legal_name(pattern: str, name: str) -> None:
    try:
        needed = needed_but_illegal(pattern)
        names = NameFilter((pattern,))
    except UntranslatablePattern:
        return
    if needed:
        assert not names.matches(name)


class TestBooleans:
    @pytest.mark.parametrize("value", ["false # passive", "no", "off", "0", "FALSE;", ""])
    def test_a_flow_whose_enabled_is_no_boolean_does_not_run_and_the_others_do(
        self, value: str, load_text: LoadText
    ) -> None:
        loaded = load_text(f"B->A.enabled = {value}\n")
        assert [str(settings.flow) for settings in loaded.flows] == ["A->B"]
        (note,) = [one for one in loaded.notes if one.key == "B->A.enabled"]
        assert "as in MirrorMaker it counts as false" in note.message
        assert (COMMENT in note.message) == ("#" in value)

    @pytest.mark.parametrize("value", ["true # active", "yes", "1", "on", "${ACTIVE}"])
    def test_enabled_with_a_slip_of_true_is_a_mistake(self, value: str, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of(f"B->A.enabled = {value}\n")
        assert "so that MirrorMaker takes it as false" in mistake

    def test_a_comment_behind_a_number_is_named(self, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of("tasks.max = 4 # four\n")
        assert mistake.endswith(COMMENT)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("${SOURCE}", "${SOURCE} is a placeholder that nobody filled"),
        ("${SOURCE:-kafka}:9092", "${SOURCE:-kafka} is a placeholder"),
        ("$(SOURCE):9092", "$(SOURCE) is a placeholder"),
        ("$SOURCE:9092", "$SOURCE is a placeholder"),
        ('"{{ .Values.source }}"', "{{ .Values.source }} is part of a template to be rendered first"),
        ("{% if x %}", "{% if x %} is part of a template"),
        ("<%= source %>", "<%= source %> is part of a template"),
        ("<your-broker>:9092", "<your-broker> is a placeholder"),
        ("{BROKERS ADDRESS}", "{BROKERS ADDRESS} is a placeholder"),
        (r"\p{Alpha}+", ""),
        ("@SOURCE@", "@SOURCE@ is a placeholder"),
        ("%SOURCE%", "%SOURCE% is a placeholder"),
        ("kafka-1.example.org:9092", ""),
        ("${env:SOURCE}", ""),
        ("${file:/opt/x:y}", ""),
        (r"orders$|payments\d{2}", ""),
        (r"(?<name>a)\k<name>", ""),
        ("user@example.org", ""),
    ],
)
def test_placeholder_is_distinguished_from_a_value(text: str, what: str) -> None:
    assert find_placeholder(text).startswith(what) if what else find_placeholder(text) == ""


@pytest.mark.parametrize("text", ["a#b", "kafka:9092", "it's"])
def test_an_ordinary_value_has_no_slip(text: str) -> None:
    assert find_typo(text) == ""


LOGIN = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
MODULE = "A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_typographic_quotes_around_a_password_are_named_as_such(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(f"{LOGIN}{MODULE} username=“u” password=“s3cret”;\n")
    assert "it has typographic quotes (“ ”)" in mistake
    assert "s3cret" not in mistake


def test_straight_quotes_may_hold_any_other(load_text: LoadText) -> None:
    login = load_text(f'{LOGIN}{MODULE} username="u" password="a“b”";\n')
    assert not any("typographic" in one.message for one in login.notes)


@pytest.mark.parametrize("value", ["${PASSWORD}", "{{ password }}", "<password>", "$PASSWORD"])
def test_an_unfilled_password_is_remarked_on_without_repeating_it(value: str, load_text: LoadText) -> None:
    loaded = load_text(f'{LOGIN}{MODULE} username="u" password="{value}";\n')
    (note,) = [one for one in loaded.notes if one.key == "A.sasl.jaas.config"]
    assert note.message.startswith("has a password that looks like ")
    assert value not in note.message


@pytest.mark.parametrize("value", ["${SOURCE}:9092", "{{ source }}:9092", "<broker>:9092", "${SOURCE}"])
def test_bootstrap_address_with_a_placeholder_is_refused(value: str, mistakes_of: MistakesOf) -> None:
    whole = f"clusters = A, B\nA.bootstrap.servers = {value}\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
    (mistake,) = mistakes_of(whole=whole)
    assert "placeholder that nobody filled" in mistake or "template to be rendered first" in mistake


def test_enabled_in_capitals_runs_both_flows(load_text: LoadText) -> None:
    assert load_text("B->A.enabled = TRUE\n").flow(Flow("B", "A"))


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
CONNECTION_STRING = "Endpoint=sb://orders.servicebus.windows.net/;SharedAccessKeyName=mirror;SharedAccessKey=aG9yc2U="


def plain_login(user: str, password: str) -> str:
    jaas = f"A.sasl.jaas.config = {PLAIN} username={user} password={password};\n"
    return f"A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n{jaas}"


@pytest.mark.parametrize(
    ("user", "password", "principal"),
    [
        ('"$ConnectionString"', f'"{CONNECTION_STRING}"', "$ConnectionString"),
        ("'ABCDEFGHIJKLMNOP'", "'cflt/x+Y0zq9=='", "ABCDEFGHIJKLMNOP"),
        ('"mirror@example.iam.gserviceaccount.com"', '"eyJ0eXBlIjoi"', "mirror@example.iam.gserviceaccount.com"),
    ],
    ids=["connection string of Event Hubs", "API key of Confluent Cloud", "key of Google Cloud"],
)
def test_plain_login_of_a_service_is_read_as_it_is(
    user: str, password: str, principal: str, load_text: LoadText
) -> None:
    configuration = load_text(plain_login(user, password))
    assert configuration.notes == ()
    flow = configuration.flow(Flow("A", "B"))
    assert flow is not None
    conf = source_consumer(flow, "data-plane")
    assert (conf["sasl.username"], conf["sasl.password"]) == (principal, password.strip("\"'"))


def test_event_hubs_user_without_its_connection_string_is_remarked_on(load_text: LoadText) -> None:
    (note,) = load_text(plain_login('"$ConnectionString"', '"aG9yc2U="')).notes
    assert "whose password is Event Hubs' whole connection string" in note.message
    assert "aG9yc2U" not in note.message


@pytest.mark.parametrize("user", ['"$KAFKA_USER"', '"${KAFKA_USER}"', '"$ConnectionStrings"'])
def test_user_that_nobody_filled_is_still_remarked_on(user: str, load_text: LoadText) -> None:
    assert any("looks like a placeholder" in note.message for note in load_text(plain_login(user, '"x"')).notes)
