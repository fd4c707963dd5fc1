"""Values that cannot be used, and the slips of writing behind them: comments, quotes, placeholders, templates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.client_settings import source_consumer
from lockstep_config.resolve.value_typos import find_placeholder, find_typo, find_unfilled
from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.unmatchable_patterns import needed_but_illegal
from lockstep_state.names import TOPIC_CHARACTERS, Flow

from .conftest import A_TO_B, LoadText, MistakesOf

COMMENT = "# begins a comment only at the start of a line"
QUOTES = "quotes belong to the value: write it without"
UNFILLED = "is a placeholder that nobody filled"
TEMPLATE = "is part of a template to be rendered first"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, f"{text} {UNFILLED}") for text in ("${SOURCE}", "${SOURCE:-x}", "${a.b}", "$(SOURCE)", "$SOURCE")),
        *(
            (text, f"{text} {UNFILLED}")
            for text in ("<source>", "<your broker>", "{BROKERS ADDRESS}", "%SOURCE%", "@SOURCE@", "@@s@@", "#{s}")
        ),
        *((text, f"{text} {TEMPLATE}") for text in ("{{ source }}", "{{- .Values.a }}", "{% if a %}", "<%= a %>")),
        ("my-${ENV}-kafka:9092", f"${{ENV}} {UNFILLED}"),
        ("${SOURCE:-kafka}:9092", f"${{SOURCE:-kafka}} {UNFILLED}"),
        ('"{{ source }}:9092"', f"{{{{ source }}}} {TEMPLATE}"),
    ],
)
def test_placeholder_is_distinguished_from_a_template(text: str, said: str) -> None:
    assert find_placeholder(text) == said
    assert find_typo(text) == said


@pytest.mark.parametrize(
    "text",
    [
        *("${env:SOURCE}", "${file:/etc/a.properties:b}", "${secrets:ns/name:key}", "a:9092", "orders$", "(?<name>a)"),
        *(r"\$orders", "a.*|b$", "x{2,3}", "user@example.org", "CN=a,O=b", "RULE:^CN=(.*?),.*$/$1/L", "50%", "a#b"),
        *(r"\p{Alpha}+", "kafka-1.example.org:9092", r"orders$|payments\d{2}", r"(?<name>a)\k<name>", "it's"),
    ],
)
def test_ordinary_value_is_neither_placeholder_nor_slip(text: str) -> None:
    assert find_placeholder(text) == find_typo(text) == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *(
            (f"{key} = {value} # for now", COMMENT)
            for key, value in (
                *(("tasks.max", "4"), ("replication.factor", "3"), ("A->B.sync.topic.acls.enabled", "false")),
                *(("A->B.emit.checkpoints.enabled", "true"), ("A->B.enabled", "true"), ("A.security.protocol", "SSL")),
                *(("offset-syncs.topic.location", "target"), ("A.bootstrap.servers", "a:9092"), ("clusters", "A, B")),
                *(("B.producer.compression.type", "lz4"), ("A.consumer.fetch.min.bytes", "4")),
                *(("replication.policy.separator", "_"), ("lockstep.on.refused", "halt")),
                ("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
                ("A.security.protocol = SASL_SSL\nA.sasl.mechanism", "PLAIN"),
            )
        ),
        ('A.bootstrap.servers = "a:9092"', QUOTES),
        ('A->B.enabled = "true"', QUOTES),
        ("replication.policy.class = 'org.apache.kafka.connect.mirror.IdentityReplicationPolicy'", QUOTES),
        ('A.security.protocol = SSL\nA.ssl.truststore.location = "/etc/a.jks"', QUOTES),
        ("tasks.max = \u201c4\u201d", "it has typographic quotes (\u201c \u201d)"),
        *((f"A.bootstrap.servers = {text}", f"{text} {UNFILLED}") for text in ("${SOURCE}", "$SOURCE", "<source>")),
        ("A.bootstrap.servers = ${SOURCE}:9092", f"${{SOURCE}} {UNFILLED}"),
        ("A.bootstrap.servers = '<source>:9092'", f"<source> {UNFILLED}"),
        ('A.bootstrap.servers = "{{ source }}"', TEMPLATE),
        ("B->A.enabled = ${BOTH}", UNFILLED),
        ("A->B.topics = ${TOPICS}", UNFILLED),
        ("A->B.topics = {{ topics }}", TEMPLATE),
        ("A->B.topics = ${TOPICS:-.*}", "is a placeholder of a shell that nobody filled"),
        ("tasks.max = {{ tasks }}", TEMPLATE),
        ("{{ alias }}.security.protocol = SSL", TEMPLATE),
    ],
)
def test_bad_value_has_its_slip(line: str, said: str, mistakes_of: MistakesOf) -> None:
    assert any(said in mistake for mistake in mistakes_of(f"{line}\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{PLAIN} username=\u201ca\u201d password=\u201cs3cret\u201d;", "has typographic quotes (\u201c \u201d)"),
        (f"{PLAIN} username=\\u2018a\\u2019 password=s3cret;", "has typographic quotes (\u2018 \u2019)"),
        (f"\"{PLAIN} username='a' password='s3cret';\"", "is in quotes as a whole"),
        (f'{PLAIN} username="a" password="s3cret"; # ours', "has # behind its semicolon"),
        ("{{ login }}", "it looks like part of a template to be rendered first"),
        ("'${LOGIN}'", "it looks like a placeholder that nobody filled"),
    ],
)
def test_slip_in_a_login_is_refused_and_not_shown(text: str, said: str, mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of(SASL + text + "\n")
    assert mistake.startswith("7 A.sasl.jaas.config: ")
    assert said in mistake
    assert "s3cret" not in mistake


def test_placeholder_in_a_password_is_noted_and_not_shown(load_text: LoadText) -> None:
    loaded = load_text(f'{SASL}{PLAIN} username="{{{{ user }}}}" password="<s3cret>";\n')
    assert [note.message for note in loaded.notes if note.line == 7] == [
        "has a password that looks like a placeholder that nobody filled",
        "has a username that looks like part of a template to be rendered first",
    ]


def test_typographic_quotes_inside_straight_quotes_belong_to_the_password(load_text: LoadText) -> None:
    loaded = load_text(f'{SASL}{PLAIN} username="a" password="\\u201cx\\u201d";\n')
    assert [note for note in loaded.notes if note.line == 7] == []


def test_a_value_of_a_config_provider_is_no_placeholder(load_text: LoadText) -> None:
    provider = "config.providers = env\nconfig.providers.env.class = "
    provider += "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    loaded = load_text(f"{provider}A->B.topics = ${{env:WHICH}}\n", environment={"WHICH": "orders.*"})
    assert loaded.flow(A_TO_B).topics.matches("orders1")
    assert not loaded.notes


def test_secret_is_a_placeholder_only_as_a_whole() -> None:
    assert {find_unfilled("${PASSWORD}"), find_unfilled(" '<password>' ")} == {
        "it looks like a placeholder that nobody filled"
    }
    assert find_unfilled("a${b}c") == find_unfilled("x") == ""


@given(
    st.text(alphabet=st.sampled_from('ab.#" ;|()[]*?+-^_/'), max_size=12), st.text(alphabet=sorted(TOPIC_CHARACTERS))
)
def test_pattern_reported_as_unmatchable_matches_no_legal_name(pattern: str, name: str) -> None:
    try:
        needed = needed_but_illegal(pattern)
        names = NameFilter((pattern,))
    except UntranslatablePattern:
        return
    if needed:
        assert not names.matches(name)


def test_enabled_in_capitals_runs_both_flows(load_text: LoadText) -> None:
    assert load_text("B->A.enabled = TRUE\n").flow(Flow("B", "A"))


CONNECTION_STRING = "Endpoint=sb://orders.servicebus.windows.net/;SharedAccessKeyName=mirror;SharedAccessKey=aG9yc2U="


def plain_login(user: str, password: str) -> str:
    return f"{SASL}{PLAIN} username={user} password={password};\n"


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
    flow = configuration.flow(A_TO_B)
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


class TestWhatIsTakenForFalse:
    """MM2 reads `enabled` and `emit.heartbeats.enabled` by Java's parseBoolean before it validates anything."""

    @pytest.mark.parametrize(
        "word", ["false # passive", "false  # for now", "no", "off", "0", "FALSE;", "'false'", '"false"', "# later", ""]
    )
    def test_the_other_flow_runs(self, word: str, load_text: LoadText) -> None:
        loaded = load_text(f"B->A.enabled = {word}\nB->A.topics = x\n")
        assert [str(settings.flow) for settings in loaded.flows] == ["A->B"]
        (remark,) = [note for note in loaded.notes if note.key == "B->A.enabled"]
        assert remark.line == 5
        assert "as in MirrorMaker it counts as false" in remark.message
        assert (COMMENT in remark.message) == ("#" in word)
        assert (QUOTES in remark.message) == (word[:1] in ("'", '"') and word != "")

    @pytest.mark.parametrize("key", ["emit.heartbeats.enabled", "A->B.emit.heartbeats.enabled"])
    def test_slip_in_emit_heartbeats_disables_them_with_a_note(self, key: str, load_text: LoadText) -> None:
        loaded = load_text(f"{key} = false # none\n")
        assert not loaded.flow(A_TO_B).heartbeat.enabled
        assert any(note.key == key and COMMENT in note.message for note in loaded.notes)

    @pytest.mark.parametrize("word", ["true # active", "yes", "1", "on", '"true"', "TRUE!", "${ON}"])
    def test_word_meant_as_true_is_a_mistake(self, word: str, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of(f"B->A.enabled = {word}\n")
        assert "so that MirrorMaker takes it as false: write true or false" in mistake


class TestSelections:
    @pytest.mark.parametrize(
        ("text", "character", "cause"),
        [
            ("orders.* # only orders", "a blank and '#'", COMMENT),
            ('"orders.*"', "'\"'", QUOTES),
            ("'orders'", '"\'"', QUOTES),
            ("orders.* payments", "a blank", "patterns are separated by commas"),
            ("\\u201corders\\u201d", "'\u201c' and '\u201d'", "typographic quotes"),
            ("<topics>", "'<' and '>'", UNFILLED),
            ("orders;payments", "';'", ""),
            ("prod/.*", "'/'", ""),
            ("[ ]orders", "a blank", ""),
            ("\\u00f6rders", "'\u00f6'", ""),
        ],
    )
    @pytest.mark.parametrize("key", ["topics", "A->B.topics", "A->B.topics.exclude", "topics.blacklist"])
    def test_topic_pattern_that_matches_no_topic_is_noted(
        self, key: str, text: str, character: str, cause: str, load_text: LoadText
    ) -> None:
        remarks = [note.message for note in load_text(f"{key} = fine.*, {text}\n").notes if "no topic" in note.message]
        (remark,) = remarks
        assert f"{'selects' if key.endswith('topics') else 'leaves out'} no topic: " in remark
        assert "has only letters, digits, '.', '_' and '-'" in remark
        assert f"this needs {character}" in remark
        assert cause in remark

    @pytest.mark.parametrize(
        "text", ["orders.*", "orders( x)?", "(a,b)", "[ab]c, x", "[^ ]+", r"\\w+", "a|b c", "(?i)A"]
    )
    def test_pattern_that_may_match_a_topic_is_not_noted(self, text: str, load_text: LoadText) -> None:
        assert not load_text(f"A->B.topics = {text}\n").notes

    @pytest.mark.parametrize("text", ["my group", "a:b", "a/b", "caf\\u00e9", "a#b", "x, my other group"])
    def test_a_group_may_have_any_name(self, text: str, load_text: LoadText) -> None:
        assert not load_text(f"A->B.groups = {text}\n").notes

    @pytest.mark.parametrize(
        ("text", "cause"),
        [("g # ours", COMMENT), ('"g.*"', QUOTES), ("<group>", UNFILLED), ("\\u2018g\\u2019", "typographic")],
    )
    def test_unlikely_group_pattern_is_noted(self, text: str, cause: str, load_text: LoadText) -> None:
        (remark,) = load_text(f"A->B.groups = {text}\n").notes
        assert cause in remark.message

    @pytest.mark.parametrize("text", ['["orders", "payments"]', "[orders]", "[orders, payments]"])
    def test_a_list_in_brackets_is_a_class_of_characters(self, text: str, load_text: LoadText) -> None:
        (remark,) = load_text(f"A->B.topics = {text}\n").notes
        assert "as a regular expression matches one character" in remark.message
