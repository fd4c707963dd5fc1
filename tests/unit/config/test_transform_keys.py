"""`lockstep.transform.NAME.*`: the transforms of a flow, what is refused, and that secrets are not shown."""

import pickle
from pathlib import Path

import pytest

from lockstep_config.credentials.flow_secrets import flow_secrets
from lockstep_config.flow.record_transforms import find_shared_topic
from lockstep_config.flow.transform_settings import SeveralTransforms, TransformSettings
from lockstep_config.loader.configuration import build_with_layers
from lockstep_config.report.effective import view
from lockstep_config.text.properties import read_properties
from lockstep_config.text.secrets import MASK, is_secret
from lockstep_rules.filters import NameFilter

from .conftest import LoadText, MistakesOf, ab

TOPICS = "lockstep.transform.pii.topics = customers, orders-.*\n"
SQL = "lockstep.transform.pii.sql = SELECT * FROM records WHERE value IS NOT NULL\n"
FILES = (
    "config.providers = file\n"
    "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider\n"
)


@pytest.fixture
def salt(tmp_path: Path) -> str:
    """The lines of a salt, whose value is `very-salty`."""
    (tmp_path / "secrets").write_text("salt=very-salty\npepper=very-hot\n")
    return f"{FILES}lockstep.transform.pii.salt = ${{file:{tmp_path / 'secrets'}:salt}}\n"


def only(load_text: LoadText, lines: str) -> TransformSettings:
    (transform,) = ab(load_text, lines).data_plane.transforms
    return transform


def test_a_statement_of_the_file(load_text: LoadText) -> None:
    transform = only(load_text, TOPICS + SQL)
    assert (transform.name, transform.sql) == ("pii", "SELECT * FROM records WHERE value IS NOT NULL")
    assert (transform.python, dict(transform.secrets), transform.threads) == ("", {}, 2)
    assert (transform.tombstones, transform.filtered, transform.on_error) == ("pass", "drop", "halt")
    assert transform.statement_location.endswith(": lockstep.transform.pii.sql")


def test_choices_and_threads(load_text: LoadText) -> None:
    begin = "lockstep.transform.pii."
    more = f"{begin}tombstones = filter\n{begin}filtered = Tombstone\n{begin}on.error = quarantine-metadata\n"
    transform = only(load_text, f"{TOPICS}{SQL}{more}lockstep.transform.threads = 3")
    assert (transform.tombstones, transform.filtered, transform.on_error, transform.threads) == (
        "filter",
        "tombstone",
        "quarantine-metadata",
        3,
    )


def test_a_flow_has_lines_of_its_own(load_text: LoadText) -> None:
    transform = only(load_text, f"{TOPICS}{SQL}A->B.lockstep.transform.pii.topics = customers\n")
    assert transform.topics.matches("customers")
    assert not transform.topics.matches("orders-x")
    assert transform.sql.startswith("SELECT")


def test_a_statement_in_a_file_of_its_own(load_text: LoadText, tmp_path: Path) -> None:
    file = tmp_path / "pii.sql"
    file.write_text("\ufeffSELECT value\nFROM records\n")
    transform = only(load_text, f"{TOPICS}lockstep.transform.pii.sql.file = {file}\n")
    assert (transform.sql, transform.statement_location) == ("SELECT value\nFROM records", str(file))


def test_the_short_form_is_a_statement(load_text: LoadText, salt: str) -> None:
    transform = only(
        load_text, f"{TOPICS}{salt}lockstep.transform.pii.mask = $.name: hash_salted, $.iban: truncate(4)\n"
    )
    assert transform.sql == (
        "SELECT json_mask(json_mask(value, '$.name', 'hash_salted'), '$.iban', 'truncate(4)') AS value FROM records"
    )
    assert dict(transform.secrets) == {"salt": "very-salty"}


def test_secrets_have_names(load_text: LoadText, salt: str, tmp_path: Path) -> None:
    pepper = f"lockstep.transform.pii.secret.pepper = ${{file:{tmp_path / 'secrets'}:pepper}}\n"
    lines = f"{TOPICS}{salt}{pepper}lockstep.transform.pii.mask = $.a: tokenise(pepper), $.b: tokenise"
    settings = ab(load_text, lines)
    assert dict(settings.data_plane.transforms[0].secrets) == {"salt": "very-salty", "pepper": "very-hot"}
    assert {"very-salty", "very-hot"} <= flow_secrets(settings)


def test_python_function(load_text: LoadText) -> None:
    transform = only(load_text, f"{TOPICS}lockstep.transform.pii.python = acme.masking:mask\n")
    assert (transform.python, transform.sql) == ("acme.masking:mask", "")


def test_topics_have_at_most_one_transform(load_text: LoadText) -> None:
    more = "lockstep.transform.eu.topics = eu-.*\nlockstep.transform.eu.mask = $.a: mask\n"
    plane = ab(load_text, TOPICS + SQL + more).data_plane
    transforms = {topic: plane.transform_of(topic) for topic in ("customers", "orders-1", "eu-1", "t", "heartbeats")}
    assert {topic: transform and transform.name for topic, transform in transforms.items()} == {
        "customers": "pii",
        "orders-1": "pii",
        "eu-1": "eu",
        "t": None,
        "heartbeats": None,
    }


def test_heartbeats_are_never_transformed(load_text: LoadText) -> None:
    plane = ab(load_text, f"lockstep.transform.pii.topics = .*\n{SQL}").data_plane
    assert plane.transform_of("heartbeats") is None
    assert plane.transform_of("device.heartbeats") is not None


def test_a_topic_that_several_select_has_none_of_them(load_text: LoadText) -> None:
    # That these patterns share a topic is not seen in the patterns.
    more = "lockstep.transform.eu.topics = .*[0-9]-end\nlockstep.transform.eu.mask = $.a: mask\n"
    plane = ab(load_text, TOPICS + SQL + more).data_plane
    with pytest.raises(SeveralTransforms, match=r"eu and pii both select orders-1-end"):
        plane.transform_of("orders-1-end")


@pytest.mark.parametrize(
    ("patterns", "other_patterns", "shared"),
    [
        (["a"], ["a"], "a"),
        (["a"], ["b"], ""),
        (["orders-.*"], ["orders-x"], "orders-x"),
        ([".*"], ["orders-.+"], "orders-x"),
        (["(a|b)"], ["b|c"], "b"),
        (["a\\.b"], ["a.*"], "a.b"),
        (["orders-.*"], ["customers-.*"], ""),
        (["orders-.*"], [".*-eu"], ""),  # orders-eu is one, which no pattern suggests
    ],
)
def test_topics_that_two_transforms_share(patterns: list[str], other_patterns: list[str], shared: str) -> None:
    assert find_shared_topic(NameFilter(tuple(patterns)), NameFilter(tuple(other_patterns))) == shared
    assert find_shared_topic(NameFilter(tuple(other_patterns)), NameFilter(tuple(patterns))) == shared


def test_a_misspelt_transform_is_a_mistake_with_what_was_meant(mistakes_of: MistakesOf) -> None:
    (mistake,) = mistakes_of("lockstep.transfrom.pii.mask = $.a: mask")
    assert "did you mean lockstep.transform.pii.mask?" in mistake


def test_a_topic_has_a_transform_or_rules(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    plain = identity + TOPICS + SQL
    for rules in ("lockstep.filter = tombstone", "lockstep.headers = add x=1"):
        (mistake,) = mistakes_of(plain + rules)
        assert "holds for customers, which lockstep.transform.pii.topics selects" in mistake
    # That these patterns share a topic is not seen in the patterns.
    settings = ab(load_text, plain + "lockstep.filter = tombstone and topic orders-[0-9]")
    assert "the transform pii selects orders-1, and lockstep.filter" in settings.transform_dispute("orders-1")
    assert settings.transform_dispute("customers") == settings.transform_dispute("t") == ""


def test_settings_can_be_pickled_and_do_not_show_secrets(load_text: LoadText, salt: str) -> None:
    settings = ab(load_text, f"{TOPICS}{salt}lockstep.transform.pii.mask = $.a: hash_salted")
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301  # made here
    assert "very-salty" not in repr(settings)


def test_config_show_has_the_lines_that_count_and_no_secret(tmp_path: Path, salt: str, load_text: LoadText) -> None:
    plain = "A->B.lockstep.transform.token.topics = t\nA->B.lockstep.transform.token.sql = SELECT value FROM records\n"
    base = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
    lines = f"{base}{TOPICS}{salt}lockstep.transform.pii.mask = $.a: hash_salted\n{plain}"
    file = tmp_path / "shown.properties"
    text = read_properties(lines.encode(), file)
    configuration, layers = build_with_layers(text, file, {})
    (flow,) = (each for each in view(text, layers, file, configuration.flows).flows if each.enabled)
    shown = {setting.key: setting.value for setting in flow.settings if setting.key.startswith("lockstep.transform.")}
    assert shown == {
        "lockstep.transform.pii.mask": "$.a: hash_salted",
        "lockstep.transform.pii.salt": MASK,
        "lockstep.transform.pii.topics": "customers, orders-.*",
        "lockstep.transform.threads": "2",
        "lockstep.transform.token.sql": "SELECT value FROM records",
        "lockstep.transform.token.topics": "t",
    }


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("lockstep.transform.pii.salt", True),
        ("A->B.lockstep.transform.pii.secret.location", True),
        ("lockstep.transform.secret-token.sql", False),
        ("A->B.lockstep.transform.private.sql.file", False),
        ("lockstep.transform.pii.slat", True),
        ("lockstep.transform.threads", False),
    ],
)
def test_which_keys_are_secret(key: str, secret: bool) -> None:
    assert is_secret(key) is secret


MISTAKES = {
    "topics missing": (SQL, "lockstep.transform.pii.topics: is missing"),
    "topics empty": (f"lockstep.transform.pii.topics =\n{SQL}", "lockstep.transform.pii.topics: is empty"),
    "nothing to do": (TOPICS, "lockstep.transform.pii: does not say what it does"),
    "two statements": (
        f"{TOPICS}{SQL}lockstep.transform.pii.mask = $.a: mask\n",
        "lockstep.transform.pii.mask: is set, and so is lockstep.transform.pii.sql",
    ),
    "an empty statement": (f"{TOPICS}lockstep.transform.pii.sql =\n", "lockstep.transform.pii.sql: is empty"),
    "a mask that cannot be read": (
        f"{TOPICS}lockstep.transform.pii.mask = iban\n",
        "lockstep.transform.pii.mask: cannot be read: PATH: MASKING is expected",
    ),
    "a masking that does not exist": (
        f"{TOPICS}lockstep.transform.pii.mask = $.a: hash\n",
        "lockstep.transform.pii.mask: cannot be read: $.a cannot be masked by hash. The maskings are remove, mask",
    ),
    "a mask without its salt": (
        f"{TOPICS}lockstep.transform.pii.mask = $.a: tokenise\n",
        "lockstep.transform.pii.salt: is missing, and lockstep.transform.pii.mask takes it",
    ),
    "a mask without its secret": (
        f"{TOPICS}lockstep.transform.pii.mask = $.a: tokenise(pepper)\n",
        "lockstep.transform.pii.secret.pepper: is missing",
    ),
    "no function": (
        f"{TOPICS}lockstep.transform.pii.python = acme.masking\n",
        "lockstep.transform.pii.python: is 'acme.masking', which is no function",
    ),
    "no file": (
        f"{TOPICS}lockstep.transform.pii.sql.file = /no/such.sql\n",
        "lockstep.transform.pii.sql.file: names /no/such.sql, which cannot be read",
    ),
    "another choice": (
        f"{TOPICS}{SQL}lockstep.transform.pii.on.error = ignore\n",
        "lockstep.transform.pii.on.error: is 'ignore': it takes halt, quarantine or quarantine-metadata",
    ),
    "a misspelt key": (
        f"{TOPICS}{SQL}lockstep.transform.pii.tombstone = filter\n",
        "lockstep.transform.pii.tombstone: is no key of a transform: write lockstep.transform.pii. and one of",
    ),
    "a name with a dot": (
        "lockstep.transform.pii.eu.topics = t\n",
        "lockstep.transform.pii.eu.topics: is no key of a transform",
    ),
    "a cluster's line": (
        f"{TOPICS}{SQL}A.lockstep.transform.eu.topics = t\n",
        "A.lockstep.transform.eu.topics: is not read here, and records would be copied as they are",
    ),
    "a topic of two": (
        f"{TOPICS}{SQL}lockstep.transform.eu.topics = orders-eu\nlockstep.transform.eu.mask = $.a: mask\n",
        "lockstep.transform.pii.topics: selects orders-eu, which lockstep.transform.eu.topics selects too",
    ),
    "a secret in the file": (
        f"{TOPICS}{SQL}lockstep.transform.pii.salt = visible\n",
        "lockstep.transform.pii.salt: is a secret, which is not written into this file",
    ),
    "too many threads": (f"{TOPICS}{SQL}lockstep.transform.threads = 65\n", "lockstep.transform.threads: is 65"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(mistakes_of: MistakesOf, case: str) -> None:
    lines, expected = MISTAKES[case]
    mistakes = mistakes_of(lines)
    assert len(mistakes) == 1, mistakes
    assert expected in mistakes[0]
    assert "visible" not in mistakes[0]


def test_a_secret_is_no_part_of_a_statement(mistakes_of: MistakesOf, salt: str, tmp_path: Path) -> None:
    reference = f"${{file:{tmp_path / 'secrets'}:salt}}"
    statement = f"lockstep.transform.pii.sql = SELECT sha2(concat('{reference}', value), 256) AS value FROM records\n"  # noqa: S608  # never run
    (mistake,) = mistakes_of(TOPICS + salt + statement)
    assert "what a transform does is no secret" in mistake
    assert "very-salty" not in mistake


def test_heartbeats_alone_have_no_transform(load_text: LoadText) -> None:
    configuration = load_text(TOPICS + SQL)
    assert [bool(settings.data_plane.transforms) for settings in configuration.flows] == [True, False]
